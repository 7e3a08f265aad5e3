r"""Model-independent similarity of times and marks: :math:`\mathrm{Sim} = -\Delta_t - \Delta_x`.

With :math:`m = \min(|H_q|, |H_c|)`, events numbered from 1 and :math:`T = \max(T_q, T_c)`

.. math:: \Delta_t = \sum_{i \le m} |t^q_i - t^c_i| + \sum_{i > m} (T - t_i), \qquad
          \Delta_x = \sum_{i \le m} [x^q_i \ne x^c_i] + \bigl| |H_q| - |H_c| \bigr|

(the second sum runs over the remaining events of the longer sequence). `literal` is exactly this; its values are in the
hundreds for ordinary data. The other two divide both terms by the longer length, that is, by the number of events
compared, and times by a duration, so that each lies in [0, 1]: `normalised` takes the T of the pair, and `horizon` the
longest T of the data,

.. math:: \Delta_t = \frac{1}{\max(|H_q|, |H_c|)} \Bigl[ \sum_{i \le m} \frac{|t^q_i - t^c_i|}{T_{\max}}
          + \sum_{i > m} \frac{T - t_i}{T_{\max}} \Bigr], \qquad
          \Delta_x = \frac{1}{\max(|H_q|, |H_c|)} \Bigl[ \sum_{i \le m} [x^q_i \ne x^c_i]
          + \bigl| |H_q| - |H_c| \bigr| \Bigr]

A sequence that is longer than all of the data that T_max was taken from is at most at a distance of 1.
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from neuroseqret.data.batching import Batch

Form = Literal["literal", "normalised", "horizon"]

_NUMBERS = 1 << 23  # numbers in one (candidates, events) table, 64 MB; candidates are padded to the query's length


def deltas(query: Batch, candidates: Batch, form: Form = "normalised", horizon: float = 1.0) -> tuple[Tensor, Tensor]:
    """Return Delta_t and Delta_x of every query and candidate: two (Q, C) float64. Works on one query at a time.

    `horizon` is T_max of the form of that name.
    """
    together = max(1, _NUMBERS // max(query.times.shape[1], candidates.times.shape[1], 1))
    parts = [rows_of(candidates, slice(k, k + together)) for k in range(0, max(len(candidates), 1), together)]
    found = [[_one_query(query, q, part, form, horizon) for part in parts] for q in range(len(query))]
    delta_t, delta_x = (torch.stack([torch.cat([part[k] for part in row]) for row in found]) for k in (0, 1))
    return delta_t, delta_x


def difference(
    query: Batch,
    candidates: Batch,
    form: Form = "normalised",
    terms: Literal["both", "times", "marks"] = "both",
    horizon: float = 1.0,
) -> Tensor:
    """Return -Sim, or one of its two terms: (Q, C) float64."""
    delta_t, delta_x = deltas(query, candidates, form, horizon)
    return {"both": delta_t + delta_x, "times": delta_t, "marks": delta_x}[terms]


def _one_query(query: Batch, q: int, candidates: Batch, form: Form, horizon: float) -> tuple[Tensor, Tensor]:
    n = int(query.lengths[q])
    width = max(n, candidates.times.shape[1])
    times, marks = _wide(query.times[q : q + 1, :n], width), _wide(query.marks[q : q + 1, :n], width)
    other_times, other_marks = _wide(candidates.times, width), _wide(candidates.marks, width)
    here = torch.arange(width) < n  # (W,)
    there = torch.arange(width) < candidates.lengths[:, None]  # (C, W)
    both = here & there
    end = torch.maximum(query.spans[q], candidates.spans)  # (C,) T
    overlap = ((times - other_times).abs() * both).sum(1)
    rest = (end[:, None] - torch.where(there, other_times, times)) * (here ^ there)
    delta_t = overlap + rest.sum(1)
    delta_x = ((marks != other_marks) & both).sum(1) + (candidates.lengths - n).abs()
    if form == "literal":
        return delta_t, delta_x.double()
    longer = candidates.lengths.clamp(min=n).clamp(min=1)
    if form == "horizon":
        return (delta_t / (longer * horizon)).clamp(max=1.0), delta_x / longer.double()
    return delta_t / (longer * torch.where(end > 0, end, torch.ones_like(end))), delta_x / longer.double()


def rows_of(batch: Batch, rows: slice) -> Batch:
    """Return some sequences of a batch."""
    return Batch(batch.rows[rows], batch.times[rows], batch.marks[rows], batch.lengths[rows], batch.spans[rows])


def _wide(values: Tensor, width: int) -> Tensor:
    return torch.nn.functional.pad(values, (0, width - values.shape[1]))
