"""Ways to candidates on the embeddings of trained models: nDCG@10 kept against the share of the corpus compared.

    OMP_NUM_THREADS=1 python benchmarks/hashing.py MODEL=DATA [MODEL=DATA ...] [--seeds 3] [--json FILE]

Validation queries, whole corpus. `union` is the paper's way: M = 10 tables of L bits, and everything in the query's
buckets is compared; L is the smallest value at which the mean share is at most the given one. `multi-probe` uses the L
of the index and visits more buckets until the share is reached, or cuts the union down to it by Hamming distance.
`hamming` scans all codes. `cells` counts its centres as comparisons. Figures are per cent of exhaustive search, the
mean over seeds of the hash. `supervised` is the default objective with the similarity (1 - a) s(v, v') + a [same
group], a = 0.5, for groups that have a training query.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import numpy.typing as npt
import torch

from neuroseqret import methods
from neuroseqret.candidates import ALL, BucketTables, Cells, Finder, HashFunction, HashNetwork, make_hash
from neuroseqret.candidates import hash_objective as objective
from neuroseqret.candidates.cell_finder import CellFinder
from neuroseqret.candidates.code_finders import BucketFinder, HammingFinder
from neuroseqret.candidates.hash_network import PRESETS, new_network
from neuroseqret.candidates.rounding import RoundedVectors
from neuroseqret.candidates.scoring import best_rows
from neuroseqret.models.base import Embedder
from neuroseqret.readers import read_folder
from neuroseqret.training.loop import LoopSettings, train
from search import Judge, padded

Vectors = npt.NDArray[np.float32]
FRACTIONS = (0.01, 0.02, 0.05)


def supervised(vectors: Vectors, groups: Any, seed: int, steps: int = 400, part: float = 0.5) -> HashNetwork:
    """Return a hash network whose similarity is in part "same group"; a group of -1 is not known."""
    made, rng = HashNetwork(), np.random.default_rng(seed)
    torch.manual_seed(seed)
    made.network = network = new_network(vectors.shape[1], made.bits)
    matrix, known = torch.from_numpy(vectors), torch.from_numpy(groups)

    def loss(step: int) -> torch.Tensor:
        rows = rng.choice(len(vectors), min(made.batch, len(vectors)), replace=False)
        v, group = matrix[rows], known[rows]
        h = torch.tanh(network(v))
        same = ((group[:, None] == group) & (group >= 0)).float()
        wished = (1 - part) * (1 - (2 / np.pi) * torch.arccos((v @ v.T).clamp(-1, 1))) + part * same
        similarity = ((h @ h.T / made.bits - wished) ** 2).mean()
        return 0.001 * objective.saturation(h) + similarity + objective.balance(h) + objective.decorrelation(h)

    unclipped = LoopSettings(steps=steps, learning_rate=made.learning_rate, weight_decay=0.0, warmup=0.0, clip=1e9)
    train(network, loss, unclipped, seed=seed, phase="supervised hash")
    return made


def ranked(finder: Finder, queries: Vectors, share: float, corpus: int) -> tuple[Any, float]:
    """Return the ten best rows of every query, and the share of the corpus compared."""
    answers = [finder.best(query, 10, max(10, int(share * corpus))) for query in queries]
    return np.stack([padded(a.rows) for a in answers]), float(
        np.mean([a.compared + a.centres for a in answers])
    ) / corpus


def unions(hashing: HashFunction, codes: Any, corpus: Vectors, queries: Vectors) -> list[tuple[Any, float]]:
    """Return for every wanted share the union at the smallest L that compares no more, or at the longest L."""
    margins, query_codes = hashing.margins(queries), hashing.encode(queries)
    pending, found = list(FRACTIONS[::-1]), []
    rows, scores = np.empty(10, np.int32), np.empty(10, np.float32)
    for length in range(2, 21):
        tables = BucketTables.build(codes, hashing.bits, length=length)
        ranking, compared = [], []
        for q, query in enumerate(queries):
            candidates = tables.candidates(query_codes[q], margins[q])
            kept = best_rows(corpus, query, candidates, ALL, scores, rows)
            ranking.append(padded(rows[:kept].copy()))
            compared.append(len(candidates) / len(corpus))
        while pending and (np.mean(compared) <= pending[0] or length == 20):
            found.append((np.stack(ranking), float(np.mean(compared))))
            pending.pop(0)
        if not pending:
            break
    return found[::-1]


def measure(model: Path, data: Path, seeds: int) -> dict[str, Any]:
    """Return for every way and wanted share: the share compared, nDCG@10 and recall@10 kept."""
    embedder, folder = methods.load(model), read_folder(data)
    assert isinstance(embedder, Embedder)
    assert folder.relevance is not None
    assert folder.queries is not None
    rows, labels = folder.validation, folder.relevance.labels
    of_queries: Any = folder.relevance.query_labels
    corpus, queries = embedder.embed(folder.corpus), embedder.embed(folder.queries[rows], "query")
    judge = Judge(corpus, queries, labels, of_queries[rows])
    groups = np.where(np.isin(labels, of_queries[folder.train]), labels, -1)
    hashes: dict[str, Callable[[int], HashFunction]] = {
        "hyperplanes": lambda seed: make_hash("hyperplanes").fit(corpus, seed=seed),
        "rotation (ITQ)": lambda seed: make_hash("rotation").fit(corpus, seed=seed),
        "supervised": lambda seed: supervised(corpus, groups, seed),
    }
    for preset in PRESETS:
        hashes[f"network {preset}"] = lambda seed, p=preset: make_hash("network", preset=p).fit(corpus, seed=seed)
    found: dict[str, list[list[dict[str, float]]]] = {}

    def note(name: str, results: list[tuple[Any, float]]) -> None:
        judged = [{"compared": compared, **judge(ranking)} for ranking, compared in results]
        found.setdefault(name, []).append(judged)

    for seed in range(seeds):
        cells, order = Cells.build(corpus, seed=seed)
        finder: Finder = CellFinder(corpus[order], RoundedVectors.of(corpus[order]), cells)
        for_centres = len(cells.centres) / len(corpus)
        tried = [ranked(finder, queries, share - for_centres, len(corpus)) for share in FRACTIONS]
        note("cells", [(np.where(r >= 0, order[r], -1), compared) for r, compared in tried])
        for name, make in hashes.items():
            hashing = make(seed)
            codes = hashing.encode(corpus)
            note(f"union, {name}", unions(hashing, codes, corpus, queries))
            tables = BucketTables.build(codes, hashing.bits)
            by_code: dict[str, Finder] = {
                "multi-probe": BucketFinder(corpus, hashing, codes, tables),
                "hamming": HammingFinder(corpus, hashing, codes),
            }
            for way, finder in by_code.items():
                note(f"{way}, {name}", [ranked(finder, queries, share, len(corpus)) for share in FRACTIONS])
    means = {
        name: [{key: float(np.mean([run[at][key] for run in runs])) for key in runs[0][at]} for at in range(3)]
        for name, runs in found.items()
    }
    return {"corpus": len(corpus), "queries": len(rows), "exhaustive_ndcg@10": judge.base, "ways": means}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pairs", nargs="+", metavar="MODEL=DATA")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    torch.set_num_threads(1)
    report = {}
    for pair in options.pairs:
        model, _, data = pair.partition("=")
        name = Path(data).name
        report[name] = measure(Path(model), Path(data), options.seeds)
        if options.json:
            options.json.write_text(json.dumps(report, indent=1) + "\n")
        print(f"\n{name}: {report[name]['corpus']} sequences, {report[name]['queries']} queries")
        print("Per cent of nDCG@10 kept, recall@10, share compared; at a wanted share of:\n")
        print("| | " + " | ".join(f"{100 * share:g} %" for share in FRACTIONS) + " |\n|---|" + "---|" * len(FRACTIONS))
        for way, results in report[name]["ways"].items():
            told = [[f"{100 * r[key]:.1f}" for key in ("ndcg@10_kept", "recall@10", "compared")] for r in results]
            print(f"| {way} | " + " | ".join(", ".join(figures) for figures in told) + " |", flush=True)


if __name__ == "__main__":
    main()
