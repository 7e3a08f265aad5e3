"""How the cost of a query grows with the corpus, and from raw events to ten hits.

Every size is an index in a folder. Times are CPU time of the one working thread, after embedding.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import numpy as np

import search
import search_index as whole
from neuroseqret.index import Index
from scale_room import QUERIES, Room, Vectors, apart, batches, singles

DIMENSION = 64
SIZES = (10_000, 30_000, 100_000, 300_000, 1_000_000, 3_000_000, 10_000_000)
FRACTIONS = (0.01, 0.003, 0.001)  # of the corpus that is compared with a query


def cells(room: Room) -> dict[str, Any]:
    made = {f"growth-{n}": (lambda n=n: growth(room, n)) for n in SIZES if n <= 10 * room.rows}
    return {**made, "growth-raw": lambda: from_raw_events(room)}


def prepare(room: Room) -> None:
    pass  # making the indexes is measured


def growth(room: Room, n: int) -> dict[str, Any]:
    """Fill an index, build its structure, and search it with several shares compared."""
    corpus, queries = room.vectors(n, DIMENSION)
    place, spent = room.folder / f"growth-{n}", 0.0
    given = room.given(n, DIMENSION)
    index = Index.open(place, given) if (place / "index.json").exists() else Index.create(given, place)
    for batch in batches(n):
        begun = time.perf_counter()
        index.add(batch)
        spent += time.perf_counter() - begun
    del index
    built = apart(open_anew, place, room, n)
    exact = exhaustive(corpus, queries)
    index, asked = Index.open(place, given), singles()
    index.refresh()
    told, curve = index.info(), []
    for fraction in FRACTIONS:
        speed, answers = search.timed(lambda q, f=fraction: index.search(asked[q], 10, fraction=f), len(asked))
        found = [{int(hit.id) for hit in hits} for hits in answers]
        recall = np.mean([len(mine & set(best)) / 10 for mine, best in zip(found, exact.tolist(), strict=True)])
        compared = float(np.mean([hits.report.comparisons for hits in answers]))
        centres = float(np.mean([hits.report.centres for hits in answers]))
        point = {"fraction": fraction, **speed, "recall@10": round(float(recall), 4)}
        curve.append({**point, "compared": round(compared), "centres": round(centres)})
    return {
        "sequences": n,
        "dimension": DIMENSION,
        "candidates": told["candidates"],
        "curve": curve,
        "add_us_per_sequence": round(1e6 * spent / n, 1),
        **built,
        "memory_bytes_per_sequence": round(told["bytes_in_memory"] / n, 1),
        "store_bytes_per_sequence": round(size_of(place / "store") / n, 1),
        "structure_bytes_per_sequence": round(size_of(place / "hot") / n, 1),
    }


def open_anew(place: Path, room: Room, n: int) -> dict[str, Any]:
    """Open an index, which builds the structure if there is none; runs in a process of its own."""
    begun = time.perf_counter()
    index = Index.open(place, room.given(n, DIMENSION))
    index.refresh(wait=True)
    return {"build_s": round(time.perf_counter() - begun, 2)}


def exhaustive(corpus: Vectors, queries: Vectors, block: int = 100_000) -> Any:
    """Return the ten best rows for every query, block by block."""
    rows, scores = np.zeros((len(queries), 0), np.int64), np.zeros((len(queries), 0), np.float32)
    for begin in range(0, len(corpus), block):
        new = queries @ np.asarray(corpus[begin : begin + block]).T
        best = np.argpartition(-new, min(10, new.shape[1] - 1), axis=1)[:, :10]
        rows = np.concatenate([rows, best + begin], axis=1)
        scores = np.concatenate([scores, np.take_along_axis(new, best, 1)], axis=1)
        order = np.argsort(-scores, axis=1)[:, :10]
        rows, scores = np.take_along_axis(rows, order, 1), np.take_along_axis(scores, order, 1)
    return rows


def size_of(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


def from_raw_events(room: Room) -> dict[str, Any]:
    """Search with raw events: a trained model, and its embeddings of a real corpus, repeated with jitter."""
    data = Path(os.environ["NEUROSEQRET_DATA"]) / "audio"
    real = whole.Real.load(room.folder / "model", data, QUERIES)
    place, n = room.folder / "index-raw", room.rows
    corpus, _ = search.tiled(real.corpus_vectors, real.labels, n, 0)
    index = Index.open(place) if (place / "index.json").exists() else Index.create(real.model, place)
    lookup = whole.Given(corpus, real.query_vectors)
    lookup.card = real.model.card  # marks as the model numbers them
    for batch in batches(n):
        index.add(batch, embedder=lookup)
    index.refresh(wait=True)
    opened = Index.open(place)
    opened.refresh()
    asked = [real.queries[row] for row in range(len(real.queries))]
    speed, _ = search.timed(lambda q: opened.search(asked[q], 10), len(asked), repeats=3)
    alone, _ = search.timed(lambda q: opened._embedder.embed(asked[q], "query"), len(asked), repeats=3)
    return {
        "sequences": n,
        "dimension": int(corpus.shape[1]),
        "events_per_query": round(float(np.mean(real.queries.lengths)), 1),
        "memory_bytes_per_sequence": round(opened.info()["bytes_in_memory"] / n, 1),
        "search": speed,
        "embedding": alone,
    }
