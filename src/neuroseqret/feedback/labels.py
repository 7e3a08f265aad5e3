"""Judgements as queries and relevance, so that the next `fit` learns from them.

A judged query is a query to train on; none of them is kept aside for validation or a test. What was judged relevant is
relevant to it. If several people judged the same pair, the majority decides, and a tie counts as not relevant. A query
without a relevant sequence teaches nothing that `fit` can use, and is left out.

Where the data have groups, a judged query joins the group that most of its relevant sequences belong to. So it has all
answers and not only those that somebody looked at, one wrong judgement does not matter, and `fit` can still use the
groups. A query whose relevant sequences have no such group is left out.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np

from neuroseqret.data.relevance import Relevance
from neuroseqret.data.sequences import EventSequences, IntArray
from neuroseqret.data.splits import ensure_split
from neuroseqret.data.windows import part
from neuroseqret.errors import UserError
from neuroseqret.feedback.judgements import StoredJudgement, judgements_of
from neuroseqret.index import Index
from neuroseqret.index.view import UnknownId, View
from neuroseqret.processes.event_values import bare, has_numbers


@dataclass(frozen=True)
class Labels:
    """Queries and relevance for `fit`, with how many judgements they hold."""

    queries: EventSequences
    relevance: Relevance
    judgements: int
    skipped: int  # judgements of queries or sequences that are no longer there, or that nothing is relevant to


def labels_of(
    index: Index,
    corpus: EventSequences,
    queries: EventSequences | None = None,
    relevance: Relevance | None = None,
    seed: int = 0,
) -> Labels:
    """Return the judgements stored with an index as labels for a corpus, after the labels that there are already.

    `seed` is that of `fit`: it splits the queries that have no `split` as `fit` would.
    """
    stored = judgements_of(index).latest()
    if not stored:
        raise UserError(f"{index.name}: no judgements are stored; give feedback on the page, or by POST /v1/feedback")
    view, known = index.view(), set(corpus.ids.to_pylist())
    readable = [name for name in corpus.metadata.column_names if has_numbers(corpus, name)]
    judged: list[EventSequences] = []
    qrels: dict[str, dict[str, int]] = {}
    votes: dict[str, Counter[str]] = {}
    for text, said in _by_query(stored).items():
        relevant = {id: 1 for id, vote in said.items() if vote > 0 and id in known}
        sequence = _query(json.loads(text), view) if relevant else None
        if sequence is not None:
            name = f"judged-{len(judged)}"
            judged.append(_bare(sequence, readable).with_column("id", [name]))
            qrels[name], votes[name] = relevant, said
    if not judged:
        raise UserError(f"{index.name}: no judgement names a relevant sequence of this corpus; judge more hits first")
    used = sum(map(len, votes.values()))
    made = EventSequences.concat(judged).with_column("split", ["train"] * len(judged))
    found = Relevance.from_qrels(made, corpus, qrels)
    if queries is None or not len(queries):
        return Labels(made, found, used, len(stored) - used)
    before = Relevance.from_groups(queries, corpus) if relevance is None else relevance
    own = ensure_split(queries, seed)
    own = _bare(own, readable).with_column("split", own.column("split"))
    if before.labels is not None and before.query_labels is not None:
        groups = _groups_of(found, before.labels)
        used = sum(len(votes[name]) for name, group in zip(qrels, groups.tolist(), strict=True) if group >= 0)
        made, found = made[groups >= 0], _of_groups(before.labels, groups[groups >= 0])
    return Labels(EventSequences.concat([own, made]), before.followed_by(found), used, len(stored) - used)


def _by_query(stored: list[StoredJudgement]) -> dict[str, Counter[str]]:
    """Return for each query the votes of each sequence: more than 0 if most people called it relevant."""
    found: dict[str, Counter[str]] = {}
    for one in stored:
        found.setdefault(json.dumps(one.query, sort_keys=True), Counter())[one.id] += 1 if one.relevant else -1
    return found


def _query(query: dict[str, Any], view: View) -> EventSequences | None:
    """Return the sequence of a stored query; None if it is no longer in the index."""
    if "times" in query:
        return _given(query, view)
    try:
        whole = view.whole([query["id"]])
        return whole if query.get("events") is None else part(whole, tuple(query["events"]))
    except UnknownId:
        return None


def _given(query: dict[str, Any], view: View) -> EventSequences:
    meaning = view.config.meaning
    names = {name: number for number, name in enumerate(meaning.mark_names or ())}
    marks = [names.setdefault(mark, len(names)) if isinstance(mark, str) else int(mark) for mark in query["marks"]]
    bounds = {f"{name}s": [query[name]] for name in ("start", "end") if query.get(name) is not None}
    known = tuple(names) or None
    made = EventSequences.from_lists([(query["times"], marks)], mark_names=known, time_unit=meaning.time_unit, **bounds)
    for name, numbers in query.get("values", {}).items():
        made = made.with_column(name, [numbers])
    return meaning.apply(made, "keep")


def _bare(sequences: EventSequences, readable: list[str]) -> EventSequences:
    """Return the sequences with those of the columns that a model can learn from, as numbers of events."""
    return bare(sequences, [name for name in readable if has_numbers(sequences, name)])


def _groups_of(found: Relevance, labels: IntArray) -> IntArray:
    """Return for each query the group that more than half of its relevant sequences belong to, -1 if there is none."""
    groups = []
    for query in range(len(found)):
        group, number = np.unique(labels[found.of(query)], return_counts=True)
        groups.append(group[number.argmax()] if 2 * number.max() > number.sum() else -1)
    return np.array(groups, np.int64)


def _of_groups(labels: IntArray, groups: IntArray) -> Relevance:
    """Return the relevance of queries that belong to these groups of the corpus."""
    rows = [np.flatnonzero(labels == group) for group in groups]
    offsets = np.cumsum([0, *map(len, rows)]).astype(np.int64)
    return Relevance(offsets, np.concatenate([*rows, labels[:0]]).astype(np.int64), len(labels), labels, groups)
