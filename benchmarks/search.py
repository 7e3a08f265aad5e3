"""Search: speed, recall, memory and build time of the index beside its peers, on one core, in one run.

    OMP_NUM_THREADS=1 python benchmarks/search.py [--model MODEL --data DATA [--rerank MODEL]] [--json FILE]

Without a model the corpus is simulated: groups of very different sizes that have collapsed to near points on a
manifold of few dimensions, as embeddings do after metric learning. With a model and a data folder, the corpus is that
of the folder, embedded and tiled with jitter to the wanted size. Queries are the validation queries, since settings are
chosen by these figures. The time from raw events is that of this model, and with `--rerank` of a second stage too.

Times are medians (with p99) of single queries, in CPU time of the one working thread, so that other programs on the
machine matter little. What waits for the store is wall-clock time. Extrapolated times are marked. Relevant is what has
the same group; nDCG@10 and recall@10 are relative to exhaustive search. Every size ends with one line per target.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import faiss
import numpy as np
import numpy.typing as npt
import psutil
import torch

import search_index as whole
import search_peers as peers
from neuroseqret import methods
from neuroseqret.candidates import ALL, BucketTables, Cells, Finder, make_hash, nearest_codes, pack_bits
from neuroseqret.candidates.bucket_tables import Workspace, _probe
from neuroseqret.candidates.cell_finder import CellFinder
from neuroseqret.candidates.code_finders import BucketFinder, HammingFinder
from neuroseqret.candidates.exhaustive_finder import ExhaustiveFinder
from neuroseqret.candidates.rounding import RoundedVectors
from neuroseqret.candidates.scoring import best_in_cells, best_rows

Vectors = npt.NDArray[np.float32]
FRACTIONS = (0.001, 0.002, 0.005, 0.01, 0.02)


def simulated(n: int, queries: int, seed: int, dimension: int = 64) -> tuple[Vectors, Vectors, Any, Any]:
    """Return corpus, queries and their groups: Zipf-like sizes, centres on a 12-dimensional manifold, tight groups."""
    rng = np.random.default_rng(seed)
    groups = max(50, n // 200)
    weights = 1 / np.arange(1, groups + 1) ** 0.7
    basis = rng.normal(size=(12, dimension))
    centres = rng.normal(size=(groups, 12)) @ basis + 0.2 * rng.normal(size=(groups, dimension))
    centres /= np.linalg.norm(centres, axis=1, keepdims=True)
    labels = rng.choice(groups, n + queries, p=weights / weights.sum())
    return (*_jittered(centres, labels, 0.5, rng, n), labels[:n], labels[n:])


def tiled(vectors: Vectors, labels: Any, n: int, seed: int) -> tuple[Vectors, Any]:
    """Return real embeddings repeated up to n rows; repeats are moved by a quarter of the distance of neighbours."""
    rng = np.random.default_rng(seed)
    source = np.concatenate([np.arange(len(vectors)), rng.integers(0, len(vectors), max(n - len(vectors), 0))])[:n]
    sample = vectors[rng.choice(len(vectors), min(500, len(vectors)), replace=False)]
    near = np.sort(sample @ vectors.T, axis=1)[:, -11:-1]
    spread = 0.25 * float(np.sqrt(np.maximum(2 - 2 * near, 0)).mean())
    made = vectors[source].copy()
    for begin in range(len(vectors), n, 65536):
        part = made[begin : begin + 65536]
        part += rng.normal(scale=spread / np.sqrt(part.shape[1]), size=part.shape)
        part /= np.linalg.norm(part, axis=1, keepdims=True)
    return made, labels[source]


def _jittered(centres: Any, labels: Any, spread: float, rng: Any, n: int) -> tuple[Vectors, Vectors]:
    made = np.empty((len(labels), centres.shape[1]), np.float32)
    for begin in range(0, len(labels), 65536):
        part = centres[labels[begin : begin + 65536]]
        part = part + rng.normal(scale=spread / np.sqrt(part.shape[1]), size=part.shape)
        made[begin : begin + 65536] = part / np.linalg.norm(part, axis=1, keepdims=True)
    return made[:n], made[n:]


class Judge:
    """Recall@10 and nDCG@10 of rankings, relative to exhaustive search."""

    def __init__(self, corpus: Vectors, queries: Vectors, labels: Any, query_labels: Any) -> None:
        self.labels, self.query_labels = labels, query_labels
        exact = faiss.IndexFlatIP(corpus.shape[1])
        exact.add(corpus)
        self.exact = exact.search(queries, 10)[1]
        self.base = self.ndcg(self.exact)

    def ndcg(self, ranking: Any) -> float:
        discount = 1 / np.log2(np.arange(2, 12))
        gains = (self.labels[ranking] == self.query_labels[:, None]) & (ranking >= 0)
        relevant = np.bincount(self.labels, minlength=int(self.query_labels.max()) + 1)[self.query_labels]
        ideal = np.cumsum(discount)[np.minimum(relevant, 10) - 1]
        return float(np.mean(np.where(relevant > 0, (gains * discount).sum(1) / ideal, 0)))

    def __call__(self, ranking: Any) -> dict[str, float]:
        kept = np.mean([len(set(a) & set(b)) / 10 for a, b in zip(ranking, self.exact, strict=True)])
        return {"recall@10": round(float(kept), 4), "ndcg@10_kept": round(self.ndcg(ranking) / self.base, 4)}


def timed(
    ask: Callable[[int], Any], queries: int, repeats: int = 1, wall: bool = False
) -> tuple[dict[str, float], list[Any]]:
    """Return median and p99 of single queries, in milliseconds of this thread's CPU or of wall-clock, and answers."""
    clock = time.perf_counter if wall else time.thread_time
    for query in range(min(queries, 5)):
        ask(query)
    spent, answers = [], []
    for query in list(range(queries)) * repeats:
        begun = clock()
        answer = ask(query)
        spent.append(clock() - begun)
        answers.append(answer)
    p50, p99 = np.percentile(np.array(spent) * 1e3, [50, 99])
    return {"p50_ms": round(float(p50), 4), "p99_ms": round(float(p99), 4)}, answers[:queries]


def padded(rows: Any) -> Any:
    return np.pad(rows[:10], (0, 10 - min(len(rows), 10)), constant_values=-1)


def ours(corpus: Vectors, queries: Vectors, judge: Judge) -> dict[str, Any]:
    """Measure every way of finding candidates: build time, size, and speed and recall by the fraction compared."""
    n, number, found = len(corpus), len(queries), {}
    everything = ExhaustiveFinder(corpus)
    speed, answers = timed(lambda q: everything.best(queries[q], 10), min(number, 50))
    found["exhaustive (kernel)"] = {**speed, "fraction": 1.0}

    begun = time.perf_counter()
    cells, order = Cells.build(corpus)
    laid_out = corpus[order]
    small = RoundedVectors.of(laid_out)
    seconds = time.perf_counter() - begun
    finder = CellFinder(laid_out, small, cells)
    found["cells"] = {**built(seconds, cells.nbytes, n), "curve": []}
    found["cells without rounding"] = {"curve": []}
    rows, scores = np.empty((number, 10), np.int32), np.empty(10, np.float32)
    centres, offsets = cells.centres, cells.offsets
    for fraction in FRACTIONS:
        wanted = max(10, int(fraction * n))
        speed, answers = timed(lambda q, w=wanted: finder.best(queries[q], 10, w), number)
        ranking = np.stack([padded(order[a.rows]) for a in answers])
        compared = float(np.mean([a.compared + a.centres for a in answers])) / n
        found["cells"]["curve"].append({"fraction": round(compared, 5), **speed, **judge(ranking)})
        speed, _ = timed(
            lambda q, w=wanted: best_in_cells(laid_out, queries[q], centres, offsets, w, ALL, scores, rows[q]), number
        )
        found["cells without rounding"]["curve"].append({"fraction": round(compared, 5), **speed, **judge(order[rows])})
    for name in ("rotation", "network", "hyperplanes"):
        begun = time.perf_counter()
        hashing = make_hash(name).fit(corpus[:: max(1, n // 50_000)])
        codes = hashing.encode(corpus)
        fitted = time.perf_counter() - begun
        size = codes.nbytes
        scan = HammingFinder(corpus, hashing, codes)
        found[f"hamming ({name})"] = {**built(fitted, size, n), "curve": curve(scan, queries, judge)}
        begun = time.perf_counter()
        tables = BucketTables.build(codes, 64)
        fitted, size = fitted + time.perf_counter() - begun, size + tables.nbytes
        buckets = BucketFinder(corpus, hashing, codes, tables)
        entry = {**built(fitted, size, n), "L": tables.length, "curve": curve(buckets, queries, judge)}
        found[f"buckets ({name})"] = entry
    return found


def built(seconds: float, size: int, n: int) -> dict[str, float]:
    return {"build_s": round(seconds, 2), "bytes_per_sequence": round(size / n, 1)}


def curve(finder: Finder, queries: Vectors, judge: Judge) -> list[dict[str, float]]:
    """Return speed and recall of a finder by hash code for every fraction of the corpus."""
    points, n = [], len(finder.embeddings)
    for fraction in FRACTIONS:
        wanted = max(10, int(fraction * n))
        speed, answers = timed(lambda q, w=wanted: finder.best(queries[q], 10, w), len(queries))
        ranking = np.stack([padded(a.rows) for a in answers])
        points.append({"fraction": round(wanted / n, 5), **speed, **judge(ranking)})
    return points


def kernels(corpus: Vectors, queries: Vectors) -> dict[str, Any]:
    """Compare candidate generation with the bare union kernel, and scoring with numpy's gather and product."""
    hashing = make_hash("rotation").fit(corpus[:: max(1, len(corpus) // 50_000)])
    codes = hashing.encode(corpus)
    tables, space = BucketTables.build(codes, 64), Workspace.of(len(corpus))
    margins = hashing.margins(queries)
    query_codes = pack_bits(margins > 0)
    bare_arguments = (space.seen, space.found, space.costs, space.flips)
    certainty = np.abs(margins)

    def bare(q: int) -> int:
        found: int = _probe(
            tables.positions, tables.rows, tables.offsets, query_codes[q], certainty[q], 0, 0, *bare_arguments
        )
        return found

    floor, _ = timed(bare, len(queries), 5)
    union, candidates = timed(lambda q: tables.candidates(query_codes[q], margins[q], workspace=space), len(queries), 5)
    rows, scores = np.empty(10, np.int32), np.empty(10, np.float32)
    scoring, _ = timed(lambda q: best_rows(corpus, queries[q], candidates[q], ALL, scores, rows), len(queries), 5)

    def gather(q: int) -> Any:
        found = corpus[candidates[q]] @ queries[q]
        return candidates[q][np.argpartition(-found, min(10, len(found) - 1))[:10]] if len(found) else found

    numpy_scoring, _ = timed(gather, len(queries), 5)
    scan, _ = timed(lambda q: nearest_codes(codes, query_codes[q], len(codes) // 100), min(50, len(queries)))
    return {
        "bucket_union_floor": floor,
        "bucket_union": union,
        "union_to_floor": round(union["p50_ms"] / floor["p50_ms"], 2),
        "candidates_mean": round(float(np.mean([len(c) for c in candidates])), 1),
        "scoring": scoring,
        "scoring_numpy_gather_product": numpy_scoring,
        "scoring_to_numpy": round(scoring["p50_ms"] / numpy_scoring["p50_ms"], 2),
        "hamming_scan_1_percent": scan,
    }


def targets(entry: dict[str, Any]) -> list[str]:
    """Return one line per target, pass or miss, with the ratio. Targets are for 10^6 sequences."""
    kernel, found, peer, index = (entry.get(part, {}) for part in ("kernels", "ours", "peers", "index"))
    lines: list[str] = []

    def tell(name: str, value: float, limit: float, at_most: bool = True) -> None:
        met = value <= limit if at_most else value >= limit
        lines.append(f"{'pass' if met else 'MISS'}  {name}: {value:.4g} ({'<=' if at_most else '>='} {limit:g})")

    tell("bucket union / its bare kernel", kernel["union_to_floor"], 3)
    tell("scoring / numpy gather and product", kernel["scoring_to_numpy"], 2)
    curve = found["cells"]["curve"]
    good = [p for p in curve if p["fraction"] <= 0.02]
    tell("cells: nDCG@10 kept, at most 2 % compared", max((p["ndcg@10_kept"] for p in good), default=0.0), 0.95, False)
    good = [p for p in good if p["ndcg@10_kept"] >= 0.95]
    exhaustive = peer["numpy exhaustive"]["p50_ms"]
    if good:
        tell("cells: exhaustive numpy's time / ours there", exhaustive / min(p["p50_ms"] for p in good), 20, False)
    graph = peer.get("faiss HNSW", {}).get("curve", [])
    for mine in good:
        equal = [p["p50_ms"] for p in graph if p["recall@10"] >= mine["recall@10"]]
        if equal:
            tell(f"faiss HNSW's time / ours at recall {mine['recall@10']:.3f}", min(equal) / mine["p50_ms"], 1, False)
    if index:
        asked = index["search_after_embedding"]
        tell("Index.search: part compared", asked["fraction"], 0.02)
        tell("Index.search: nDCG@10 kept", asked["ndcg@10_kept"], 0.95, False)
        tell("Index.search: exhaustive numpy's time / ours", exhaustive / asked["p50_ms"], 20, False)
        tell("peak memory of building / size of the structure", index["build_peak_over_size"], 2.5)
        tell(
            "memory / allowed at 64 dimensions",
            index["memory_bytes_per_sequence"] / index["memory_allowed_per_sequence"],
            1,
        )
        spent = index["add_us_per_sequence"]
        tell("adding: last quarter / first quarter", spent["last_quarter"] / spent["first_quarter"], 1.25)
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--queries", type=int, default=200)
    parser.add_argument("--dimension", type=int, default=64, help="of simulated embeddings")
    parser.add_argument("--model", type=Path)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--rerank", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--no-hnsw", action="store_true", help="leave out HNSW, which takes minutes to build at 10^6")
    parser.add_argument("--no-index", action="store_true", help="leave out the store and the index folder")
    parser.add_argument("--json", type=Path, help="file for the figures, written after every part")
    options = parser.parse_args()
    torch.set_num_threads(1)
    faiss.omp_set_num_threads(1)
    real = whole.Real.load(options.model, options.data, options.queries) if options.model else None
    reranker = methods.load(options.rerank) if options.rerank else None
    report: dict[str, Any] = {"data": options.data.name if real else "simulated", "seed": options.seed, "sizes": {}}

    def keep(n: int, part: str, value: Any) -> None:
        report["sizes"][n][part] = value
        print(json.dumps({n: {part: value}}, indent=1), flush=True)
        if options.json:
            options.json.write_text(json.dumps(report, indent=1) + "\n")

    for n in options.sizes:
        if real is None:
            corpus, queries, labels, query_labels = simulated(n, options.queries, options.seed, options.dimension)
        else:
            corpus, labels = tiled(real.corpus_vectors, real.labels, n, options.seed)
            queries, query_labels = real.query_vectors, real.query_labels
        judge = Judge(corpus, queries, labels, query_labels)
        entry = report["sizes"][n] = {"dimension": corpus.shape[1], "load": psutil.getloadavg()[0]}
        keep(n, "exhaustive_ndcg@10", round(judge.base, 4))
        keep(n, "kernels", kernels(corpus, queries))
        keep(n, "ours", ours(corpus, queries, judge))
        if not options.no_index:
            with tempfile.TemporaryDirectory() as folder:
                keep(n, "index", whole.measure(Path(folder), corpus, queries, judge, timed, real, reranker))
        dtw = peers.dtw(n, real.corpus if real else None)
        known = {**peers.measure(corpus, queries, judge, timed), "exhaustive DTW": dtw}
        keep(n, "peers", known)
        if not options.no_hnsw:
            keep(n, "peers", {**known, "faiss HNSW": peers.hnsw(corpus, queries, judge, timed)})
        keep(n, "targets", targets(entry))


if __name__ == "__main__":
    main()
