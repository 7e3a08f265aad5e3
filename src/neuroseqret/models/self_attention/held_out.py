"""Divisions of the training data: what a first fit of the metric learns from, and what ranks the sequences left out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from neuroseqret.data.relevance import Relevance
from neuroseqret.data.sequences import IntArray
from neuroseqret.data.splits import source_codes, unseen_part
from neuroseqret.models.presets import SelfAttentionSettings
from neuroseqret.models.self_attention.vectors import some_rows
from neuroseqret.training.task import TrainingTask

_MOST_QUERIES = 400
_MOST_RANKED = 2000  # left-out corpus sequences


@dataclass(frozen=True)
class HeldOut:
    """A division of the data: what a first fit learns from, and who ranks what it has not seen."""

    number: int
    kept: IntArray  # train queries to learn from
    seen: IntArray  # corpus rows to learn from
    learned: Relevance  # of all queries to `seen`
    unseen: IntArray  # corpus rows that are ranked
    asked: IntArray  # queries that rank them
    pseudo: IntArray  # corpus rows that rank them as well
    truth: Relevance  # of `asked`, then `pseudo`, to `unseen`
    hidden: npt.NDArray[np.bool_]  # what `pseudo` must not find

    @property
    def phase(self) -> str:
        """The name of the training phase."""
        return f"selection_{self.number}" if self.number else "selection"

    @property
    def queries(self) -> IntArray:
        """A number for every query that ranks, the same in every division."""
        return np.concatenate([self.asked, -1 - self.pseudo])


def hold_out(task: TrainingTask, settings: SelfAttentionSettings, number: int = 0) -> HeldOut | None:
    """Return a division of the data; None if there is too little."""
    assert settings.selection is not None
    own = [number] if number else []
    rng, share = np.random.default_rng([task.seed, 8, *own]), settings.selection.held_out
    held = unseen_part(task.corpus, share, task.seed + 50 + 1000 * number)
    shuffled = rng.permutation(task.answerable_train_rows)
    out, kept = np.split(shuffled, [round(share * len(shuffled))])
    seen, unseen = np.flatnonzero(~held), np.flatnonzero(held)
    unseen = some_rows(unseen, _MOST_RANKED, rng)
    learned = task.relevance.select_corpus(seen)
    if not len(unseen) or not (learned.counts[kept] > 0).any():
        return None
    asked = np.concatenate([out, task.validation_rows])
    truth = task.relevance.select_corpus(unseen)
    asked = some_rows(asked[truth.counts[asked] > 0], _MOST_QUERIES // 2, rng)
    pseudo, pseudo_truth, hidden = _pseudo_queries(task, unseen, _MOST_QUERIES - len(asked), rng)
    truth = truth.select_queries(asked).followed_by(Relevance.of_table(pseudo_truth))
    return HeldOut(number, np.sort(kept), seen, learned, unseen, asked, pseudo, truth, hidden)


def _pseudo_queries(
    task: TrainingTask, unseen: IntArray, number: int, rng: np.random.Generator
) -> tuple[IntArray, npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """Return left-out corpus rows that act as queries, what is relevant to them, and what they must not find.

    They must not find themselves, nor other sequences of their source. Both tables are (rows, unseen).
    """
    labels = task.relevance.labels
    if labels is None or number <= 0:
        nothing = np.zeros((0, len(unseen)), bool)
        return np.empty(0, np.int64), nothing, nothing
    sources = source_codes(task.corpus)[unseen]
    rows = some_rows(np.arange(len(unseen)), 2 * number, rng)
    hidden = sources[rows, None] == sources
    relevant = (labels[unseen[rows], None] == labels[unseen]) & (labels[unseen[rows], None] >= 0) & ~hidden
    useful = np.flatnonzero(relevant.any(1))[:number]
    return unseen[rows[useful]], relevant[useful], hidden[useful]
