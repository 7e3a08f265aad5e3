"""The task that every method gets: which queries are asked, which sequences are ranked, what may be learned from.

There are two protocols. `full` ranks the whole corpus. `sampled` is the paper's: each query ranks all its relevant
sequences and 1000 random others. The list of a query depends on the seed, the query's id and the corpus, never on the
method.

There are two conditions. In `seen` the corpus takes part in training, as in the paper. In `unseen` methods are trained
with one half of the corpus's sources and rank the other half, like sequences that are indexed after training (see
`neuroseqret.data.splits.unseen_half` for groups with a single source).

A query with nothing relevant in the ranked corpus has no AP. It is left out for all methods, and counted.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np

from neuroseqret.data.relevance import Relevance
from neuroseqret.data.sequences import EventSequences, IntArray
from neuroseqret.data.splits import ensure_split, sample_negatives, split_rows, unseen_half
from neuroseqret.errors import DataError, UserError
from neuroseqret.measures.ties import Keys, id_keys

#: Raise this when the drawn queries, the lists, the halves, the order of ties or the measures change: results of
#: another version are computed again. tests/golden fails when they change and this number does not.
PROTOCOL_VERSION = 1

Protocol = Literal["sampled", "full"]
Condition = Literal["seen", "unseen"]
NEGATIVES = 1000


@dataclass(frozen=True)
class CandidateLists:
    """The sampled candidates of every query. Lists shorter than the longest one are padded with -1."""

    rows: IntArray  # (queries, width) corpus rows in rising order, then -1
    relevance: Relevance  # with positions in the list in place of corpus rows

    def of(self, query: int) -> IntArray:
        """Return the corpus rows of one query's list."""
        listed = self.rows[query]
        return listed[listed >= 0]


@dataclass(frozen=True)
class RankingTask:
    """Queries to answer, a corpus to rank, and what a method may be trained with."""

    protocol: Protocol
    condition: Condition
    split: str
    seed: int
    queries: EventSequences  # the queries to answer
    corpus: EventSequences  # the sequences to rank
    relevance: Relevance  # of `queries` to `corpus`
    lists: CandidateLists | None  # None: each query ranks the whole corpus
    training_queries: EventSequences  # all splits; a method learns from train and selects on validation
    training_corpus: EventSequences
    training_relevance: Relevance
    whole_corpus: EventSequences  # both halves in `unseen`
    left_out: int  # queries of the split with nothing relevant in `corpus`
    not_drawn: int  # queries of the split that `max_queries` left out

    @property
    def candidates(self) -> IntArray:
        """The number of candidates of each query: (queries,)."""
        if self.lists is None:
            return np.full(len(self.queries), len(self.corpus))
        return (self.lists.rows >= 0).sum(1)

    def part(self, rows: IntArray) -> RankingTask:
        """Return the task of answering some of the queries."""
        lists = self.lists
        if lists is not None:
            lists = CandidateLists(lists.rows[rows], lists.relevance.select_queries(rows))
        return replace(self, queries=self.queries[rows], relevance=self.relevance.select_queries(rows), lists=lists)

    def tie_keys(self) -> tuple[Keys, Keys]:
        """Return the hashes of query and corpus ids that break ties; see `neuroseqret.measures.ties`."""
        return id_keys(self.queries.ids, self.seed), id_keys(self.corpus.ids, self.seed)


def make_task(
    queries: EventSequences,
    corpus: EventSequences,
    relevance: Relevance | None = None,
    *,
    protocol: Protocol = "full",
    condition: Condition = "seen",
    split: str = "test",
    seed: int = 0,
    max_queries: int | None = None,
    negatives: int = NEGATIVES,
) -> RankingTask:
    """Return the task for the queries of a split; `max_queries` draws that many of them, the same for every method.

    Queries without a `split` column are split here, exactly as `fit` would split them with the same seed.
    """
    if protocol not in get_args(Protocol):
        raise UserError(f"no protocol is called {protocol!r}; there are {', '.join(get_args(Protocol))}")
    if condition not in get_args(Condition):
        raise UserError(f"the corpus is {' or '.join(get_args(Condition))}, not {condition!r}")
    if max_queries is not None and max_queries < 1:
        raise UserError(f"at least one query is needed, not {max_queries}")
    check_apart(queries, corpus)
    queries = ensure_split(queries, seed)
    relevance = Relevance.from_groups(queries, corpus) if relevance is None else relevance
    learned = unseen_half(corpus, seed) if condition == "unseen" else np.ones(len(corpus), bool)
    ranked = ~learned if condition == "unseen" else learned
    if condition == "unseen" and not (ranked.any() and learned.any()):
        raise DataError("the corpus has a single source, so no half of it can be unseen")
    ranked_corpus = corpus[ranked] if condition == "unseen" else corpus
    answerable = relevance.select_corpus(ranked) if condition == "unseen" else relevance

    of_split = split_rows(queries, split)
    usable = of_split[answerable.counts[of_split] > 0]
    if not len(usable):
        raise DataError(f"none of the {len(of_split)} {split} queries has a relevant sequence in the ranked corpus")
    drawn = draw_queries(queries, usable, max_queries, seed)
    asked, truth = queries[drawn], answerable.select_queries(drawn)
    return RankingTask(
        protocol=protocol,
        condition=condition,
        split=split,
        seed=seed,
        queries=asked,
        corpus=ranked_corpus,
        relevance=truth,
        lists=sample_lists(asked, truth, seed, negatives) if protocol == "sampled" else None,
        training_queries=queries,
        training_corpus=corpus[learned] if condition == "unseen" else corpus,
        training_relevance=relevance.select_corpus(learned) if condition == "unseen" else relevance,
        whole_corpus=corpus,
        left_out=len(of_split) - len(usable),
        not_drawn=len(usable) - len(drawn),
    )


def draw_queries(queries: EventSequences, rows: IntArray, number: int | None, seed: int) -> IntArray:
    """Return at most `number` of the rows, in order; what a smaller number draws, a larger one draws too."""
    if number is None or number >= len(rows):
        return rows
    chosen = np.argsort(id_keys(queries.ids, seed)[rows], kind="stable")[:number]
    return np.sort(rows[chosen])


def sample_lists(queries: EventSequences, relevance: Relevance, seed: int, negatives: int) -> CandidateLists:
    """Return, for every query, all relevant rows and `negatives` random others (or all others, if fewer).

    Each query has its own random generator, seeded with its id, so a list does not depend on the other queries.
    """
    lists, positions = [], []
    for query, key in enumerate(id_keys(queries.ids, seed).tolist()):
        relevant = relevance.of(query)
        number = min(negatives, relevance.corpus_size - len(relevant))
        drawn = sample_negatives(relevance, query, number, np.random.default_rng(key))
        listed = np.sort(np.concatenate([relevant, drawn]))
        lists.append(listed)
        positions.append(np.searchsorted(listed, relevant))
    width = max(len(listed) for listed in lists)
    rows = np.full((len(lists), width), -1, np.int64)
    for query, listed in enumerate(lists):
        rows[query, : len(listed)] = listed
    return CandidateLists(rows, Relevance(relevance.offsets, np.concatenate(positions), width))


def check_apart(queries: EventSequences, corpus: EventSequences) -> None:
    """Raise a `DataError` if a query is in the corpus too: it would find itself."""
    twice = set(queries.ids.to_pylist()) & set(corpus.ids.to_pylist())
    if twice:
        raise DataError(
            f"is both a query and in the corpus ({len(twice)} such)",
            sequence=min(twice),
            remedy="give queries and corpus different sequences and ids",
        )
