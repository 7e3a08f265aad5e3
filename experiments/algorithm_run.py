"""Algorithm 1 on one data set: hash codes, buckets, candidates, and their order by the models of the paper.

Candidates are the union of a query's buckets in M tables of L random bits of a code of R bits. They are ordered by the
score of the model whose embeddings were hashed; then a second stage puts the best `DEPTH` of them in a new order, as a
search with `rerank` does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from experiments.hash_curve import TABLES, bucket_masks, in_buckets, paper_hash
from neuroseqret.candidates.codes import HashFunction, pack_bits
from neuroseqret.candidates.hyperplanes import RandomHyperplanes
from neuroseqret.candidates.median_trees import MedianTrees
from neuroseqret.data.relevance import Relevance
from neuroseqret.measures import list_measures as lists
from neuroseqret.models.base import Scores

Rows = npt.NDArray[np.integer]
Order = Callable[[int, Rows], Rows]  # from a query and its candidates, best first, to a new order of them
Point = dict[str, float]

DEPTH = 100  # candidates that a second stage puts in a new order
LENGTHS = (2, 4, 6, 8, 10, 12, 14, 16)  # L; the paper's is 12
#: The paper's ways to make codes, and our trees, whose buckets take the first L bits of a tree.
WAYS = (
    "hyperplanes",
    "paper",
    "paper-without-evenness",
    "paper-without-saturation",
    "paper-without-redundancy",
    "trees",
)
LEFT_OUT = {"paper-without-evenness": 0, "paper-without-saturation": 1, "paper-without-redundancy": 2}


def new_hash(way: str, data: str, bits: int) -> HashFunction:
    """Return a new hash function of R = `bits` bits, with the paper's eta for the data set."""
    if way == "hyperplanes":
        return RandomHyperplanes(bits)
    if way == "trees":
        return MedianTrees(TABLES * LENGTHS[-1], LENGTHS[-1])
    return paper_hash(way, data, LEFT_OUT.get(way), bits)


@dataclass
class Reranked:
    """The scores of a second stage for pairs of query and corpus row, each computed when it is first asked for."""

    score: Callable[[int, Rows], Scores]
    known: Scores  # (queries, corpus), NaN where it was not asked for

    @classmethod
    def of(cls, score: Callable[[int, Rows], Scores], queries: int, corpus: int) -> Reranked:
        return cls(score, np.full((queries, corpus), np.nan, np.float32))

    def __call__(self, query: int, candidates: Rows) -> Rows:
        """Return the candidates with the best `DEPTH` of them in the order of the second stage, ties by place."""
        head = candidates[:DEPTH]
        new = head[np.isnan(self.known[query, head])]
        if len(new):
            self.known[query, new] = self.score(query, new)
        order = np.argsort(-self.known[query, head], kind="stable")
        return np.concatenate([head[order], candidates[DEPTH:]])


def curve(
    hashed: HashFunction, corpus: Scores, queries: Scores, first: Scores, orders: dict[str, Order], truth: Relevance
) -> list[Point]:
    """Return a point for each L: the share compared, and MAP and nDCG@10 of the buckets alone and after each order.

    `first` are the scores of the first stage (queries, corpus). A relevant sequence that is in no bucket of the query
    counts as not found.
    """
    codes, asked = hashed.encode(corpus), pack_bits(hashed.margins(queries) > 0)
    return [
        {"L": length, **point(lambda q, m=masks: in_buckets(codes, asked[q], m), first, orders, truth)}  # type: ignore[misc]
        for length, masks in _masks(hashed)
    ]


def point(find: Callable[[int], Rows], first: Scores, orders: dict[str, Order], truth: Relevance) -> Point:
    """Return the share compared, and the measures of the candidates in every order."""
    compared = 0
    ranked: dict[str, list[Rows]] = {name: [] for name in ("buckets", *orders)}
    for query in range(len(first)):
        found = find(query)
        compared += len(found)
        best = found[np.argsort(-first[query, found], kind="stable")]
        ranked["buckets"].append(best)
        for name, order in orders.items():
            ranked[name].append(order(query, best))
    measures = {
        f"{measure} {name}": value for name, rows in ranked.items() for measure, value in _measures(rows, truth)
    }
    return {"compared": round(compared / first.size, 6), **measures}


def _masks(hashed: HashFunction) -> Iterator[tuple[int, npt.NDArray[np.uint64]]]:
    yield from zip(LENGTHS, bucket_masks(hashed, LENGTHS), strict=False)


def _measures(ranked: list[Rows], truth: Relevance) -> Iterator[tuple[str, float]]:
    relevant = np.zeros((len(ranked), max(truth.corpus_size, 1)), bool)
    for query, rows in enumerate(ranked):
        relevant[query, : len(rows)] = np.isin(rows, truth.of(query))
    yield "AP", round(float(lists.average_precision(relevant, truth.counts).mean()), 6)
    yield "nDCG@10", round(float(lists.ndcg(relevant, truth.counts, 10).mean()), 6)
