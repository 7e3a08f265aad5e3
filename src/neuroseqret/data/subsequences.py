"""Relevance for unlabelled data: parts of the same sequence are relevant to one another.

`overlapping` is the paper's heuristic. Its queries share events with their answers, so that finding equal gaps is
enough. `disjoint` is the same idea without this leak. Both return a corpus and queries, split and with group = parent,
ready to be written as a data folder.
"""

from __future__ import annotations

import numpy as np

from neuroseqret.data.sequences import EventSequences, IntArray
from neuroseqret.data.splits import split_queries
from neuroseqret.data.windows import take_runs
from neuroseqret.errors import DataError, UserError


def overlapping(
    parents: EventSequences,
    number: tuple[int, int] = (200, 300),
    events: tuple[int, int] = (10, 100),
    seed: int = 0,
) -> tuple[EventSequences, EventSequences]:
    r"""Make corpus and queries as in the paper: draw a set U_q of sub-sequences from each parent, and a query from it.

    $|U_q| \sim Unif[200, 300]$ (`number`). A sub-sequence is a run of consecutive events; its length is uniform in
    `events` (at most that of the parent) and its place is uniform. The corpus is $\bigcup_q U_q \setminus H_q$, and
    relevant to query $H_q$ are the sub-sequences of its parent. U_q is a set: equal runs count once, so a short parent
    has fewer. Parents with events[0] events or fewer are left out, as they do not have two such runs.
    """
    _check_range("number", number, least=2)
    _check_range("events", events, least=1)
    rng = np.random.default_rng(seed)
    usable = np.flatnonzero(parents.lengths > events[0])
    if not len(usable):
        raise DataError(f"no sequence has more than {events[0]} events", remedy="ask for shorter sub-sequences")
    parent = np.repeat(usable, rng.integers(number[0], number[1] + 1, len(usable)))
    runs = np.unique(_random_runs(parents.lengths, parent, events, rng), axis=0)
    while len(lonely := np.setdiff1d(usable, runs[1:, 0][np.diff(runs[:, 0]) == 0])):
        # All draws from this parent gave the same run, but a query and an answer are two.
        runs = np.unique(np.concatenate([runs, _random_runs(parents.lengths, lonely, events, rng)]), axis=0)
    # Shuffle, then take the first run of each parent: a uniform draw from each U_q.
    runs = runs[rng.permutation(len(runs))]
    is_query = np.zeros(len(runs), bool)
    is_query[np.unique(runs[:, 0], return_index=True)[1]] = True
    return _retrieval_set(parents, runs[~is_query], runs[is_query], seed, rng)


def disjoint(
    parents: EventSequences,
    events: int = 50,
    query_share: float = 1 / 3,
    min_corpus: int = 3,
    seed: int = 0,
) -> tuple[EventSequences, EventSequences]:
    """Make corpus and queries without a leak: windows of `events` events that do not overlap.

    The last `query_share` of a parent's windows are queries. The window before them is left out, so that queries and
    answers do not even touch. The earlier windows are the corpus, at least `min_corpus` of them. A parent with too few
    windows gives no query and stays in the corpus as a distractor. Events at the end that fill no window are dropped.
    """
    if events < 1 or not 0 < query_share < 1 or min_corpus < 1:
        raise UserError(
            "windows need at least one event, queries a share between 0 and 1, and the corpus at least one window; "
            f"not {events}, {query_share:g} and {min_corpus}"
        )
    windows = parents.lengths // events
    if not windows.any():
        raise DataError(f"no sequence has {events} events", remedy="ask for shorter windows")
    most = np.maximum(windows - 1 - min_corpus, 0)
    queries = np.minimum(np.maximum(np.round(windows * query_share).astype(np.int64), 1), most)
    first_query = np.where(queries > 0, windows - queries, windows)
    last_corpus = np.where(queries > 0, first_query - 1, windows)  # the window in between is left out
    parent = np.repeat(np.arange(len(parents)), windows)
    rank = np.arange(len(parent)) - np.repeat(np.cumsum(windows) - windows, windows)
    runs = np.stack([parent, rank * events, (rank + 1) * events], axis=1)
    in_corpus, in_queries = rank < last_corpus[parent], rank >= first_query[parent]
    if not in_queries.any():
        raise DataError(
            f"no sequence has {min_corpus + 2} windows of {events} events", remedy="ask for shorter windows"
        )
    return _retrieval_set(parents, runs[in_corpus], runs[in_queries], seed, np.random.default_rng(seed))


def _random_runs(lengths: IntArray, parent: IntArray, events: tuple[int, int], rng: np.random.Generator) -> IntArray:
    """Draw one run for every entry of `parent`: (n, 3) of parent, begin, stop."""
    size = rng.integers(events[0], np.minimum(events[1], lengths[parent]) + 1)
    begin = rng.integers(0, lengths[parent] - size + 1)
    return np.stack([parent, begin, begin + size], axis=1)


def _retrieval_set(
    parents: EventSequences, corpus: IntArray, queries: IntArray, seed: int, rng: np.random.Generator
) -> tuple[EventSequences, EventSequences]:
    """Return runs (parent, begin, stop) as corpus and queries, in random order, with group = parent and a split."""

    def made(runs: IntArray) -> EventSequences:
        runs = runs[rng.permutation(len(runs))]
        part = take_runs(parents, *runs.T)
        if part.column("source") is None:
            part = part.with_column("source", part.column("parent"))
        if part.groups is not None:
            part = part.with_column("parent_group", part.groups)
        return part.with_column("group", part.column("parent"))

    return made(corpus), split_queries(made(queries), seed)


def _check_range(name: str, given: tuple[int, int], least: int) -> None:
    if not least <= given[0] <= given[1]:
        raise UserError(f"{name} is {given}; give a range (low, high) with {least} <= low <= high")
