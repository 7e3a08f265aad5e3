r"""Split the score of two sequences over pairs of their events.

The vector of a sequence is a sum over its events plus a rest that belongs to the sequence as a whole,
:math:`v = \sum_i v_i + v_0` (see `shares`). Without a metric head, :math:`\kappa = \langle v^q, v^c \rangle` splits
exactly:

.. math:: \kappa = \sum_{i,j} \langle v^q_i, v^c_j \rangle.

With the head :math:`u(v) = W_2^\top \mathrm{relu}(W_1^\top v + b_1) + b_2` the parts are integrated gradients along the
straight line from 0, the average sequence, to v. Along this line a hidden unit k with :math:`p_k = (W_1^\top v)_k` is
linear with one kink, so the integral has a closed form: the unit passes on the share

.. math:: \varphi_k = \frac{\mathrm{relu}(p_k + b_k) - \mathrm{relu}(b_k)}{p_k}

of its input, and :math:`a_i = W_2^\top (\varphi \circ W_1^\top v_i) / \lVert u(v) \rVert`. The output for the average
sequence, :math:`u(0) / \lVert u(v) \rVert`, is added to the rest. Then :math:`\sum_i a_i + a_0` is the embedding and
:math:`\sum_{ij} \langle a^q_i, a^c_j \rangle` the score, both exactly.

A second stage adds to this score. Its cross attention between events is a sum over pairs of events (see
`processes.event_attention`), which is added to them; the agreement or divergence of attentions to the memory belongs to
the two sequences as a whole.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import torch
from torch import Tensor

from neuroseqret.data.batching import pad
from neuroseqret.data.durations import moment
from neuroseqret.data.frames import frame_of_pandas
from neuroseqret.data.meaning import UnknownMarks
from neuroseqret.data.sequence import EventSequence
from neuroseqret.data.sequences import EventSequences, FloatArray
from neuroseqret.data.timelines import mark_name
from neuroseqret.errors import UserError
from neuroseqret.explanation.integrated_gradients import through_metric
from neuroseqret.explanation.second_stage_shares import second_stage_shares
from neuroseqret.explanation.shares import vector_shares
from neuroseqret.index.hit import Hit
from neuroseqret.models.base import RelevanceModel, Role
from neuroseqret.models.cross.memory_correction import MemoryCorrection
from neuroseqret.models.cross.second_stage import SecondStage
from neuroseqret.models.self_attention.model import SelfAttention
from neuroseqret.processes.features import PARTS
from neuroseqret.readers.coercion import ColumnMap, Given, as_sequences
from neuroseqret.readers.frame import as_table

if TYPE_CHECKING:
    import pandas
    from matplotlib.figure import Figure

Matrix = npt.NDArray[np.float64]


@dataclass(frozen=True, repr=False)
class Explanation:
    """The score of a query and a hit, split into parts: `matrix.sum() + similarity == score`.

    - `matrix` has the shape (query events + 1, hit events + 1). Entry (i, j) is the part that query event i and hit
      event j give together; the last row and the last column hold what comes from no single event.
    - `parts` splits the same sum by what was compared: marks, times, both together, properties of the whole sequence
      such as its length and mean gap; for a second stage also what its memory and its attention between events add.
    - `similarity` is the model-independent term of the score, which is not split (0 if the model has none).
    - `unwarping` is (t, U(t)) for the query's events if the model unwarps queries, else None.
    """

    query: EventSequence
    hit: EventSequence
    score: float
    matrix: Matrix
    parts: dict[str, float]
    similarity: float = 0.0
    unwarping: tuple[FloatArray, FloatArray] | None = None

    def __repr__(self) -> str:
        parts = ", ".join(f"{name} {value:+.3f}" for name, value in self.parts.items())
        return f"Explanation({self.query.id!r}, {self.hit.id!r}, score {self.score:.3f}: {parts})"

    def plot(self) -> Figure:
        """Draw both sequences with the part of every event, all pairs, and the parts by kind: a Matplotlib figure."""
        from neuroseqret.explanation.picture import figure_of

        return figure_of(self)

    @property
    def pairs(self) -> Matrix:
        """Part of the score that each pair of events gives: (query events, hit events)."""
        return self.matrix[:-1, :-1]

    @property
    def of_query_events(self) -> FloatArray:
        """Part of the score that each event of the query gives together with the whole hit."""
        return self.matrix[:-1].sum(1)

    @property
    def of_hit_events(self) -> FloatArray:
        """Part of the score that each event of the hit gives together with the whole query."""
        return self.matrix[:, :-1].sum(0)

    def strongest(self, number: int = 10) -> list[tuple[int, int, float]]:
        """Return the pairs of events with the largest parts: (query event, hit event, part), largest first."""
        flat = np.argsort(-self.pairs, axis=None, kind="stable")[:number]
        rows, columns = np.unravel_index(flat, self.pairs.shape)
        return [(int(i), int(j), float(self.pairs[i, j])) for i, j in zip(rows, columns, strict=True)]

    def to_pandas(self, number: int = 10) -> pandas.DataFrame:
        """Return the pairs of events with the largest parts as a data frame, with the marks and times of both events.

        The part of one pair may be larger than the score, because other pairs take away from it.
        """
        rows = [
            {**_told("query", self.query, i), **_told("hit", self.hit, j), "part": part}
            for i, j, part in self.strongest(number)
        ]
        return frame_of_pandas(pa.Table.from_pylist(rows))


def _told(whose: str, sequence: EventSequence, event: int) -> dict[str, str | int]:
    """Return number, mark and time of an event, by the names of their columns."""
    when = moment(float(sequence.times[event]), sequence.time_unit)
    mark = mark_name(sequence, int(sequence.marks[event]))
    return {f"{whose} event": event, f"{whose} mark": mark, f"{whose} time": when}


def explainable(model: RelevanceModel) -> SelfAttention:
    """Return the model whose embeddings are explained: the model, or its first stage; otherwise raise a `UserError`."""
    if not isinstance(model, RelevanceModel):
        raise UserError(f"explain takes a model first, such as index.model, not {type(model).__name__}")
    if isinstance(model, SecondStage) and isinstance(getattr(model, "correction", None), MemoryCorrection):
        return explainable(model.first_stage)
    if not isinstance(model, SelfAttention):
        instead = "explain its first stage instead" if isinstance(model, SecondStage) else "search with a 'self' model"
        raise UserError(
            "only a 'self' model and second stages of preset 'default' can be explained, and this is "
            f"{model.name!r}; {instead}"
        )
    if model.settings.vector.fisher == "all":
        raise UserError(
            "Fisher vectors over all parameters do not split over events; fit the model with fisher 'heads'"
        )
    return model


def explained_by(model: RelevanceModel, reranker: RelevanceModel | None) -> RelevanceModel:
    """Return the model whose scores explain the hits of a search: the reranking one if they split, or the index's."""
    if reranker is not None:
        with suppress(UserError):
            explainable(reranker)
            return reranker
    return model


@torch.no_grad()
def explain(
    model: RelevanceModel,
    query: Given,
    hit: Given | Hit,
    *,
    columns: ColumnMap | None = None,
    unknown_marks: UnknownMarks = "error",
) -> Explanation:
    """Split `model.score(query, hit)` over pairs of events; for `SelfAttention` and for second stages on top of it.

    `hit` is one of the hits of a search, or any sequence. `columns` names the columns of data frames (as in `read`);
    `unknown_marks` is as in `score`. For a reranked hit, `model` is the model that reranked it.
    """
    first = explainable(model)
    query = model.meaning.apply(_one(query, "query", columns), unknown_marks)[0]
    found = EventSequences.of(hit.sequence) if isinstance(hit, Hit) else _one(hit, "hit", columns)
    hit = model.meaning.apply(found, "keep" if isinstance(hit, Hit) else unknown_marks)[0]
    (of_query, query_parts), (of_hit, hit_parts) = _shares(first, query, "query"), _shares(first, hit, "corpus")
    matrix = (of_query @ of_hit.T).numpy()
    score = float(model.score(query, hit, unknown_marks="keep")[0])
    # The kernel split by what was compared, once by the query's parts and once by the hit's; take the mean.
    whole_query, whole_hit = of_query.sum(0), of_hit.sum(0)
    by_part = (query_parts @ whole_hit + hit_parts @ whole_query) / 2
    parts = dict(zip(PARTS, by_part.tolist(), strict=True))
    if isinstance(model, SecondStage):
        added = second_stage_shares(model, query, hit)
        parts |= {name: float(one.sum()) for name, one in added.items()}
        matrix = matrix + sum(added.values())
    unwarping = None
    if first.network.unwarp is not None:
        batch = pad(EventSequences.of(query))
        unwarping = batch.times[0].numpy(), first.unwarped(batch, "query").times[0].numpy()
    return Explanation(
        query,
        hit,
        score,
        matrix,
        parts,
        similarity=score - float(matrix.sum()) if first.settings.similarity.form != "none" else 0.0,
        unwarping=unwarping,
    )


def _one(given: Given, what: str, columns: ColumnMap | None) -> EventSequences:
    """Return the one sequence that was given as a query or hit; `columns` counts where it is a frame."""
    if isinstance(given, (list, tuple)) and given and all(isinstance(item, Hit) for item in given):
        raise UserError(f"explain takes one {what}, not {len(given)}; choose one of the hits, such as hits[0]")
    sequences = as_sequences(given, what, columns if as_table(given) is not None else None)
    if len(sequences) != 1:
        raise UserError(f"explain takes one {what}, not {len(sequences)}; choose one of them, such as {what}[0]")
    return sequences


def _shares(model: SelfAttention, sequence: EventSequence, role: Role) -> tuple[Tensor, Tensor]:
    """Return the embedding split over events and rest (events + 1, D), and split over parts (len(PARTS), D)."""
    shares, kinds = vector_shares(model, sequence, role)  # (events + 1, size), (size,)
    masked = torch.stack([shares.sum(0) * (kinds == kind) for kind in range(len(PARTS))])
    both, offset = through_metric(model.network.metric, torch.cat([shares, masked]), shares.sum(0), role)
    events, parts = both[: len(shares)], both[len(shares) :]
    events[-1] += offset
    parts[-1] += offset
    return events, parts
