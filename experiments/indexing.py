"""Time the index: embed a corpus, make an index, open it, search it, on one core."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from neuroseqret.evaluation.protocol import RankingTask
from neuroseqret.index.index import Index
from neuroseqret.models.base import Embedder

ASKED = 100  # queries whose search is timed
FEW = 8  # sequences of the small index that is made first, untimed


def times(model: Embedder, task: RankingTask) -> dict[str, Any]:
    """Return the CPU times of embedding, indexing and single searches, and the wall-clock time of opening the index."""
    _warm_up(model, task)
    begun = time.process_time()
    model.embed(task.corpus, "corpus", unknown_marks="keep")
    embedding = time.process_time() - begun
    with tempfile.TemporaryDirectory() as place:
        begun = time.process_time()
        Index.create(model, Path(place) / "index", task.corpus).refresh()
        making = time.process_time() - begun
        wall = time.perf_counter()
        index = Index.open(Path(place) / "index")
        index.search(task.queries[0])
        opening = time.perf_counter() - wall
        spent = []
        for query in range(min(ASKED, len(task.queries))):
            begun = time.process_time()
            index.search(task.queries[query], k=10)
            spent.append(time.process_time() - begun)
        info = index.info()
    return {
        "sequences": len(task.corpus),
        "events": int(task.corpus.offsets[-1]),
        "candidates": info["candidates"],
        "embedding_cpu_seconds": round(embedding, 3),
        "index_cpu_seconds": round(making, 3),
        "open_seconds": round(opening, 4),
        "query_cpu_ms": round(1e3 * float(np.median(spent)), 3),
        "query_cpu_ms_p99": round(1e3 * float(np.quantile(spent, 0.99)), 3),
        "bytes_on_disk": info["bytes_on_disk"],
    }


def _warm_up(model: Embedder, task: RankingTask) -> None:
    """Embed and search a few sequences, so that what is compiled at its first use is not timed."""
    with tempfile.TemporaryDirectory() as place:
        Index.create(model, Path(place) / "index", task.corpus[:FEW]).refresh()
        index = Index.open(Path(place) / "index")
        for query in range(min(FEW, len(task.queries))):
            index.search(task.queries[query])
