"""The index as a whole in the search benchmark: building, opening, searching from raw events, memory and disk."""

from __future__ import annotations

import multiprocessing
import resource
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import psutil

from neuroseqret import methods
from neuroseqret.errors import UserError
from neuroseqret.index import Index
from neuroseqret.index.folder import IndexConfig, create_folder, make_settings
from neuroseqret.index.lance_store import LanceStore
from neuroseqret.index.rows import base_schema
from neuroseqret.index.view import View
from neuroseqret.models.base import Embedder
from neuroseqret.models.folder import write_model
from neuroseqret.readers import read_folder
from neuroseqret.sequences import EventSequences

Vectors = npt.NDArray[np.float32]
BATCH = 8192


@dataclass(frozen=True)
class Real:
    """A data folder as a trained model sees it."""

    model: Embedder
    corpus: EventSequences
    queries: EventSequences
    corpus_vectors: Vectors
    query_vectors: Vectors
    labels: Any
    query_labels: Any

    @classmethod
    def load(cls, model: Path, data: Path, number: int) -> Real:
        embedder, folder = methods.load(model), read_folder(data)
        assert isinstance(embedder, Embedder)
        assert folder.relevance is not None
        assert folder.queries is not None
        rows = folder.test[:number]
        queries = folder.queries[rows]
        return cls(
            embedder,
            folder.corpus,
            queries,
            embedder.embed(folder.corpus),
            embedder.embed(queries, "query"),
            folder.relevance.labels,
            folder.relevance.query_labels[rows],  # type: ignore[index]
        )


class Given(Embedder):
    """Embeddings that are there already, by row number in the id: filling an index then costs no model."""

    name = "given"

    def __init__(self, corpus: Vectors, queries: Vectors) -> None:
        self.corpus, self.queries = corpus, queries

    def fit(self, *_: Any, **__: Any) -> Given:
        return self

    def embed(self, sequences: Any, role: str = "corpus") -> Vectors:
        rows = np.array(EventSequences.of(sequences).ids.to_pylist()).astype(np.int64)
        return (self.queries if role == "query" else self.corpus)[rows]

    def save(self, folder: str | PathLike[str]) -> Path:
        return write_model(folder, "self", {}, {})

    @classmethod
    def load(cls, folder: str | PathLike[str]) -> Given:
        raise UserError(f"{folder}: holds no embeddings, they were given in memory; pass the model to Index.open")


def batches(n: int, real: Real | None, seed: int = 0) -> Iterator[EventSequences]:
    """n sequences of about 60 events in batches: real ones with jittered times, or random ones; ids are row numbers."""
    rng = np.random.default_rng(seed)
    for begin in range(0, n, BATCH):
        rows = np.arange(begin, min(begin + BATCH, n))
        ids = [str(row) for row in rows]
        if real is None:
            times = rng.exponential(size=(len(rows), 60)).cumsum(1)
            marks, cuts = rng.integers(0, 5, times.size), np.arange(len(rows) + 1) * 60
            yield EventSequences.from_arrays(times.ravel(), marks, cuts, ids=ids, validate=False)
        else:
            part = real.corpus[rows % len(real.corpus)]
            times = part.times * (1 + 1e-3 * rng.random(len(part.times)))
            yield EventSequences.from_arrays(times, part.marks, part.offsets, ids=ids, validate=False)


def peak_of_build(folder: str, ready: Any) -> None:
    """In a process of its own: seconds and peak memory of deriving the hot structure."""
    from neuroseqret.index.folder import read_config

    target = Path(folder)
    config, store = read_config(target), LanceStore.open(target / "store")
    before = psutil.Process().memory_info().rss
    begun = time.perf_counter()
    View(target, store, config).snapshot()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    ready.send((time.perf_counter() - begun, peak - before))


def measure(
    folder: Path, corpus: Vectors, queries: Vectors, timed: Callable[..., Any], real: Real | None, rerank: Path | None
) -> dict[str, Any]:
    n, dimension = corpus.shape
    given, target, found = Given(corpus, queries), folder / "index", {}
    config = IndexConfig(model="self", dimension=dimension, settings=make_settings({}))

    def fill(temporary: Path) -> IndexConfig:
        given.save(temporary / "model")
        LanceStore.create(temporary / "store", base_schema(dimension))
        return config

    create_folder(target, fill)
    index = Index(target, config, LanceStore.open(target / "store"), given)
    spent = []
    for batch in batches(n, real):
        begun = time.perf_counter()
        index.add(batch)
        spent.append((time.perf_counter() - begun) / len(batch))
    quarter = max(1, len(spent) // 4)
    found["add_us_per_sequence"] = {
        "mean": round(1e6 * float(np.mean(spent)), 1),
        "first_quarter": round(1e6 * float(np.median(spent[:quarter])), 1),
        "last_quarter": round(1e6 * float(np.median(spent[-quarter:])), 1),
    }
    ours, theirs = multiprocessing.get_context("spawn").Pipe()
    process = multiprocessing.get_context("spawn").Process(target=peak_of_build, args=(str(target), theirs))
    process.start()
    seconds, peak = ours.recv()
    process.join()
    begun = time.perf_counter()
    opened = Index.open(target, given)
    opened.refresh()
    found["open_s"] = round(time.perf_counter() - begun, 3)
    told = opened.info()
    size = told["bytes_in_memory"]
    found |= {
        "candidates": told["candidates"],
        "build_structure_s": round(seconds, 2),
        "build_peak_over_size": round(peak / max(size, 1), 2),
        "memory_bytes_per_sequence": round(size / n, 1),
        "memory_allowed_per_sequence": 1.25 * (dimension * 4 + 8 + 4 * 10),
        "disk_bytes_per_sequence": round(told["bytes_on_disk"] / n, 1),
    }
    asked = EventSequences.from_lists([([0.0, 1.0], [0, 0])] * len(queries))
    singles = [asked[i] for i in range(len(queries))]
    speed, answers = timed(lambda q: opened.search(singles[q], 10), len(queries))
    found["search_after_embedding"] = {**speed, "fraction": round(answers[0].report.fraction, 5)}
    serials = opened._view.snapshot().serials
    rng = np.random.default_rng(0)
    opened.compact()
    fetch, _ = timed(
        lambda q: opened._view.snapshot().sequences(rng.choice(len(serials), 100, replace=False), opened._store),
        20,
        wall=True,
    )
    found["fetch_of_100_for_rerank"] = fetch
    if real is not None:
        raw = [real.queries[i] for i in range(len(real.queries))]
        found["embed_query"], _ = timed(lambda q: real.model.embed(raw[q], "query"), min(50, len(raw)))
        opened.model = real.model
        found["end_to_end_from_raw_events"], _ = timed(lambda q: opened.search(raw[q], 10), len(raw), wall=True)
        if rerank is not None:
            model = methods.load(rerank)
            ask = lambda q: opened.search(raw[q], 10, rerank=model, rerank_top=100)  # noqa: E731
            found["end_to_end_with_rerank_of_100"], _ = timed(ask, min(30, len(raw)), wall=True)
    return found
