"""CrossAttention: looks at query and candidate together; reranks what SelfAttention finds.

`default` adds the agreement of the two sequences' attention to a memory of relevant sets (see `memory_correction`).
`paper` is the cross-attention point process with its query-conditioned Fisher kernel (see `process_correction`).
"""

from __future__ import annotations

from typing import ClassVar

from neuroseqret.models.cross.correction import Correction
from neuroseqret.models.cross.memory_correction import MemoryAgreement
from neuroseqret.models.cross.process_correction import ProcessKernel
from neuroseqret.models.cross.second_stage import SecondStage


class CrossAttention(SecondStage):
    """Looks at query and candidate together: use it to put the best hits of a `SelfAttention` in a new order.

    It has no embedding and cannot be indexed. `preset` is `default`, a correction of the first stage's score that is
    not the paper's model, or `paper`, which is; without `first_stage` (a trained `SelfAttention`) `fit` trains one.

    >>> first = SelfAttention().fit(queries, corpus)                            # doctest: +SKIP
    >>> cross = CrossAttention(first_stage=first).fit(queries, corpus)          # doctest: +SKIP
    >>> Index.create(first, "index", corpus).search(query, rerank=cross)        # doctest: +SKIP
    """

    name: ClassVar[str] = "cross"
    corrections: ClassVar[dict[str, type[Correction]]] = {"memory": MemoryAgreement, "process": ProcessKernel}
