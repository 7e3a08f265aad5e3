r"""Sharp: the sharp soft-DTW divergence, with gamma chosen on the validation queries.

.. math:: D_\gamma(a, b) = S_\gamma(a, b) - \tfrac12 S_\gamma(a, a) - \tfrac12 S_\gamma(b, b),

where S is the expected alignment cost under soft-DTW's distribution over alignments (`soft_dtw`). The two terms of a
and b with themselves subtract what blurred alignments cost even between equal series. The score of a pair is
:math:`-D_\gamma / \max(n, m)`: costs add up along the path, and dividing by its least possible length makes candidates
of different lengths comparable. Nothing else has to be done about lengths, since every alignment runs to both ends.

Inter-event times are divided by one number, their standard deviation over the corpus: the rate remains visible (unlike
in MASS and UDTW), and gamma means the same for seconds and for days.

Blondel, Mensch, Vert, "Differentiable divergences between time series", AISTATS 2021.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from neuroseqret.baselines.series import Series, SeriesBaseline, inter_event_times
from neuroseqret.baselines.settings import BaselineSettings
from neuroseqret.baselines.soft_dtw import sharp_costs
from neuroseqret.data.relevance import Relevance
from neuroseqret.data.sequences import EventSequences, FloatArray, IntArray
from neuroseqret.errors import UserError
from neuroseqret.measures.ranking_measures import mean_average_precision
from neuroseqret.models.card import ModelState, Outcome
from neuroseqret.training.task import TrainingTask

GAMMAS = (0.001, 0.01, 0.1, 1.0, 10.0)
_USUAL_GAMMA = 1.0  # the original's default, used where there is nothing to choose on
#: Cells of alignment tables that choosing gamma may fill, over all values: about 15 seconds on one core.
TUNING_CELLS = 2e9
CELLS_PER_SECOND = 5e7  # a cautious estimate, to turn a budget of seconds into cells
_TUNING_CANDIDATES = 1000


class SharpSettings(BaselineSettings):
    """What is given instead of being fitted; `gamma=None` lets `fit` choose it, `scale` is used until `fit`."""

    gamma: float | None = None
    scale: float | None = None


@dataclass(frozen=True)
class Scaled:
    """Scaled series, their order by length, and the cost of each with itself."""

    series: Series
    by_length: IntArray
    own: FloatArray


class Sharp(SeriesBaseline[Scaled]):
    """Ranks by the sharp soft-DTW divergence of the inter-event times; `gamma=None` lets `fit` choose it."""

    name: ClassVar[str] = "sharp"
    settings: SharpSettings

    def __init__(self, gamma: float | None = None, scale: float | None = None) -> None:
        if gamma is not None and not gamma > 0:
            raise UserError(f"gamma must be positive, not {gamma}")
        super().__init__(SharpSettings(gamma=gamma, scale=scale))
        self.gamma = _USUAL_GAMMA if gamma is None else gamma
        self.scale = scale

    def learn(self, task: TrainingTask) -> Outcome:
        """Take the scale from the corpus, and the gamma that ranks the validation queries best.

        Without validation queries or labels gamma is 1, the original's default.
        """
        self.scale, self._last = float(inter_event_times(task.corpus).values.std()) or 1.0, None
        if self.settings.gamma is not None:
            return Outcome({}, {})
        self.gamma = _USUAL_GAMMA
        judged = _tuning_part(task) if task.has_labels else None
        if judged is None:
            return Outcome({}, {})
        found = {gamma: self._quality(gamma, *judged) for gamma in GAMMAS}
        self.gamma = max(found, key=found.__getitem__)
        return Outcome.of("AP", found[self.gamma], tried={f"{gamma:g}": ap for gamma, ap in found.items()})

    def _quality(
        self, gamma: float, queries: EventSequences, candidates: EventSequences, relevance: Relevance
    ) -> float:
        trial = Sharp(gamma, self.scale)
        return mean_average_precision(trial.compute_scores(queries, candidates), relevance)

    def prepare(self, sequences: EventSequences) -> Scaled:
        gaps = inter_event_times(sequences)
        if self.scale is None:
            raise UserError("'sharp' has no scale; call fit, load a model folder, or give gamma and scale")
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

    def to_state(self) -> ModelState:
        return ModelState(self.trained_card(constants={"gamma": self.gamma, "scale": self.scale}), {})

    def restore(self, state: ModelState) -> None:
        self.gamma, self.scale = state.card.constants["gamma"], state.card.constants["scale"]


def _tuning_part(task: TrainingTask) -> tuple[EventSequences, EventSequences, Relevance] | None:
    """Validation queries, a part of the corpus and their relevance, as many queries as the allowed cells permit.

    None if no validation query has a relevant sequence in that part.
    """
    rng = np.random.default_rng(task.seed)
    listed = np.sort(rng.permutation(len(task.corpus))[:_TUNING_CANDIDATES])
    relevance = task.relevance.select_corpus(listed)
    rows = rng.permutation(task.validation_rows)
    rows = rows[relevance.counts[rows] > 0]
    if not len(rows):
        return None
    allowed = TUNING_CELLS if task.max_seconds is None else min(TUNING_CELLS, task.max_seconds * CELLS_PER_SECOND)
    cells = np.cumsum(task.queries.lengths[rows] * int(task.corpus.lengths[listed].sum()))
    rows = rows[: max(1, int(np.searchsorted(cells, allowed / len(GAMMAS), side="right")))]
    return task.queries[rows], task.corpus[listed], relevance.select_queries(rows)
