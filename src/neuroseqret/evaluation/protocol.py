"""What is ranked for whom: the task that every method gets, the same for all of them.

Two protocols. `full` ranks the whole corpus. `sampled` is the paper's: for every query all relevant sequences and
1000 random non-relevant ones; a query's list depends on the seed, its id and the corpus alone, never on the method.

Two corpus conditions. `seen`: the corpus takes part in training, as in the paper. `unseen`: methods are trained with
half of the corpus' sources and rank the other half, as with sequences that are indexed after training (see
`neuroseqret.data.splits.unseen_half` for groups with a single source).

A query with nothing relevant in the ranked corpus has no AP; it is left out for all methods, and counted.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from neuroseqret.data.relevance import Relevance
from neuroseqret.data.sequences import EventSequences, IntArray
from neuroseqret.data.splits import ensure_split, sample_negatives, split_rows, unseen_half
from neuroseqret.errors import DataError, UserError
from neuroseqret.measures.ties import Keys, id_keys

Protocol = Literal["sampled", "full"]
Condition = Literal["seen", "unseen"]
NEGATIVES = 1000


@dataclass(frozen=True)
class CandidateLists:
    """The sampled candidates of every query, as wide as the longest list; shorter ones are padded with -1."""

    rows: IntArray  # (queries, width) corpus rows, rising, -1 at the end
    relevance: Relevance  # positions in the list instead of corpus rows

    def of(self, query: int) -> IntArray:
        """Corpus rows of one query's list."""
        listed = self.rows[query]
        return listed[listed >= 0]


@dataclass(frozen=True)
class Task:
    """Queries to answer, a corpus to rank, and what a method may be trained on."""

    protocol: Protocol
    condition: Condition
    split: str
    seed: int
    queries: EventSequences  # those to answer
    corpus: EventSequences  # to rank
    relevance: Relevance  # of `queries` to `corpus`
    lists: CandidateLists | None  # None: the whole corpus
    training_queries: EventSequences  # with all splits; a method learns from train, selects on validation
    training_corpus: EventSequences
    training_relevance: Relevance
    whole_corpus: EventSequences  # both halves in `unseen`
    left_out: int  # queries of the split with nothing relevant in `corpus`
    not_drawn: int  # queries of the split beyond the cap on their number

    @property
    def candidates(self) -> IntArray:
        """Number of candidates of each query: (queries,)."""
        if self.lists is None:
            return np.full(len(self.queries), len(self.corpus))
        return (self.lists.rows >= 0).sum(1)

    def tie_keys(self) -> tuple[Keys, Keys]:
        """Hashes of the queries' and the corpus' ids that break ties; see `neuroseqret.measures.ties`."""
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
) -> Task:
    """The task for the queries of a split; `max_queries` draws that many of them, the same for every method.

    Queries without a `split` column are split here as `fit` would split them, with the same seed.
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
        raise DataError("the corpus has a single source, so that no half of it can be unseen")
    ranked_corpus = corpus[ranked] if condition == "unseen" else corpus
    answerable = relevance.select_corpus(ranked) if condition == "unseen" else relevance

    of_split = split_rows(queries, split)
    usable = of_split[answerable.counts[of_split] > 0]
    if not len(usable):
        raise DataError(f"none of the {len(of_split)} {split} queries has a relevant sequence in the ranked corpus")
    drawn = draw_queries(queries, usable, max_queries, seed)
    asked, truth = queries[drawn], answerable.select_queries(drawn)
    return Task(
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
    """At most `number` of the rows, in order; a smaller number draws a part of what a larger one draws."""
    if number is None or number >= len(rows):
        return rows
    chosen = np.argsort(id_keys(queries.ids, seed)[rows], kind="stable")[:number]
    return np.sort(rows[chosen])


def sample_lists(queries: EventSequences, relevance: Relevance, seed: int, negatives: int) -> CandidateLists:
    """All relevant rows and `negatives` random others (all others if there are fewer) for every query.

    Each query has a random generator of its own, seeded with its id, so that a list does not depend on which other
    queries are asked.
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
    """A query that is itself in the corpus would find itself: an error that names it."""
    twice = set(queries.ids.to_pylist()) & set(corpus.ids.to_pylist())
    if twice:
        raise DataError(
            f"is both a query and in the corpus ({len(twice)} such)",
            sequence=min(twice),
            remedy="give queries and corpus different sequences and ids",
        )
