"""`TrainingTask`: everything that a method learns from, in one object.

The `fit` of every method builds a task from its arguments and passes it on. It holds queries, corpus, relevance, seed,
budget, log and checkpoint.
"""

from __future__ import annotations

import hashlib
import warnings
from dataclasses import dataclass, field, replace
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from neuroseqret.data.meaning import Meaning
from neuroseqret.data.relevance import Relevance
from neuroseqret.data.sequences import EventSequences, IntArray
from neuroseqret.data.splits import ensure_split, split_rows, split_rows_if_any
from neuroseqret.errors import UserError
from neuroseqret.training import budget
from neuroseqret.training.log import TrainingLog
from neuroseqret.training.unlabelled import WITHOUT_LABELS, sub_sequence_task

if TYPE_CHECKING:
    from neuroseqret.training.checkpoint import Checkpoint


@dataclass(frozen=True)
class TrainingTask:
    """Queries with a `split`, the corpus, the labels, and the seed, budget, checkpoint, device and log of the run."""

    queries: EventSequences
    corpus: EventSequences  # the given corpus, or sub-sequences of it if nothing is labelled
    given_corpus: EventSequences  # the corpus as the user gave it; time scale and marks are fitted on it
    labels: Relevance | None = None  # the relevance as the user gave it; see `relevance`
    seed: int = 0
    max_seconds: float | None = None
    checkpoint_folder: Path | None = None
    unlabelled: bool = False  # the task is made of sub-sequences of the corpus
    device: str = "cpu"  # of the networks while they are trained
    log: TrainingLog = field(default_factory=TrainingLog)
    begun: float = field(default_factory=budget.now)

    @classmethod
    def of(
        cls,
        queries: EventSequences | None,
        corpus: EventSequences,
        relevance: Relevance | None = None,
        *,
        needs_labels: bool,
        seed: int = 0,
        max_seconds: float | None = None,
        checkpoint: str | PathLike[str] | None = None,
        device: str = "cpu",
    ) -> TrainingTask:
        """Build the task from the arguments of `fit`.

        Queries without a `split` column are split by the seed. Their marks are renumbered by name to match the corpus.
        A method that needs labels and gets none learns from sub-sequences of the corpus, with a warning.
        """
        if not len(corpus):
            raise UserError("the corpus is empty; there is nothing to learn from")
        given = corpus
        has_groups = queries is not None and queries.groups is not None and corpus.groups is not None
        unlabelled = needs_labels and (queries is None or (relevance is None and not has_groups))
        if unlabelled:
            warnings.warn(WITHOUT_LABELS, stacklevel=4)
            queries, corpus = sub_sequence_task(corpus, seed)
            relevance = None
        elif queries is None:
            queries = corpus[:0].with_column("split", [])
        else:
            queries = Meaning.of(given).apply(queries, unknown_marks="keep")
        return cls(
            ensure_split(queries, seed),
            corpus,
            given,
            relevance,
            seed,
            max_seconds,
            None if checkpoint is None else Path(checkpoint),
            unlabelled,
            device,
        )

    @property
    def has_labels(self) -> bool:
        """Whether `relevance` is known: given, or by the groups of queries and corpus."""
        return self.labels is not None or (self.queries.groups is not None and self.corpus.groups is not None)

    @cached_property
    def relevance(self) -> Relevance:
        """Which corpus sequences are relevant to which query: as given, otherwise by group."""
        return Relevance.from_groups(self.queries, self.corpus) if self.labels is None else self.labels

    @cached_property
    def train_rows(self) -> IntArray:
        """Rows of the queries to learn from; it is an error if there are none."""
        return split_rows(self.queries, "train")

    @cached_property
    def train_rows_if_any(self) -> IntArray:
        """Rows of the queries to learn from, for methods that can do without."""
        return split_rows_if_any(self.queries, "train")

    @cached_property
    def validation_rows(self) -> IntArray:
        """Rows of the queries to select models on; there may be none."""
        return split_rows_if_any(self.queries, "validation")

    @cached_property
    def answerable_train_rows(self) -> IntArray:
        """The train rows that have a relevant corpus sequence."""
        return self.train_rows[self.relevance.counts[self.train_rows] > 0]

    @cached_property
    def answerable_validation_rows(self) -> IntArray:
        """The validation rows that have a relevant corpus sequence."""
        return self.validation_rows[self.relevance.counts[self.validation_rows] > 0]

    def in_terms_of(self, meaning: Meaning) -> TrainingTask:
        """Return the task with marks numbered as in `meaning`, that of a trained method to start from."""
        queries, corpus, given = (meaning.apply(x, "keep") for x in (self.queries, self.corpus, self.given_corpus))
        return replace(self, queries=queries, corpus=corpus, given_corpus=given)

    @property
    def seconds_left(self) -> float | None:
        """Seconds left of the budget, at least one; None without a budget."""
        return None if self.max_seconds is None else max(1.0, self.max_seconds - (budget.now() - self.begun))

    def checkpoint(self, *parts: str | bytes, subfolder: str = "") -> Checkpoint | None:
        """Return the checkpoint of this run, or None if none is kept.

        It belongs to the data, the seed and the `parts` (settings, weights to start from); other runs refuse it.
        """
        if self.checkpoint_folder is None:
            return None
        key = hashlib.blake2b(digest_size=16)
        data = (self.queries.fingerprint(), self.corpus.fingerprint(), self.relevance_fingerprint())
        for part in (*data, str(self.seed), *parts):
            key.update((part.encode() if isinstance(part, str) else part) + b"|")
        from neuroseqret.training.checkpoint import Checkpoint  # here, as it imports torch

        return Checkpoint(self.checkpoint_folder / subfolder, key.hexdigest())

    def relevance_fingerprint(self) -> str:
        """Return the fingerprint of the labels, or "unlabelled" if there are none."""
        return self.relevance.fingerprint() if self.has_labels else "unlabelled"
