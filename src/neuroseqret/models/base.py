"""The contract of every ranking method, ours and the baselines.

    RelevanceModel   fit, score, save, load
    Embedder         also embed: its sequences have vectors of their own, so it can be indexed
    Reranker         also rerank: puts the best candidates of a first stage in a new order
    Resumable        its fit takes a checkpoint folder and goes on where it was cut off

What a method can do is its type. The public verbs check here, once, what marks and times mean (`Meaning.apply`); a
method implements `learn`, `compute_scores` (or `compute_embeddings`), `to_state` and `restore`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel
from typing_extensions import Self

from neuroseqret.data.meaning import Meaning, UnknownMarks
from neuroseqret.data.relevance import Relevance
from neuroseqret.data.sequences import EventSequence, EventSequences, IntArray
from neuroseqret.errors import UserError
from neuroseqret.models.card import ModelCard, ModelState, Outcome
from neuroseqret.models.model_folder import read_state, write_state
from neuroseqret.training.log import TrainingLog
from neuroseqret.training.task import TrainingTask

Scores = npt.NDArray[np.float32]
Role = Literal["query", "corpus"]
#: One sequence or many.
Sequences = EventSequence | EventSequences | Iterable[EventSequence]


class RelevanceModel(ABC):
    """Scores corpus sequences by their relevance to a query; higher is more relevant."""

    name: ClassVar[str]
    #: Raised by hand when what the method computes changes; kept with every result (see tests/golden).
    version: ClassVar[int] = 1
    #: Whether it learns from relevance; one that does and gets no labels learns from sub-sequences of the corpus.
    needs_labels: ClassVar[bool] = True

    def __init__(self, settings: BaseModel, preset: str | None = None) -> None:
        self.settings: Any = settings
        self.preset = preset
        self.card: ModelCard | None = None  # None until it is trained
        self.log = TrainingLog()

    # ---------------------------------------------------------------- learn

    def fit(
        self,
        queries: EventSequences | None,
        corpus: EventSequences,
        relevance: Relevance | None = None,
        *,
        seed: int = 0,
        max_seconds: float | None = None,
        checkpoint: str | PathLike[str] | None = None,
    ) -> Self:
        """Learn from the queries whose `split` is train, select on those whose `split` is validation.

        Queries of any other split are never looked at. Without a `split` column the queries are split here, by
        `source` where there is one. `relevance` defaults to `Relevance.from_groups(queries, corpus)`; without any
        label the method learns from sub-sequences of the corpus and warns. `checkpoint` is a folder from which a run
        that was cut off goes on.
        """
        if checkpoint is not None and not isinstance(self, Resumable):
            raise UserError(f"{self.name!r} does not learn in steps and needs no checkpoint; leave it out")
        task = TrainingTask.of(
            queries,
            corpus,
            relevance,
            needs_labels=self.needs_labels,
            seed=seed,
            max_seconds=max_seconds,
            checkpoint=checkpoint,
        )
        return self.fit_task(task)

    def fit_task(self, task: TrainingTask) -> Self:
        """Learn a task that is prepared already; `fit` prepares it and calls this."""
        outcome = self.learn(task)
        self.log = task.log
        meaning = self.learned_meaning(task)
        self.card = ModelCard(
            model=self.name,
            method_version=self.version,
            preset=self.preset,
            settings=self.settings.model_dump(mode="json"),
            marks=meaning.marks or 1,
            mark_names=meaning.mark_names,
            time_unit=meaning.time_unit,
            seed=task.seed,
            unlabelled=task.unlabelled,
            train_queries=len(task.train_rows_if_any),
            corpus_fingerprint=task.given_corpus.fingerprint(),
            validation=outcome.validation,
            notes=outcome.notes,
        )
        return self

    def learned_meaning(self, task: TrainingTask) -> Meaning:
        """What marks and times mean after learning: what they mean in the corpus."""
        return Meaning.of(task.given_corpus)

    @abstractmethod
    def learn(self, task: TrainingTask) -> Outcome:
        """Learn the task; the card is made from the outcome."""

    # ---------------------------------------------------------------- use

    @property
    def meaning(self) -> Meaning:
        """What marks and times mean to the method; nothing is known before it is trained."""
        return Meaning() if self.card is None else self.card.meaning

    def score(self, queries: Sequences, candidates: EventSequences, *, unknown_marks: UnknownMarks = "error") -> Scores:
        """Relevance of every candidate: (candidates,) for one `EventSequence`, else (queries, candidates).

        A pair's score does not depend on the other queries and candidates. Marks are taken by name; `unknown_marks`
        says what to do with marks that the method never met: `error`, `drop` the events, or `keep` them as one mark.
        """
        asked = self.meaning.apply(EventSequences.of(queries), unknown_marks)
        scores = self.compute_scores(asked, self.meaning.apply(candidates, unknown_marks))
        return scores[0] if isinstance(queries, EventSequence) else scores

    @abstractmethod
    def compute_scores(self, queries: EventSequences, candidates: EventSequences) -> Scores:
        """(queries, candidates), of sequences whose marks are numbered as the method's."""

    # ---------------------------------------------------------------- keep

    def trained_card(self, **more: Any) -> ModelCard:
        """The card with further fields filled in; an untrained method is an error."""
        if self.card is None:
            raise UserError(f"{self.name!r} is not trained; call fit or load a model folder")
        return self.card.model_copy(update=more)

    @abstractmethod
    def to_state(self) -> ModelState:
        """The trained method as card and tensors."""

    @abstractmethod
    def restore(self, state: ModelState) -> None:
        """Take over what `to_state` gave; the settings are those of the card already."""

    @classmethod
    def from_state(cls, state: ModelState) -> Self:
        """The trained method that `to_state` described."""
        made = cls(**state.card.settings)
        made.preset, made.card = state.card.preset, state.card
        made.restore(state)
        return made

    def save(self, folder: str | PathLike[str]) -> Path:
        """Write the model folder: `config.json` and `model.safetensors`, complete or not at all."""
        return write_state(folder, self.to_state(), self.log.files())

    @classmethod
    def load(cls, folder: str | PathLike[str]) -> Self:
        """Read a model folder; a foreign, damaged or newer one is one clear `UserError`."""
        state = read_state(folder, cls.name)
        try:
            return cls.from_state(state)
        except (KeyError, ValueError, RuntimeError, TypeError) as error:
            raise UserError(
                f"{folder}: config and tensors do not fit together ({error}); fit the model again"
            ) from error


class Embedder(RelevanceModel):
    """A method whose sequences have vectors of their own: it can be indexed."""

    def embed(self, sequences: Sequences, role: Role = "corpus", *, unknown_marks: UnknownMarks = "error") -> Scores:
        """Unit vectors (sequences, dimension) float32; a query may be embedded differently from the corpus."""
        return self.compute_embeddings(self.meaning.apply(EventSequences.of(sequences), unknown_marks), role)

    @abstractmethod
    def compute_embeddings(self, sequences: EventSequences, role: Role) -> Scores:
        """(sequences, dimension), of sequences whose marks are numbered as the method's."""

    @property
    def score_is_cosine(self) -> bool:
        """Whether `score` is the dot product of the embeddings and nothing else."""
        return type(self).compute_scores is Embedder.compute_scores

    def compute_scores(self, queries: EventSequences, candidates: EventSequences) -> Scores:
        scores: Scores = self.compute_embeddings(queries, "query") @ self.compute_embeddings(candidates, "corpus").T
        return scores


class Reranker(RelevanceModel):
    """A second stage: puts the best candidates of its first stage in a new order."""

    @abstractmethod
    def rerank(
        self,
        queries: Sequences,
        corpus: EventSequences,
        first_stage_scores: Scores | None = None,
        depth: int = 100,
        *,
        unknown_marks: UnknownMarks = "error",
    ) -> Scores:
        """The whole corpus in the first stage's order, its `depth` best put into the order of this model's scores.

        Shapes as in `score`. The numbers are ranks (listed candidates) and differences of first-stage scores (the
        others), made to be sorted. `first_stage_scores` (queries, corpus) spares the first stage's work.
        """

    @abstractmethod
    def score_listed(
        self,
        queries: EventSequences,
        corpus: EventSequences,
        listed: IntArray,
        *,
        unknown_marks: UnknownMarks = "error",
    ) -> Scores:
        """Scores of the listed corpus rows of each query: (queries, depth)."""


class Resumable(RelevanceModel):
    """Learns in steps: with `fit(checkpoint=FOLDER)` a run that was cut off goes on where it was."""
