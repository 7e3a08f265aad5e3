"""Retrieval with a neural point process: fit it to all sequences by maximum likelihood, rank by cosine of states.

This is how the paper uses RMTPP, SAHP and THP. Relevance is not looked at; `rank` adds it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor
from typing_extensions import Self

from neuroseqret.baselines.folders import MEANING, fitting_together, meaning
from neuroseqret.baselines.intensity import Events, PointProcess
from neuroseqret.baselines.series import inter_event_times
from neuroseqret.data.batching import Batch, batches, join, pad
from neuroseqret.data.relevance import Relevance
from neuroseqret.data.sequence import EventSequence
from neuroseqret.data.sequences import EventSequences, IntArray
from neuroseqret.data.splits import ensure_split, split_rows_if_any
from neuroseqret.errors import DivergenceError, UserError
from neuroseqret.models.base import Embedder, Role, Scores
from neuroseqret.models.model_folder import read_model, write_model
from neuroseqret.processes.time_scale import TimeScale
from neuroseqret.training.augment import crop
from neuroseqret.training.log import TrainingLog
from neuroseqret.training.loop import LoopSettings, TrainingResult, train

BATCH = 64
PARTS, PADDING = 4, 0.2  # a batch with more padding than this is computed in so many parts
LONGEST = 512  # events of a training sequence; of a longer one a random run is taken
SLOWER = (1, 3, 9)  # learning rates that are tried one after the other: a third, a ninth
_JUDGED = 512  # validation looks at no more queries than this
_INFO = ("seed", *MEANING, "validation")


@dataclass(frozen=True)
class Task:
    """What a run of training sees."""

    queries: EventSequences
    corpus: EventSequences
    relevance: Relevance | None
    train: IntArray  # rows of the queries
    validation: IntArray
    seed: int


class PointProcessBaseline(Embedder):
    """Fits `network_type` and embeds by its mean state.

    At most `steps` of training, of `BATCH` sequences each; it ends sooner where validation no longer rises.
    """

    name: ClassVar[str]
    network_type: ClassVar[type[PointProcess]]

    def __init__(self, steps: int = 1500, learning_rate: float = 3e-3) -> None:
        self.loop = LoopSettings(steps=steps, learning_rate=learning_rate, evaluations=30, patience=6)
        self.network: PointProcess | None = None
        self.log = TrainingLog()
        self.info: dict[str, Any] = {}

    # ---------------------------------------------------------------- learn

    def fit(
        self,
        queries: EventSequences,
        corpus: EventSequences,
        relevance: Relevance | None = None,
        *,
        seed: int = 0,
        max_seconds: float | None = None,
        **options: Any,
    ) -> Self:
        if not len(corpus):
            raise UserError("the corpus is empty; there is nothing to learn from")
        queries = ensure_split(queries, seed)
        validation = split_rows_if_any(queries, "validation")
        task = Task(queries, corpus, relevance, split_rows_if_any(queries, "train"), validation, seed)
        self._scale_on(corpus)
        result = self._train(task, max_seconds)
        self.info = {
            "seed": seed,
            **meaning(corpus),
            "validation": {} if result.best is None else {self.judged_by: result.best},
        }
        return self

    def _train(self, task: Task, max_seconds: float | None) -> TrainingResult:
        """Train a new network; one that diverges, as an exponential intensity may, begins again at a lower rate."""
        begun = time.monotonic()
        for slower in SLOWER:
            left = None if max_seconds is None else max(1.0, max_seconds - (time.monotonic() - begun))
            rate = self.loop.learning_rate / slower
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(task.seed)
                self.network = self.network_type(self.marks)
            self.log = TrainingLog()
            try:
                return train(
                    self.network,
                    self.loss(task),
                    self.loop.model_copy(update={"max_seconds": left, "learning_rate": rate}),
                    seed=task.seed,
                    phase=self.name,
                    validate=self.judge(task),
                    sequences_per_step=BATCH,
                    log=self.log,
                )
            except DivergenceError as error:
                failure = error
        raise failure

    def _scale_on(self, corpus: EventSequences) -> None:
        gaps = inter_event_times(corpus).values
        self.unit = float(gaps.mean()) or 1.0
        self.scale = TimeScale.fit(corpus)
        self.marks = max(corpus.num_marks, 1)

    def events(self, batch: Batch) -> Events:
        return Events.of(batch, self.unit, self.scale, self.marks)

    #: What validation measures.
    judged_by: ClassVar[str] = "log-likelihood per event"

    def loss(self, task: Task) -> Callable[[int], Tensor]:
        """Negative log-likelihood per event, of sequences drawn from the corpus and the train queries."""
        total = len(task.corpus) + len(task.train)

        def of_step(step: int) -> Tensor:
            rng = np.random.default_rng([task.seed, step])
            drawn = rng.choice(total, min(BATCH, total), replace=False)
            rows = drawn[drawn < len(task.corpus)], task.train[drawn[drawn >= len(task.corpus)] - len(task.corpus)]
            batch = join(pad(task.corpus, rows[0]), pad(task.queries, rows[1]))
            per_event, _ = self.forward(crop(batch, LONGEST, rng))
            return -per_event

        return of_step

    def forward(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Log-likelihood per predicted event of a training batch (0 if it has none), and its vectors (B, width)."""
        network = self.require()
        likelihood, predicted = torch.zeros(()), 0
        vectors = torch.empty(len(batch), network.width)
        for part in by_length(batch):
            events = self.events(part)
            states = network.states(events)
            likelihood = likelihood + network.log_likelihood(events, states).sum()
            predicted += int(events.predicted.sum())
            vectors = vectors.index_put((torch.from_numpy(part.rows),), network.pooled(events, states))
        return likelihood / max(predicted, 1), vectors

    def judge(self, task: Task) -> Callable[[], float] | None:
        """Log-likelihood per event of the validation queries."""
        rows = task.validation[:_JUDGED]
        if not len(rows):
            return None
        judged = task.queries[rows]

        def value() -> float:
            total, number = 0.0, 0
            with torch.no_grad():
                for batch in batches(judged):
                    events = self.events(batch)
                    total += float(self.require().log_likelihood(events).sum())
                    number += int(events.predicted.sum())
            return total / max(number, 1)

        return value

    # ---------------------------------------------------------------- use

    def require(self) -> PointProcess:
        if self.network is None:
            raise UserError(f"{self.name} is not trained; call fit or load a model folder")
        return self.network

    @torch.no_grad()
    def embed(
        self, sequences: EventSequence | EventSequences | Iterable[EventSequence], role: Role = "corpus"
    ) -> Scores:
        many, network = EventSequences.of(sequences), self.require()
        network.eval()
        embedded = np.empty((len(many), network.width), np.float32)
        for batch in batches(many):
            events = self.events(batch)
            embedded[batch.rows] = network.pooled(events, network.states(events)).numpy()
        return embedded

    # ---------------------------------------------------------------- keep

    def save(self, folder: str | PathLike[str]) -> Path:
        config = {
            "settings": {"steps": self.loop.steps, "learning_rate": self.loop.learning_rate},
            "marks": self.marks,
            "unit": self.unit,
            "scale": self.scale.model_dump(),
            **self.info,
        }
        return write_model(folder, self.name, config, self.require().state_dict(), self.log.files())

    @classmethod
    def load(cls, folder: str | PathLike[str]) -> Self:
        config, tensors = read_model(folder, cls.name)
        with fitting_together(folder):
            made = cls(**config["settings"])
            made.marks, made.unit = config["marks"], config["unit"]
            made.scale = TimeScale.model_validate(config["scale"])
            made.network = cls.network_type(made.marks)
            made.network.load_state_dict(tensors)
            made.info = {name: config[name] for name in _INFO}
        made.network.eval()
        return made


def by_length(batch: Batch) -> list[Batch]:
    """A batch in `PARTS` of like length if much of it is padding, else whole; `rows` are places in the given batch."""
    wasteful = int(batch.lengths.sum()) < (1 - PADDING) * batch.times.numel()
    order = torch.argsort(batch.lengths, stable=True)
    parts = []
    for chosen in order.tensor_split(PARTS if wasteful else 1):
        if len(chosen):
            width = int(batch.lengths[chosen].max())
            tensors = (batch.times[chosen, :width], batch.marks[chosen, :width])
            parts.append(Batch(chosen.numpy(), *tensors, batch.lengths[chosen], batch.spans[chosen]))
    return parts
