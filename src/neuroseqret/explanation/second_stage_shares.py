"""What a second stage adds to the score of its first stage, split over pairs of events.

- `memory`: agreement or divergence of the attentions to the memory. It belongs to the two sequences as a whole.
- `attention between events`: the strength times the shares of `processes.event_attention.shares`. An event of a long
  sequence that has no local state (see `processes.local_states.spread`) has no share.

Terms of strength zero are left out.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from neuroseqret.data.sequence import EventSequence
from neuroseqret.data.sequences import EventSequences
from neuroseqret.models.cross.event_correction import SHARPNESS, EventAgreement
from neuroseqret.models.cross.memory_correction import MemoryCorrection
from neuroseqret.models.cross.second_stage import SecondStage
from neuroseqret.processes.event_attention import shares

Matrix = npt.NDArray[np.float64]

MEMORY, ATTENTION = "memory", "attention between events"


def second_stage_shares(model: SecondStage, query: EventSequence, hit: EventSequence) -> dict[str, Matrix]:
    """Return the matrices (query events + 1, hit events + 1) that are added to that of the first stage, by name."""
    correction, found = model.correction, {}
    asked, offered = EventSequences.of(query), EventSequences.of(hit)
    size = len(query) + 1, len(hit) + 1
    assert isinstance(correction, MemoryCorrection)
    if correction.strength:
        found[MEMORY] = np.zeros(size)
        found[MEMORY][-1, -1] = correction.of_memory(asked, offered)
    if isinstance(correction, EventAgreement) and correction.event_strength and correction.states is not None:
        states = correction.states
        (x, _, rows), (y, _, columns) = states.kept(asked), states.kept(offered)
        found[ATTENTION] = np.zeros(size)
        found[ATTENTION][np.ix_(rows, columns)] = correction.event_strength * shares(x, y, SHARPNESS)
    return found
