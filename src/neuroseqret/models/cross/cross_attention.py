"""CrossAttention: scores query and candidate together, and reranks what SelfAttention finds.

It is a first stage plus a correction, which the settings choose. In `default`, the events of query and candidate attend
to one another, both attend to a memory of relevant sets, and what agrees is added to the first stage's score
(`event_correction`). In `paper`, the score is the query-conditioned Fisher kernel of the cross-attention point process
(`process_correction`).
"""

from __future__ import annotations

from typing import ClassVar

from neuroseqret.models.cross.correction import Correction
from neuroseqret.models.cross.event_correction import EventAgreement
from neuroseqret.models.cross.process_correction import ProcessKernel
from neuroseqret.models.cross.second_stage import SecondStage


class CrossAttention(SecondStage):
    """Scores query and candidate together. Use it to rerank the best hits of a `SelfAttention`.

    It has no embedding and cannot be indexed. `preset` is `default`, which corrects the first stage's score by cross
    attention between events and by a memory of relevant sets, `paper` (`paper-health`, ...), the model of the paper,
    or `paper-literal`, its sums to the letter.
    `first_stage` is a trained `SelfAttention`; without one, `fit` trains it. `overrides` replace settings, see
    `cross.presets.CrossSettings`.

    For example:

        first = SelfAttention().fit(queries, corpus)
        cross = CrossAttention(first_stage=first).fit(queries, corpus)
        Index.create(first, "index", corpus).search(query, rerank=cross)
    """

    name: ClassVar[str] = "cross"
    version: ClassVar[int] = 4
    preset_versions: ClassVar[dict[str, int]] = {"paper-literal": 1, "paper": 5}
    corrections: ClassVar[dict[str, type[Correction]]] = {"memory": EventAgreement, "process": ProcessKernel}
