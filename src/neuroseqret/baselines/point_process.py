"""Retrieval with a neural point process: fit it to all sequences by maximum likelihood, rank by cosine of states.

This is how the paper uses RMTPP, SAHP and THP. Relevance is not used; `rank` adds it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

import numpy as np
import torch
from pydantic import Field
from torch import Tensor

from neuroseqret.baselines.encoder import EncoderBaseline
from neuroseqret.baselines.intensity import Events, IntensityProcess
from neuroseqret.baselines.series import inter_event_times
from neuroseqret.baselines.settings import BaselineSettings
from neuroseqret.data.batching import Batch, batches, join, pad
from neuroseqret.data.sequences import EventSequences
from neuroseqret.errors import DivergenceError
from neuroseqret.models.card import Outcome
from neuroseqret.training.augment import crop
from neuroseqret.training.loop import LoopSettings, TrainingResult, train
from neuroseqret.training.task import TrainingTask

BATCH = 64
PARTS, PADDING = 4, 0.2  # a batch with a larger share of padding than this is computed in so many parts
LONGEST = 512  # events of a training sequence; of a longer one a random run is used
SLOWER = (1, 3, 9)  # the learning rate is divided by these in turn until training does not diverge
_JUDGED = 512  # most validation queries whose likelihood is measured during training


class PointProcessSettings(BaselineSettings):
    """How long and how fast it learns."""

    steps: int = Field(default=1500, ge=0)
    learning_rate: float = Field(default=3e-3, gt=0)


class PointProcessBaseline(EncoderBaseline[IntensityProcess]):
    """Fits `network_type` and embeds a sequence as its mean state.

    Trains for at most `steps` steps of `BATCH` sequences each, and stops earlier when validation no longer improves.
    """

    name: ClassVar[str]
    needs_labels: ClassVar[bool] = False
    network_type: ClassVar[type[IntensityProcess]]
    #: What validation measures.
    judged_by: ClassVar[str] = "log-likelihood per event"
    settings: PointProcessSettings

    def __init__(self, steps: int = 1500, learning_rate: float = 3e-3) -> None:
        super().__init__(PointProcessSettings(steps=steps, learning_rate=learning_rate))

    # ---------------------------------------------------------------- learn

    def learn(self, task: TrainingTask) -> Outcome:
        """Train the network; if it diverges, as an exponential intensity may, begin again at a lower rate."""
        self.scale_on(task.given_corpus)
        for slower in SLOWER:
            try:
                result = self._train(task, slower)
            except DivergenceError as error:
                failure = error
            else:
                self.network.cpu()
                rate = self.settings.learning_rate / slower
                return Outcome.of(self.judged_by, result.best, learning_rate=rate)
        raise failure

    def _train(self, task: TrainingTask, slower: int) -> TrainingResult:
        """Train a new network at the learning rate divided by `slower`; each rate has a checkpoint of its own."""
        self.begin(task.seed, task.device)
        task.log.records.clear()
        loop = LoopSettings(
            steps=self.settings.steps,
            learning_rate=self.settings.learning_rate / slower,
            evaluations=30,
            patience=6,
            max_seconds=task.seconds_left,
        )
        return train(
            self.network,
            self.loss(task),
            loop,
            seed=task.seed,
            phase=self.name,
            validate=self.judge(task),
            log=task.log,
            checkpoint=task.checkpoint(self.name, self.settings.model_dump_json(), subfolder=f"rate_{slower}"),
        )

    def scale_on(self, corpus: EventSequences) -> None:
        super().scale_on(corpus)
        self.constants = {"unit": float(inter_event_times(corpus).values.mean()) or 1.0}

    def make_network(self) -> IntensityProcess:
        return self.network_type(self.marks)

    def loss(self, task: TrainingTask) -> Callable[[int], Tensor]:
        """Negative log-likelihood per event, of sequences drawn from the corpus and the train queries."""
        corpus, train_rows = len(task.corpus), task.train_rows_if_any
        total = corpus + len(train_rows)

        def of_step(step: int) -> Tensor:
            rng = np.random.default_rng([task.seed, step])
            drawn = rng.choice(total, min(BATCH, total), replace=False)
            of_queries = train_rows[drawn[drawn >= corpus] - corpus]
            batch = join(pad(task.corpus, drawn[drawn < corpus]), pad(task.queries, of_queries))
            per_event, _ = self.forward(crop(batch, LONGEST, rng))
            return -per_event

        return of_step

    def forward(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Log-likelihood per predicted event of a training batch (0 if it has none), and its vectors (B, width)."""
        likelihood, predicted = torch.zeros((), device=self.device), 0
        vectors = torch.empty(len(batch), self.network.width, device=self.device)
        for part in by_length(batch):
            events = self.events(part)
            states = self.network.states(events)
            likelihood = likelihood + self.network.log_likelihood(events, states).sum()
            predicted += int(events.predicted.sum())
            vectors = vectors.index_put((torch.from_numpy(part.rows),), self.network.pooled(events, states))
        return likelihood / max(predicted, 1), vectors

    def judge(self, task: TrainingTask) -> Callable[[], float] | None:
        """Log-likelihood per event of the validation queries; None where there are none."""
        rows = task.validation_rows[:_JUDGED]
        if not len(rows):
            return None
        judged = task.queries[rows]

        def value() -> float:
            total, number = 0.0, 0
            with torch.no_grad():
                for batch in batches(judged):
                    events = self.events(batch)
                    total += float(self.network.log_likelihood(events).sum())
                    number += int(events.predicted.sum())
            return total / max(number, 1)

        return value

    # ---------------------------------------------------------------- use

    @property
    def dimension(self) -> int:
        return self.network.width

    def events(self, batch: Batch) -> Events:
        """A batch as the network reads it: times in mean gaps of the corpus."""
        return Events.of(batch, self.constants["unit"], self.scale, self.marks).to(self.device)

    def encode(self, batch: Batch) -> Tensor:
        events = self.events(batch)
        return self.network.pooled(events, self.network.states(events))


def by_length(batch: Batch) -> list[Batch]:
    """Return a batch in `PARTS` of similar length if much of it is padding, else whole.

    `rows` of the parts are places in the given batch.
    """
    wasteful = int(batch.lengths.sum()) < (1 - PADDING) * batch.times.numel()
    order = torch.argsort(batch.lengths, stable=True)
    parts = []
    for chosen in order.tensor_split(PARTS if wasteful else 1):
        if len(chosen):
            width = int(batch.lengths[chosen].max())
            tensors = (batch.times[chosen, :width], batch.marks[chosen, :width])
            parts.append(Batch(chosen.numpy(), *tensors, batch.lengths[chosen], batch.spans[chosen]))
    return parts
