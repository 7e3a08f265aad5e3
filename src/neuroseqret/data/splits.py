"""Divisions that do not leak: train, validation and test queries, the unseen half of a corpus, and negatives.

Rows of the same `source` always stay on the same side; a row without a source is a source of its own. Every division
depends only on the data and the seed.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neuroseqret.data.relevance import Relevance
from neuroseqret.data.sequences import STRING, EventSequences, IntArray
from neuroseqret.errors import DataError, UserError

BoolArray = npt.NDArray[np.bool_]

SPLITS = ("train", "validation", "test")
SHARES = (0.5, 0.1, 0.4)


def split_queries(queries: EventSequences, seed: int = 0, shares: Sequence[float] = SHARES) -> EventSequences:
    """Return the queries with a column `split`: train, validation or test.

    Every source is in one split. Within that limit, each group and the whole set are divided as close to the `shares`
    as possible. With three sources or more, no split with a positive share stays empty.
    """
    if len(shares) != len(SPLITS) or min(shares) < 0 or not np.isclose(sum(shares), 1):
        raise UserError(f"the shares of {', '.join(SPLITS)} must sum to 1, not {tuple(shares)}")
    side = _divide(codes_of(queries, "group"), source_codes(queries), shares, np.random.default_rng(seed))
    return queries.with_column("split", pa.array(np.array(SPLITS), STRING).take(pa.array(side)))


def ensure_split(queries: EventSequences, seed: int = 0) -> EventSequences:
    """Return the queries as they are if they have a column `split`, else split by `split_queries`."""
    return split_queries(queries, seed) if queries.column("split") is None else queries


def split_rows(queries: EventSequences, split: str) -> IntArray:
    """Return the rows of the queries in a split; raise a `DataError` if there are none."""
    column = queries.column("split")
    if column is None:
        raise DataError("the queries have no column 'split'", remedy="add one or call split_queries")
    rows = split_rows_if_any(queries, split)
    if not len(rows):
        found = ", ".join(sorted({str(value) for value in column.unique().to_pylist()}))
        raise DataError(f"no query has split {split!r}", remedy=f"choose one of the splits found: {found or 'none'}")
    return rows


def split_rows_if_any(queries: EventSequences, split: str) -> IntArray:
    """Return the rows of the queries in a split, which may be none."""
    column = queries.column("split")
    values = [] if column is None else column.to_pylist()
    return np.flatnonzero(np.array(values, dtype=object) == split)


def choose_queries(sequences: EventSequences, share: float = 0.15, seed: int = 0, min_corpus: int = 3) -> BoolArray:
    """Choose which rows of a labelled set become queries: (n,) bool; the others are the corpus.

    About `share` of every group is chosen, by whole sources, so that the queries of a group come from other sources
    than its corpus sequences. A group gives no query if it has only one source or would keep fewer than `min_corpus`
    corpus sequences; it then stays in the corpus as a distractor.
    """
    if not 0 < share < 1:
        raise UserError(f"the share of queries is {share}; it must be between 0 and 1")
    groups, sources = codes_of(sequences, "group"), source_codes(sequences)
    rng = np.random.default_rng(seed)
    # A unit must stay together: the rows of one source in one group.
    units, unit_of_row, sizes = np.unique(np.stack([groups, sources]), axis=1, return_inverse=True, return_counts=True)
    unit_of_row = unit_of_row.ravel()
    chosen = np.zeros(len(sizes), bool)
    bounds = np.flatnonzero(np.diff(units[0], prepend=-2, append=-3))
    for begin, stop in pairwise(bounds):
        if units[0, begin] < 0:
            continue  # no group: nothing could be relevant to such a query
        total = int(sizes[begin:stop].sum())
        wanted, taken = share * total, 0
        for unit in begin + rng.permutation(stop - begin):
            after = taken + int(sizes[unit])
            # The first unit is taken even if it is larger than the share, further ones if they bring it closer.
            nearer = taken == 0 or abs(after - wanted) < abs(taken - wanted)
            if nearer and total - after >= max(min_corpus, 1):
                chosen[unit], taken = True, after
    return chosen[unit_of_row]


def unseen_half(corpus: EventSequences, seed: int = 0) -> BoolArray:
    """Choose which corpus rows take part in training: (n,) bool, about half; the others are indexed later.

    Every source is on one side, and every group with two sources has rows on both sides. (Where groups share sources
    that is not always possible; then a random search does it for as many groups as it can.) A group whose only source
    belongs to no other group is halved row by row: there the sequences are new, but not their source.
    """
    return ~unseen_part(corpus, 0.5, seed)


def unseen_part(corpus: EventSequences, share: float, seed: int = 0) -> BoolArray:
    """Choose which corpus rows do not take part in training: (n,) bool, about `share` of them; see `unseen_half`."""
    groups, sources, rng = codes_of(corpus, "group"), source_codes(corpus), np.random.default_rng(seed)
    sources = _loosened(groups, sources)
    side = _divide(groups, sources, (1 - share, share), rng)
    return _two_sided(groups, sources, side, rng) == 1


def sample_negatives(
    relevance: Relevance, query: int | IntArray, number: int, rng: np.random.Generator, replace: bool = False
) -> IntArray:
    """Draw corpus rows that are not relevant, uniformly: (number,) for one query, (queries, number) for many.

    Without `replace` no row is drawn twice for the same query.
    """
    queries = np.atleast_1d(np.asarray(query, dtype=np.int64))
    free = relevance.corpus_size - relevance.counts[queries]  # non-relevant rows of each query
    if len(queries) and number > 0 and free.min() < (1 if replace else number):
        raise UserError(
            f"query {queries[free.argmin()]} has only {free.min()} non-relevant corpus sequences, not {number}; "
            "ask for fewer"
        )
    ranks = rng.integers(0, free[:, None], (len(queries), number)) if replace else _distinct(free, number, rng)
    rows = _skip_relevant(relevance, queries, ranks)
    return rows[0] if np.ndim(query) == 0 else rows


# -------------------------------------------------------------------- helpers


def codes_of(sequences: EventSequences, name: str) -> IntArray:
    """Number the values of a column in order of appearance; null, or a missing column, is -1."""
    column = sequences.column(name)
    if column is None:
        return np.full(len(sequences), -1, np.int64)
    encoded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    return encoded.indices.cast(pa.int64()).fill_null(-1).to_numpy(zero_copy_only=False).copy()


def source_codes(sequences: EventSequences) -> IntArray:
    """Number the sources of the rows; a row without a source gets a number of its own."""
    codes = codes_of(sequences, "source")
    alone = codes < 0
    codes[alone] = len(codes) + np.arange(int(alone.sum()))
    return np.unique(codes, return_inverse=True)[1].ravel()


def _loosened(groups: IntArray, sources: IntArray) -> IntArray:
    """Return the sources, but give each row its own if its group has a single source that belongs to no other group."""
    group, source = np.unique(np.stack([groups, sources]), axis=1)
    single_source = np.bincount(group - group.min(initial=0))[groups - group.min(initial=0)] == 1
    single_group = np.bincount(source)[sources] == 1
    alone = single_source & single_group & (groups >= 0)
    loosened = np.where(alone, sources.max(initial=0) + 1 + np.arange(len(sources)), sources)
    return np.unique(loosened, return_inverse=True)[1].ravel()


def _divide(groups: IntArray, sources: IntArray, shares: Sequence[float], rng: np.random.Generator) -> IntArray:
    """Return the side of every row: sources stay whole, each group and the total come close to the shares.

    This is error diffusion: the largest source comes first, and each source goes to the side with the largest deficit.
    The deficit of a side is share * (rows so far) - (rows on that side), of the total plus the mean over the groups of
    the source's rows. Deficits stay near zero, so all divisions end close to their shares.
    """
    number = int(sources.max()) + 1 if len(sources) else 0
    pairs, counts = np.unique(np.stack([sources, groups]), axis=1, return_counts=True)
    bounds = np.searchsorted(pairs[0], np.arange(number + 1)).tolist()
    pair_group, pair_count = (pairs[1] - pairs[1].min(initial=0)).tolist(), counts.tolist()
    sizes = np.bincount(sources, minlength=number)
    order = np.lexsort((rng.random(number), -sizes)).tolist()
    sides = range(len(shares))
    deficit = [0.0 for _ in sides]
    group_deficit = [[0.0 for _ in sides] for _ in range(max(pair_group, default=-1) + 1)]
    side_of_source = np.zeros(number, np.int64)
    for source in order:
        own = range(bounds[source], bounds[source + 1])
        size = int(sizes[source])
        missed = [deficit[s] + share * size for s, share in enumerate(shares)]
        for pair in own:
            group, count = group_deficit[pair_group[pair]], pair_count[pair]
            for s, share in enumerate(shares):
                group[s] += share * count
                missed[s] += group[s] * count / size
        best = max(sides, key=missed.__getitem__)
        side_of_source[source] = best
        for s, share in enumerate(shares):
            deficit[s] += share * size
        deficit[best] -= size
        for pair in own:
            group_deficit[pair_group[pair]][best] -= pair_count[pair]
    # A small share of few sources may round to none; a side with a share gets at least the smallest source.
    for s, share in enumerate(shares):
        held = np.bincount(side_of_source, minlength=len(shares))
        if share > 0 and held[s] == 0 and held.max(initial=0) > 1:
            side_of_source[[i for i in order if side_of_source[i] == held.argmax()][-1]] = s
    return side_of_source[sources]


def _two_sided(groups: IntArray, sources: IntArray, side: IntArray, rng: np.random.Generator) -> IntArray:
    """Move sources between two sides until every group with two sources has rows on both, if possible.

    This is a random walk: a source of a one-sided group changes sides, usually the one that makes the fewest other
    groups one-sided. If every source belongs to one group, one move per group is enough. Otherwise it is a colouring
    problem that may have no solution, so the walk is bounded and the best state found is returned.
    """
    number = int(sources.max(initial=-1)) + 1
    side_of_source = np.zeros(number, np.int64)
    side_of_source[sources] = side
    group, source = np.unique(np.stack([groups, sources])[:, groups >= 0], axis=1)
    sources_of = np.bincount(group)
    by_source = group[np.argsort(source, kind="stable")]
    bounds = np.searchsorted(np.sort(source), np.arange(number + 1))
    ones = np.bincount(group, side_of_source[source], len(sources_of)).astype(np.int64)  # sources on side 1, by group

    def one_sided(which: IntArray | slice, count: IntArray) -> BoolArray:
        return (sources_of[which] > 1) & ((count == 0) | (count == sources_of[which]))

    everything = slice(None)
    best, fewest = side_of_source.copy(), int(one_sided(everything, ones).sum())
    for _ in range(20 * fewest + 100):
        broken = np.flatnonzero(one_sided(everything, ones))
        if len(broken) < fewest:
            best, fewest = side_of_source.copy(), len(broken)
        if not len(broken):
            break
        candidates = rng.permutation(source[group == rng.choice(broken)])
        served = [by_source[bounds[c] : bounds[c + 1]] for c in candidates]
        steps = 1 - 2 * side_of_source[candidates]
        harm = [int(one_sided(own, ones[own] + step).sum()) for own, step in zip(served, steps, strict=True)]
        pick = 0 if rng.random() < 0.2 else int(np.argmin(harm))
        side_of_source[candidates[pick]] += steps[pick]
        ones[served[pick]] += steps[pick]
    return best[sources]


def _distinct(sizes: IntArray, number: int, rng: np.random.Generator) -> IntArray:
    """Draw `number` distinct integers below `sizes[i]` for every i: (len(sizes), number), in random order."""
    drawn = rng.integers(0, np.maximum(sizes, 1)[:, None], (len(sizes), number))
    dense = sizes < 2 * number
    for row in np.flatnonzero(dense):
        drawn[row] = rng.permutation(int(sizes[row]))[:number]
    # Elsewhere repeated integers are drawn again; at most half of all integers are taken, so this ends soon.
    rows = np.flatnonzero(~dense)
    while len(rows):
        order = np.argsort(drawn[rows], axis=1, kind="stable")
        ranked = np.take_along_axis(drawn[rows], order, 1)
        repeated, rank = np.nonzero(ranked[:, 1:] == ranked[:, :-1])
        drawn[rows[repeated], order[repeated, rank + 1]] = rng.integers(0, sizes[rows[repeated]])
        rows = rows[np.unique(repeated)]
    return drawn


def _skip_relevant(relevance: Relevance, queries: IntArray, ranks: IntArray) -> IntArray:
    """Return the corpus row of the `rank`-th non-relevant sequence of each query, by one binary search for all.

    There are r_i - i non-relevant rows before the i-th relevant row r_i, so the answer is rank + #{i: r_i - i <= rank}.
    The numbers r_i - i increase within a query; shifted by one stride per query, they increase over all queries.
    """
    part = relevance.select_queries(queries)
    stride = relevance.corpus_size + 1
    query = np.repeat(np.arange(len(part)), part.counts)
    place_in_run = np.arange(len(part.rows)) - part.offsets[query]
    passed = np.searchsorted(
        query * stride + part.rows - place_in_run, np.arange(len(part))[:, None] * stride + ranks, side="right"
    )
    return ranks + passed - part.offsets[:-1, None]
