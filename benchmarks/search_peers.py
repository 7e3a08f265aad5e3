"""The peers of the search benchmark: numpy, faiss, and dynamic time warping."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import faiss
import numpy as np
import numpy.typing as npt

from neuroseqret.candidates import make_hash
from neuroseqret.data.sequences import EventSequences

Vectors = npt.NDArray[np.float32]


def measure(corpus: Vectors, queries: Vectors, judge: Any, timed: Callable[..., Any]) -> dict[str, Any]:
    """Measure all peers that are quick to build."""
    dimension = corpus.shape[1]
    found: dict[str, Any] = {}

    def numpy_exhaustive(q: int) -> Any:
        scores = corpus @ queries[q]
        best = np.argpartition(-scores, 10)[:10]
        return best[np.argsort(-scores[best])]

    found["numpy exhaustive"], _ = timed(numpy_exhaustive, min(50, len(queries)))
    flat = faiss.IndexFlatIP(dimension)
    flat.add(corpus)
    found["faiss Flat"], _ = timed(lambda q: flat.search(queries[q : q + 1], 10)[1][0], min(50, len(queries)))
    found["faiss IVFFlat"] = _ivf(corpus, queries, judge, timed)
    found["faiss BinaryFlat + rescoring"] = _binary(corpus, queries, judge, timed)
    return found


def hnsw(corpus: Vectors, queries: Vectors, judge: Any, timed: Callable[..., Any]) -> dict[str, Any]:
    """Measure faiss HNSW, which takes minutes to build at 10^6."""
    begun = time.perf_counter()
    graph = faiss.IndexHNSWFlat(corpus.shape[1], 32, faiss.METRIC_INNER_PRODUCT)
    graph.hnsw.efConstruction = 40
    graph.add(corpus)
    seconds, curve = time.perf_counter() - begun, []
    for ef in (10, 16, 32, 64, 128, 256, 512):
        graph.hnsw.efSearch = ef
        speed, answers = timed(lambda q: graph.search(queries[q : q + 1], 10)[1][0], len(queries))
        curve.append({"efSearch": ef, **speed, **judge(np.stack(answers))})
    size = len(faiss.serialize_index(graph)) / len(corpus)
    return {"build_s": round(seconds, 2), "bytes_per_sequence": round(size, 1), "curve": curve}


def _ivf(corpus: Vectors, queries: Vectors, judge: Any, timed: Callable[..., Any]) -> dict[str, Any]:
    n, dimension = corpus.shape
    lists = max(16, int(4 * np.sqrt(n)))
    begun = time.perf_counter()
    quantiser = faiss.IndexFlatIP(dimension)
    index = faiss.IndexIVFFlat(quantiser, dimension, lists, faiss.METRIC_INNER_PRODUCT)
    index.cp.niter = 8
    index.train(corpus[:: max(1, n // (64 * lists))])
    index.add(corpus)
    seconds, curve = time.perf_counter() - begun, []
    for probes in (1, 2, 4, 8, 16, 32, 64, 128):
        index.nprobe = probes
        speed, answers = timed(lambda q: index.search(queries[q : q + 1], 10)[1][0], len(queries))
        curve.append({"nprobe": probes, **speed, **judge(np.stack(answers))})
    return {"build_s": round(seconds, 2), "lists": lists, "curve": curve}


def _binary(corpus: Vectors, queries: Vectors, judge: Any, timed: Callable[..., Any]) -> dict[str, Any]:
    hashing = make_hash("rotation").fit(corpus[:: max(1, len(corpus) // 50_000)])
    index = faiss.IndexBinaryFlat(64)
    index.add(hashing.encode(corpus).view(np.uint8))
    codes = hashing.encode(queries).view(np.uint8)
    curve = []
    for fraction in (0.001, 0.005, 0.01):
        wanted = max(10, int(fraction * len(corpus)))

        def ask(q: int, wanted: int = wanted) -> Any:
            rows = index.search(codes[q : q + 1], wanted)[1][0]
            scores = corpus[rows] @ queries[q]
            best = np.argpartition(-scores, min(10, len(scores) - 1))[:10]
            return rows[best[np.argsort(-scores[best])]]

        speed, answers = timed(ask, len(queries))
        curve.append({"fraction": fraction, **speed, **judge(np.stack(answers))})
    return {"curve": curve}


def dtw(n: int, sequences: EventSequences | None, pairs: int = 300) -> dict[str, Any]:
    """Time dynamic time warping of the gaps on some pairs, and extrapolate to the whole corpus."""
    from dtaidistance import dtw as dtaidistance

    rng = np.random.default_rng(0)
    if sequences is None:
        gaps = [rng.lognormal(size=60) for _ in range(pairs + 1)]
    else:
        gaps = [np.log1p(np.diff(sequences[int(i)].times)) for i in rng.integers(0, len(sequences), pairs + 1)]
    begun = time.perf_counter()
    for other in gaps[1:]:
        dtaidistance.distance_fast(gaps[0], other)
    each = (time.perf_counter() - begun) / pairs
    return {"p50_ms": round(each * n * 1e3, 1), "extrapolated": f"from {pairs} pairs at {each * 1e6:.0f} us"}
