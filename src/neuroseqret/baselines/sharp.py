r"""Sharp: the sharp soft-DTW divergence, with gamma chosen on the validation queries.

.. math:: D_\gamma(a, b) = S_\gamma(a, b) - \tfrac12 S_\gamma(a, a) - \tfrac12 S_\gamma(b, b),

S the expected alignment cost under soft-DTW's distribution over alignments (`soft_dtw`). The terms of a and b with
themselves take away what blurred alignments cost even between equal series. The pair's score is
:math:`-D_\gamma / \max(n, m)`: costs add up along the path, and dividing by its least length lets candidates of
unequal lengths be compared; otherwise unequal lengths need no care, since every alignment ends at both ends.

Inter-event times are divided by their standard deviation over the corpus, one number for all: rate remains visible
(unlike in MASS and UDTW), and gamma means the same for seconds and for days.

Blondel, Mensch, Vert, "Differentiable divergences between time series", AISTATS 2021.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from typing_extensions import Self

from neuroseqret.baselines.series import Series, SeriesBaseline, inter_event_times
from neuroseqret.baselines.soft_dtw import sharp_costs
from neuroseqret.data.relevance import Relevance
from neuroseqret.data.sequences import EventSequences, FloatArray, IntArray
from neuroseqret.data.splits import ensure_split, split_rows_if_any
from neuroseqret.errors import UserError
from neuroseqret.measures.ranks import mean_average_precision

GAMMAS = (0.001, 0.01, 0.1, 1.0, 10.0)
#: Cells of alignment tables that choosing gamma may fill, over all values: about 15 seconds of one core.
TUNING_CELLS = 2e9
CELLS_PER_SECOND = 5e7  # a careful guess, for a given budget of seconds
_TUNING_CANDIDATES = 1000


@dataclass(frozen=True)
class Scaled:
    """Scaled series, their order by length, and the cost of each with itself."""

    series: Series
    by_length: IntArray
    own: FloatArray


class Sharp(SeriesBaseline[Scaled]):
    """Ranks by the sharp soft-DTW divergence of the inter-event times; `gamma=None` lets `fit` choose it."""

    name = "sharp"

    def __init__(self, gamma: float | None = None, scale: float | None = None) -> None:
        super().__init__()
        if gamma is not None and not gamma > 0:
            raise UserError(f"gamma must be positive, not {gamma}")
        self._given = gamma
        self.gamma = 1.0 if gamma is None else gamma
        self.scale = scale

    def settings(self) -> dict[str, Any]:
        return {"gamma": self.gamma, "scale": self.scale}

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
        """Take the scale from the corpus and the gamma that ranks the validation queries best.

        Without validation queries gamma is 1, the original's default.
        """
        super().fit(queries, corpus, relevance, seed=seed)
        self.scale, self._last = float(inter_event_times(corpus).values.std()) or 1.0, None
        if self._given is None:
            queries = ensure_split(queries, seed)
            relevance = Relevance.from_groups(queries, corpus) if relevance is None else relevance
            judged = self._tuning_task(queries, corpus, relevance, seed, max_seconds)
            if judged is not None:
                found = {gamma: self._quality(gamma, *judged) for gamma in GAMMAS}
                self.gamma, self._last = max(found, key=found.__getitem__), None
                self.info["validation"] = {"AP": found[self.gamma]}
        return self

    @staticmethod
    def _tuning_task(
        queries: EventSequences, corpus: EventSequences, relevance: Relevance, seed: int, max_seconds: float | None
    ) -> tuple[EventSequences, EventSequences, Relevance] | None:
        """Validation queries against a part of the corpus, as many as the allowed number of cells gives room for."""
        rng = np.random.default_rng(seed)
        listed = np.sort(rng.permutation(len(corpus))[:_TUNING_CANDIDATES])
        relevance = relevance.select_corpus(listed)
        rows = rng.permutation(split_rows_if_any(queries, "validation"))
        rows = rows[relevance.counts[rows] > 0]
        if not len(rows):
            return None
        allowed = TUNING_CELLS if max_seconds is None else min(TUNING_CELLS, max_seconds * CELLS_PER_SECOND)
        cells = np.cumsum(queries.lengths[rows] * int(corpus.lengths[listed].sum()))
        rows = rows[: max(1, int(np.searchsorted(cells, allowed / len(GAMMAS), side="right")))]
        return queries[rows], corpus[listed], relevance.select_queries(rows)

    def _quality(
        self, gamma: float, queries: EventSequences, candidates: EventSequences, relevance: Relevance
    ) -> float:
        trial = Sharp(gamma, self.scale)
        return mean_average_precision(trial.score(queries, candidates), relevance)

    def prepare(self, sequences: EventSequences) -> Scaled:
        gaps = inter_event_times(sequences)
        if self.scale is None:
            raise UserError("sharp has no scale yet: fit it, or give one with gamma")
        series = Series(gaps.values / self.scale, gaps.offsets)
        by_length = np.argsort(series.lengths, kind="stable")
        own = np.empty(len(series))
        own[by_length] = self._costs(series, by_length, series, by_length)
        return Scaled(series, by_length, own)

    def compare(self, queries: Scaled, candidates: Scaled) -> FloatArray:
        a, b = queries.series, candidates.series
        divergence = np.empty((len(a), len(b)))
        for row in range(len(a)):
            rows = np.full(len(b), row)
            divergence[row, candidates.by_length] = self._costs(a, rows, b, candidates.by_length)
        divergence -= 0.5 * queries.own[:, None] + 0.5 * candidates.own
        longer: IntArray = np.maximum(a.lengths[:, None], b.lengths)
        return -divergence / longer

    def _costs(self, a: Series, a_rows: IntArray, b: Series, b_rows: IntArray) -> FloatArray:
        """Sharp costs of pairs of rows."""
        room = int(max(a.lengths.max(initial=0), b.lengths.max(initial=0)))
        costs: FloatArray = sharp_costs(a.values, a.offsets, a_rows, b.values, b.offsets, b_rows, self.gamma, room)
        return costs
