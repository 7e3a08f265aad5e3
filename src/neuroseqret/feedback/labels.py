"""Judgements as queries and relevance, so that the next `fit` learns from them.

A judged query is a training query like any other; what was judged relevant is relevant to it. If several people judged
the same pair, the majority decides, and a tie counts as not relevant. A query without a relevant sequence teaches
nothing that `fit` can use, and is left out.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np

from neuroseqret.data.relevance import Relevance
from neuroseqret.data.sequences import EventSequences
from neuroseqret.data.windows import part
from neuroseqret.errors import UserError
from neuroseqret.feedback.judgements import StoredJudgement, judgements_of
from neuroseqret.index import Index
from neuroseqret.index.view import UnknownId, View


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
) -> Labels:
    """Return the judgements stored with an index as labels for a corpus, after the labels that there are already."""
    stored = judgements_of(index).latest()
    if not stored:
        raise UserError(f"{index.name}: no judgements are stored; give feedback on the page, or by POST /v1/feedback")
    view, known = index.view(), set(corpus.ids.to_pylist())
    judged: list[EventSequences] = []
    qrels: dict[str, dict[str, int]] = {}
    used = 0
    for text, votes in _by_query(stored).items():
        relevant = {id: 1 for id, vote in votes.items() if vote > 0 and id in known}
        sequence = _query(json.loads(text), view) if relevant else None
        if sequence is not None:
            name = f"judged-{len(judged)}"
            judged.append(_bare(sequence).with_column("id", [name]))
            qrels[name], used = relevant, used + len(votes)
    if not judged:
        raise UserError(f"{index.name}: no judgement names a relevant sequence of this corpus; judge more hits first")
    made = EventSequences.concat(judged)
    found = Relevance.from_qrels(made, corpus, qrels)
    if queries is None or not len(queries):
        return Labels(made, found, used, len(stored) - used)
    before = Relevance.from_groups(queries, corpus) if relevance is None else relevance
    own = queries.without_columns(*(name for name in queries.metadata.column_names if name != "split"), "group")
    if own.column("split") is not None:
        made = made.with_column("split", ["train"] * len(made))
    return Labels(EventSequences.concat([own, made]), _joined(before, found), used, len(stored) - used)


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
    return meaning.apply(made, "keep")


def _bare(sequence: EventSequences) -> EventSequences:
    return sequence.without_columns(*sequence.metadata.column_names, "group")


def _joined(first: Relevance, second: Relevance) -> Relevance:
    """Return the relevance of the queries of both, against the same corpus."""
    offsets = np.concatenate([first.offsets, first.offsets[-1] + second.offsets[1:]])
    return Relevance(offsets, np.concatenate([first.rows, second.rows]), first.corpus_size)
