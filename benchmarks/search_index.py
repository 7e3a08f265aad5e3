"""The whole index in the search benchmark: building, opening, searching from raw events, memory and disk."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import psutil

from neuroseqret import methods
from neuroseqret.baselines.settings import NoSettings
from neuroseqret.baselines.unlearned import Unlearned
from neuroseqret.data.sequences import EventSequence, EventSequences
from neuroseqret.index import Hits, Index
from neuroseqret.index.config import IndexConfig, create_folder, make_settings
from neuroseqret.index.lance_store import LanceStore
from neuroseqret.index.reader import Reader
from neuroseqret.index.rows import base_schema
from neuroseqret.models.base import Embedder, RelevanceModel, Role
from neuroseqret.models.card import ModelCard
from neuroseqret.readers import read_folder

Vectors = npt.NDArray[np.float32]
BATCH = 8192


@dataclass(frozen=True)
class Real:
    """A data folder with its embeddings; queries are the validation queries."""

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
        rows = folder.validation[:number]
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


class Given(Unlearned, Embedder):
    """A model that looks embeddings up by the row number in the id, so that filling an index takes no model's time."""

    name = "given"

    def __init__(self, corpus: Vectors, queries: Vectors) -> None:
        super().__init__(NoSettings())
        self.card = ModelCard(model=self.name, method_version=1, marks=1 << 30, seed=0, corpus_fingerprint="")
        self.corpus, self.queries = corpus, queries

    def compute_embeddings(self, sequences: EventSequences, role: Role) -> Vectors:
        rows = np.array(sequences.ids.to_pylist()).astype(np.int64)
        return (self.queries if role == "query" else self.corpus)[rows]


def batches(n: int, real: Real | None, seed: int = 0) -> Iterator[EventSequences]:
    """Yield n sequences of about 60 events in batches, real ones with jitter or random ones; ids are row numbers."""
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
    """Send seconds and peak memory of building the hot structure; runs in a process of its own."""
    from neuroseqret.index.config import read_config

    target = Path(folder)
    config, store = read_config(target), LanceStore.open(target / "store")
    before = psutil.Process().memory_info().rss
    begun = time.perf_counter()
    Reader(target, store, config).snapshot()
    seconds = time.perf_counter() - begun
    # Not ru_maxrss, which a process inherits from its parent.
    status = Path("/proc/self/status").read_text()
    peak = 1024 * int(next(line for line in status.splitlines() if line.startswith("VmHWM")).split()[1])
    ready.send((seconds, peak - before))


def share_compared(hits: Hits) -> float:
    """Return the comparisons of a search, with those to cell centres, as a share of the corpus."""
    return (hits.report.comparisons + hits.report.centres) / hits.report.corpus


def structure_bytes(index: Path) -> int:
    """Return the bytes of all that building derives; events are only copied and do not count."""
    return sum(f.stat().st_size for f in (index / "hot").rglob("*.*") if f.suffix != ".bin")


def measure(
    folder: Path,
    corpus: Vectors,
    queries: Vectors,
    judge: Callable[..., dict[str, float]],
    timed: Callable[..., Any],
    real: Real | None,
    reranker: RelevanceModel | None,
) -> dict[str, Any]:
    """Fill, build, open, search and change an index; return all figures."""
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
        "build_peak_bytes_per_sequence": round(peak / n, 1),
        "build_peak_over_size": round(peak / (structure_bytes(target) or 1), 2),
        "structure_bytes_per_sequence": round(structure_bytes(target) / n, 1),
        "memory_bytes_per_sequence": round(size / n, 1),
        "memory_allowed_per_sequence": 1.25 * (64 * 4 + 8 + 4 * 10),
        "disk_bytes_per_sequence": round(told["bytes_on_disk"] / n, 1),
    }
    asked = EventSequences.from_lists([([0.0, 1.0], [0, 0])] * len(queries))
    singles = [asked[i] for i in range(len(queries))]
    speed, answers = timed(lambda q: opened.search(singles[q], 10), len(queries))
    ranking = np.array([[int(hit.id) for hit in hits] for hits in answers])
    compared = float(np.mean([share_compared(hits) for hits in answers]))
    found["search_after_embedding"] = {**speed, "fraction": round(compared, 5), **judge(ranking)}
    if real is not None:
        found |= from_raw_events(opened, real, reranker, timed)
        opened.model = given
    found |= changes(opened, singles[0])
    return found


def from_raw_events(
    index: Index, real: Real, reranker: RelevanceModel | None, timed: Callable[..., Any]
) -> dict[str, Any]:
    """Time embedding, the whole search, and a second stage on 100 candidates, in wall-clock time."""
    raw = [real.queries[i] for i in range(len(real.queries))]
    index.model = real.model
    found = {}
    found["embed_query"], _ = timed(lambda q: real.model.embed(raw[q], "query"), len(raw), wall=True)
    found["end_to_end_from_raw_events"], _ = timed(lambda q: index.search(raw[q], 10), len(raw), wall=True)
    if reranker is not None:
        hundred, few = real.corpus[:100], min(30, len(raw))
        found["rerank_of_100"], _ = timed(lambda q: reranker.score(raw[q], hundred), few, wall=True)
        ask = lambda q: index.search(raw[q], 10, rerank=reranker, rerank_top=100)  # noqa: E731
        found["end_to_end_with_rerank_of_100"], _ = timed(ask, few, wall=True)
    return found


def changes(index: Index, query: EventSequence) -> dict[str, Any]:
    """Time replacement and removal (the second of each, when caches are warm), and the first search after each."""
    found = {}
    for number in (1, 1000):
        ids = [str(row) for row in range(number)]
        for name in ("upsert", "remove"):
            for turn in range(2):
                part = EventSequences.from_lists([([0.0, 1.0 + turn], [0, 0])] * number, ids=ids)
                if name == "remove":
                    index.upsert(part)
                    index.search(query, 10)
                begun = time.perf_counter()
                index.upsert(part) if name == "upsert" else index.remove(ids)
                changed = time.perf_counter() - begun
                index.search(query, 10)
                after = time.perf_counter() - begun - changed
            found[f"{name}_{number}_s"] = {"change": round(changed, 4), "first_search_after": round(after, 4)}
        index.upsert(EventSequences.from_lists([([0.0, 1.0], [0, 0])] * number, ids=ids))
    return found
