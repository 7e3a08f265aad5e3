"""CrossAttention: scores query and candidate together, and reranks what SelfAttention finds.

It is a first stage plus a correction, which the settings choose. In `default`, query and candidate attend to a memory
of relevant sets, and their agreement is added to the first stage's score (`memory_correction`). In `paper`, the score
is the query-conditioned Fisher kernel of the cross-attention point process (`process_correction`).
"""

from __future__ import annotations

from typing import ClassVar

from neuroseqret.models.cross.correction import Correction
from neuroseqret.models.cross.memory_correction import MemoryAgreement
from neuroseqret.models.cross.process_correction import ProcessKernel
from neuroseqret.models.cross.second_stage import SecondStage


class CrossAttention(SecondStage):
    """Scores query and candidate together. Use it to rerank the best hits of a `SelfAttention`.

    It has no embedding and cannot be indexed. `preset` is `default`, which corrects the first stage's score by a memory
    of relevant sets, or `paper` (`paper-health`, ...), the model of the paper. `first_stage` is a trained
    `SelfAttention`; without one, `fit` trains it. `overrides` replace settings, see `cross.presets.CrossSettings`.

    >>> first = SelfAttention().fit(queries, corpus)                            # doctest: +SKIP
    >>> cross = CrossAttention(first_stage=first).fit(queries, corpus)          # doctest: +SKIP
    >>> Index.create(first, "index", corpus).search(query, rerank=cross)        # doctest: +SKIP
    """

    name: ClassVar[str] = "cross"
    version: ClassVar[int] = 2
    preset_versions: ClassVar[dict[str, int]] = {"paper": 1}
    corrections: ClassVar[dict[str, type[Correction]]] = {"memory": MemoryAgreement, "process": ProcessKernel}
