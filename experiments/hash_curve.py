"""nDCG@10 and recall@10 against the share of the corpus that is compared, for every way to find candidates.

recall@10 is the share of the ten best of exhaustive search that are among the ten best candidates.

Buckets are the paper's: M tables of L bits of the code; the candidates are the union of the query's M buckets, and
varying L makes the curve. The buckets are found by comparing codes, since a table of 2^L buckets is too large for long
L. Multi-probe visits further buckets and keeps the nearest codes that it meets; cells are visited nearest centre first.
For these two the number of wanted candidates makes the curve.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import numpy as np
import numpy.typing as npt

from neuroseqret.candidates.bucket_tables import BucketTables, Workspace
from neuroseqret.candidates.cells import Cells
from neuroseqret.candidates.codes import Codes, HashFunction, pack_bits
from neuroseqret.candidates.hamming import nearest_of
from neuroseqret.candidates.hash_network import HashNetwork
from neuroseqret.candidates.hyperplanes import RandomHyperplanes
from neuroseqret.candidates.median_trees import MedianTrees
from neuroseqret.candidates.rotation import RotationCodes
from neuroseqret.data.relevance import Relevance
from neuroseqret.measures import list_measures as lists

Vectors = npt.NDArray[np.float32]
Rows = npt.NDArray[np.integer]
Find = Callable[[int], Rows]  # from a query to its candidates
Point = dict[str, float]

BITS, TABLES, K = 64, 10, 10
LEVELS = 16  # of a median tree; every table has a tree of its own
LENGTHS = (*range(1, 13), 14, 16, 18, 20, 22, 24, 28, 32, 40, 48, 56, 64)
FRACTIONS = (0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 0.005, 0.002)
#: eta_1, eta_2, eta_3 of the paper's table of hyper-parameters; a set that is not in it gets equal weights.
PAPER_ETA = {
    "audio": (0.4, 0.3, 0.3),
    "celebrity": (0.4, 0.3, 0.3),
    "electricity": (0.4, 0.3, 0.3),
    "health": (0.5, 0.25, 0.25),
    "sports": (0.5, 0.25, 0.25),
    "twitter": (0.4, 0.3, 0.3),
    "amazon": (0.5, 0.25, 0.25),
}


def paper_hash(preset: str, data: str, left_out: int | None = None, bits: int = BITS) -> HashFunction:
    """Return the paper's hash with its weights for a data set, which sum to 1; `left_out` drops one of its terms."""
    if data not in PAPER_ETA:
        return HashNetwork(bits, preset=preset)
    first, second, third = (0.0 if term == left_out else eta for term, eta in enumerate(PAPER_ETA[data]))
    total = first + second + third
    return HashNetwork(bits, preset=preset, eta=(first / total, second / total, third / total))


#: Makes the hash function of a way, for the data set of a name.
HASHES: dict[str, Callable[[str], HashFunction]] = {
    "hyperplanes": lambda data: RandomHyperplanes(BITS),
    "paper": lambda data: paper_hash("paper", data),
    "paper-without-evenness": lambda data: paper_hash("paper-without-evenness", data, left_out=0),
    "paper-without-saturation": lambda data: paper_hash("paper-without-saturation", data, left_out=1),
    "paper-without-redundancy": lambda data: paper_hash("paper-without-redundancy", data, left_out=2),
    "rotation": lambda data: RotationCodes(BITS),
    "default": lambda data: HashNetwork(BITS, preset="default"),
    "trees": lambda data: MedianTrees(TABLES * LEVELS, LEVELS),
}
WAYS = ("exhaustive", *HASHES, "multi-probe", "cells")
#: Seeds of the hash: three where fitting it takes little time.
SEEDS = {"hyperplanes": 3, "rotation": 3, "trees": 3}


def hash_of(way: str, data: str) -> HashFunction | None:
    """Return a new hash function of the kind that a way uses on a data set; None if it uses none."""
    make = HASHES.get("rotation" if way == "multi-probe" else way)
    return None if make is None else make(data)


def curve(way: str, data: str, corpus: Vectors, queries: Vectors, relevance: Relevance) -> list[Point]:
    """Return the points of one way on a data set, most compared first; all ways rank candidates by the same scores.

    A point is the mean over the seeds of the hash; the curve ends with the seed that ends first.
    """
    scores = queries @ corpus.T
    best = [_best(np.arange(len(corpus)), of_query) for of_query in scores]
    seeds = [
        _points(_finders(way, data, corpus, queries, s), scores, best, relevance) for s in range(SEEDS.get(way, 1))
    ]
    return [
        {name: round(float(np.mean([point[name] for point in of_seeds])), 6) for name in of_seeds[0]}
        for of_seeds in zip(*seeds, strict=False)
    ]


def _points(
    finders: Iterator[tuple[Find, int]], scores: Vectors, best: list[Rows], relevance: Relevance
) -> list[Point]:
    """Return the points of one seed; `best` are the best rows of exhaustive search for every query."""
    points = []
    for find, centres in finders:
        compared, rankings = 0, []
        for query in range(len(scores)):
            rows = find(query)
            compared += len(rows) + centres
            rankings.append(_best(rows, scores[query, rows]))
        share = compared / scores.size
        if share * scores.shape[1] < K:  # too few candidates to fill a list
            break
        recall = np.mean([np.isin(one, rows).mean() for one, rows in zip(best, rankings, strict=True)])
        points.append({"compared": share, "nDCG@10": ndcg(rankings, relevance), "recall@10": float(recall)})
    return points


def _finders(way: str, data: str, corpus: Vectors, queries: Vectors, seed: int) -> Iterator[tuple[Find, int]]:
    """Yield a function from query to candidates per point of the curve, and how many centres it compares first."""
    n = len(corpus)
    wanted = [max(K, int(fraction * n)) for fraction in FRACTIONS]
    if way == "exhaustive":
        yield lambda query: np.arange(n), 0
    elif way == "cells":
        cells, order = Cells.build(corpus)
        for number in wanted:
            yield lambda query, w=number: order[_runs(*cells.candidates(queries[query], w))], len(cells.centres)  # type: ignore[misc]
    else:
        hashed = hash_of(way, data)
        assert hashed is not None, way
        codes, margins = hashed.fit(corpus, seed=seed).encode(corpus), hashed.margins(queries)
        asked = pack_bits(margins > 0)
        if way == "multi-probe":
            tables, space = BucketTables.build(codes, BITS, TABLES), Workspace.of(n)
            for number in wanted:

                def probed(query: int, w: int = number) -> Rows:
                    met = tables.candidates(asked[query], margins[query], w, workspace=space)
                    return nearest_of(codes, asked[query], met, w)

                yield probed, 0
        else:
            for masks in bucket_masks(hashed):
                yield lambda query, m=masks: in_buckets(codes, asked[query], m), 0  # type: ignore[misc]


def bucket_masks(hashed: HashFunction, lengths: Iterable[int] = LENGTHS) -> Iterator[Codes]:
    """Yield the bits of the code that each table looks at, for each of the lengths that the tables have bits for."""
    positions = hashed.table_positions(TABLES)
    for length in lengths:
        if length > positions.shape[1]:
            break
        chosen = np.zeros((TABLES, hashed.bits), bool)
        np.put_along_axis(chosen, positions[:, :length].astype(np.int64), True, axis=1)
        yield pack_bits(chosen)


def in_buckets(codes: Codes, code: Codes, masks: Codes) -> Rows:
    """Return the rows whose codes equal this one in all bits of at least one mask."""
    met = np.zeros(len(codes), bool)
    for mask in masks:
        equal = np.ones(len(codes), bool)
        for word in np.flatnonzero(mask):
            equal &= (codes[:, word] ^ code[word]) & mask[word] == 0
        met |= equal
    return np.flatnonzero(met)


def _best(rows: Rows, scores: Vectors) -> Rows:
    """Return the K rows with the highest scores, best first."""
    if len(rows) > K:
        some = np.argpartition(-scores, K)[:K]
        rows, scores = rows[some], scores[some]
    return rows[np.lexsort((rows, -scores))]


def _runs(begins: Rows, stops: Rows) -> Rows:
    return np.concatenate([np.arange(begin, stop) for begin, stop in zip(begins, stops, strict=True)])


def ndcg(rankings: list[Rows], relevance: Relevance) -> float:
    """Return the mean nDCG@10; a sequence that was not found counts as not relevant."""
    relevant = np.zeros((len(rankings), K), bool)
    for query, rows in enumerate(rankings):
        relevant[query, : len(rows)] = np.isin(rows, relevance.of(query))
    return float(np.mean(lists.ndcg(relevant, relevance.counts, K)))
