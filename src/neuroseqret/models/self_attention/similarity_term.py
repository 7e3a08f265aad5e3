r"""Parts of the paper beside the kernel: queries under the unwarping U, and the term :math:`\gamma\, \mathrm{Sim}`."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch

from neuroseqret.data.batching import Batch, pad, rows_by_length
from neuroseqret.data.sequences import EventSequences
from neuroseqret.models.base import Scores
from neuroseqret.models.presets import SimilaritySettings
from neuroseqret.models.self_attention.network import MAX_EVENTS
from neuroseqret.processes.similarity import difference


def unwarped(unwarp: torch.nn.Module, queries: Batch) -> Batch:
    """Return the queries with U(t) for t; padding stays 0."""
    times, spans = unwarp(queries.times), unwarp(queries.spans)
    times = torch.where(queries.mask, times, torch.zeros_like(times))
    return replace(queries, times=times, spans=spans)


def with_similarity(
    kernel: Scores, asked: Batch, candidates: EventSequences, settings: SimilaritySettings, horizon: float
) -> Scores:
    """Return kappa + gamma * Sim for all pairs of unwarped queries and candidates; `settings.kernel` drops kappa."""
    scores = kernel * np.float32(settings.kernel)
    if settings.form != "none":
        for rows in rows_by_length(candidates.lengths, 64 * MAX_EVENTS):
            distance = difference(asked, pad(candidates, rows), settings.form, settings.terms, horizon)
            scores[:, rows] -= settings.gamma * distance.numpy().astype(np.float32)
    return scores
