"""Ways to candidates on trained models' embeddings: nDCG@10 kept against the part of the corpus that is compared.

    OMP_NUM_THREADS=1 python benchmarks/hashing.py MODEL=DATA [MODEL=DATA ...] [--seeds 3] [--json FILE]

Validation queries, whole corpus. `union` is the paper's: M = 10 tables of L bits, everything in the query's buckets is
compared; L is the smallest with which that is at most the given part, in the mean. `multi-probe` has the tables at the
index' own L, with further buckets until the part is met, cut down to it by Hamming distance. `hamming` scans all codes.
`cells` counts its centres as comparisons. Figures are per cent of exhaustive search, mean over seeds of the hash.
`supervised` is the default objective with a similarity of (1 - a) s(v, v') + a [same group], a = 0.5, of those groups
that have a training query.
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
from neuroseqret.candidates import BucketTables, Cells, HashFunction, HashNetwork, make_hash
from neuroseqret.candidates import hash_objective as objective
from neuroseqret.candidates.finders import CellFinder, CodeFinder, Finder
from neuroseqret.candidates.hash_network import PRESETS, _network
from neuroseqret.candidates.kernels import best_rows
from neuroseqret.candidates.rounding import RoundedVectors
from neuroseqret.models.base import Embedder
from neuroseqret.readers import read_folder
from search import ALL, Judge, padded

Vectors = npt.NDArray[np.float32]
FRACTIONS = (0.01, 0.02, 0.05)


def supervised(vectors: Vectors, groups: Any, seed: int, steps: int = 400, part: float = 0.5) -> HashNetwork:
    """The hash network trained with known groups (-1: not known) in the place of a part of the similarity."""
    made, rng = HashNetwork(), np.random.default_rng(seed)
    torch.manual_seed(seed)
    made.network = _network(vectors.shape[1], made.bits)
    matrix, known = torch.from_numpy(vectors), torch.from_numpy(groups)
    optimiser = torch.optim.Adam(made.network.parameters(), lr=made.learning_rate)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, steps)
    for _ in range(steps):
        rows = rng.choice(len(vectors), min(made.batch, len(vectors)), replace=False)
        v, group = matrix[rows], known[rows]
        h = torch.tanh(made.network(v))
        same = ((group[:, None] == group) & (group >= 0)).float()
        wished = (1 - part) * (1 - (2 / np.pi) * torch.arccos((v @ v.T).clamp(-1, 1))) + part * same
        similarity = ((h @ h.T / made.bits - wished) ** 2).mean()
        loss = 0.001 * objective.saturation(h) + similarity + objective.balance(h) + objective.decorrelation(h)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        schedule.step()
    return made


def ranked(finder: Finder, queries: Vectors, part: float, corpus: int) -> tuple[Any, float]:
    """The ten best rows of every query, and the part compared."""
    answers = [finder.best(query, 10, max(10, int(part * corpus))) for query in queries]
    return np.stack([padded(a[0]) for a in answers]), float(np.mean([a[2] for a in answers])) / corpus


def unions(hashing: HashFunction, codes: Any, corpus: Vectors, queries: Vectors) -> list[tuple[Any, float]]:
    """For every wished part the plain union at the smallest L that compares as little; with none the longest L's."""
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
    """For every way and wished part: the part compared, nDCG@10 and recall@10 kept."""
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
        tried = [ranked(finder, queries, part - len(cells.centres) / len(corpus), len(corpus)) for part in FRACTIONS]
        note("cells", [(np.where(r >= 0, order[r], -1), compared) for r, compared in tried])
        for name, make in hashes.items():
            hashing = make(seed)
            codes = hashing.encode(corpus)
            note(f"union, {name}", unions(hashing, codes, corpus, queries))
            for way, tables in (("multi-probe", BucketTables.build(codes, hashing.bits)), ("hamming", None)):
                by_code = CodeFinder(corpus, hashing, codes, tables)
                note(f"{way}, {name}", [ranked(by_code, queries, part, len(corpus)) for part in FRACTIONS])
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
        print("Per cent of nDCG@10 kept, recall@10, part compared; at a wished part of:\n")
        print("| | " + " | ".join(f"{100 * part:g} %" for part in FRACTIONS) + " |\n|---|" + "---|" * len(FRACTIONS))
        for way, results in report[name]["ways"].items():
            told = [[f"{100 * r[key]:.1f}" for key in ("ndcg@10_kept", "recall@10", "compared")] for r in results]
            print(f"| {way} | " + " | ".join(", ".join(figures) for figures in told) + " |", flush=True)


if __name__ == "__main__":
    main()
