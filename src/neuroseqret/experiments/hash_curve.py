"""nDCG@10 against the share of the corpus that is compared, for every way from a query to its candidates.

Buckets as in the paper: M tables of L bits of the code, the candidates are the union of the query's M buckets, and L
makes the curve. Multi-probe visits further buckets, and the nearest codes of what it meets stay; cells are visited
nearest centre first. For these two the number of wanted candidates makes the curve.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt

from neuroseqret.hashing.cells import Cells
from neuroseqret.hashing.codes import HashFunction, pack_bits
from neuroseqret.hashing.hamming import nearest_of
from neuroseqret.hashing.hyperplanes import RandomHyperplanes
from neuroseqret.hashing.network import HashNetwork
from neuroseqret.hashing.rotation import RotationCodes
from neuroseqret.hashing.tables import BucketTables, Workspace
from neuroseqret.relevance import Relevance

Vectors = npt.NDArray[np.float32]
Rows = npt.NDArray[np.integer]
Find = Callable[[int], Rows]  # candidates of a query
Point = dict[str, float]

BITS, TABLES, K = 64, 10, 10
LENGTHS = (*range(1, 13), 14, 16, 18, 20)
FRACTIONS = (0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 0.005, 0.002)
HASHES: dict[str, Callable[[], HashFunction]] = {
    "hyperplanes": lambda: RandomHyperplanes(BITS),
    "paper": lambda: HashNetwork(BITS, preset="paper"),
    "paper-without-evenness": lambda: HashNetwork(BITS, preset="paper-without-evenness"),
    "paper-without-saturation": lambda: HashNetwork(BITS, preset="paper-without-saturation"),
    "paper-without-redundancy": lambda: HashNetwork(BITS, preset="paper-without-redundancy"),
    "rotation": lambda: RotationCodes(BITS),
    "default": lambda: HashNetwork(BITS, preset="default"),
}
WAYS = ("exhaustive", *HASHES, "multi-probe", "cells")


def curve(way: str, corpus: Vectors, queries: Vectors, relevance: Relevance) -> list[Point]:
    """Points of one way, most compared first; every way ranks its candidates by the same scores."""
    scores = queries @ corpus.T
    points = []
    for find, centres in _finders(way, corpus, queries):
        compared, rankings = 0, []
        for query in range(len(queries)):
            rows = find(query)
            compared += len(rows) + centres
            rankings.append(_best(rows, scores[query, rows]))
        share = compared / scores.size
        if share * len(corpus) < K:  # too few to fill a list
            break
        points.append({"compared": round(share, 6), "nDCG@10": round(ndcg(rankings, relevance), 6)})
    return points


def _finders(way: str, corpus: Vectors, queries: Vectors) -> Iterator[tuple[Find, int]]:
    """Ways to candidates, each with the number of centres that it compares before."""
    n = len(corpus)
    wanted = [max(K, int(fraction * n)) for fraction in FRACTIONS]
    if way == "exhaustive":
        yield lambda query: np.arange(n), 0
    elif way == "cells":
        cells, order = Cells.build(corpus)
        for number in wanted:
            yield lambda query, w=number: order[_runs(*cells.candidates(queries[query], w))], len(cells.centres)  # type: ignore[misc]
    else:
        hashed = RotationCodes(BITS) if way == "multi-probe" else HASHES[way]()
        codes, margins = hashed.fit(corpus).encode(corpus), hashed.margins(queries)
        asked, space = pack_bits(margins > 0), Workspace.of(n)
        if way == "multi-probe":
            tables = BucketTables.build(codes, BITS, TABLES)
            for number in wanted:

                def probed(query: int, w: int = number) -> Rows:
                    met = tables.candidates(asked[query], margins[query], w, workspace=space)
                    return nearest_of(codes, asked[query], met, w)

                yield probed, 0
        else:
            for length in LENGTHS:
                union = BucketTables.build(codes, BITS, TABLES, length)
                yield lambda query, u=union: u.candidates(asked[query], margins[query], workspace=space), 0  # type: ignore[misc]


def _best(rows: Rows, scores: Vectors) -> Rows:
    """The K rows with the highest scores, best first."""
    if len(rows) > K:
        some = np.argpartition(-scores, K)[:K]
        rows, scores = rows[some], scores[some]
    return rows[np.lexsort((rows, -scores))]


def _runs(begins: Rows, stops: Rows) -> Rows:
    return np.concatenate([np.arange(begin, stop) for begin, stop in zip(begins, stops, strict=True)])


def ndcg(rankings: list[Rows], relevance: Relevance) -> float:
    """nDCG@10; what was not found counts as not relevant."""
    discount = 1 / np.log2(np.arange(2, K + 2))
    gains = [discount[: len(rows)] @ np.isin(rows, relevance.of(query)) for query, rows in enumerate(rankings)]
    ideal = np.cumsum(discount)[np.minimum(relevance.counts, K) - 1]
    return float(np.mean(np.array(gains) / ideal))
