"""Simulated judges of hits, some of whom are wrong, and what their judgements bring: to a new model, and at once."""

from __future__ import annotations

import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np

import neuroseqret as nsr
from experiments.result_cells import Result
from neuroseqret.data.relevance import Relevance
from neuroseqret.data.sequences import EventSequence, EventSequences
from neuroseqret.evaluation.protocol import RankingTask
from neuroseqret.feedback.judgements import Judgements
from neuroseqret.feedback.labels import labels_of
from neuroseqret.feedback.rocchio import refined
from neuroseqret.measures.ranking_measures import average_precision
from neuroseqret.methods.registry import make
from neuroseqret.models.base import Embedder, RelevanceModel

FIRST = "histogram"  # the method whose hits are judged; it needs no training
LOOKED_AT = 10  # hits that a judge looks at


def learned(
    task: RankingTask, method: str, judged: int, noise: float, seed: int, max_seconds: float | None = None
) -> Result:
    """Return the MAP of a model fitted to the judgements of some queries per group, and how many there were."""
    bare = task.corpus.without_columns("group")
    model, queries, relevance, judgements = make(method, "default"), None, None, 0
    with tempfile.TemporaryDirectory() as folder:
        if judged:
            index = nsr.Index.create(first_model(task.corpus), Path(folder) / "index", bare)
            judge(index, task, judged, noise, seed)
            labels = labels_of(index, bare)
            queries, relevance, judgements = labels.queries, labels.relevance, labels.judgements
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of few labels, or none
            model.fit(queries, bare, relevance, seed=seed, max_seconds=max_seconds)
    return {"AP": round(mean_ap(model, task), 3), "judgements": judgements}


def judge(index: nsr.Index, task: RankingTask, judged: int, noise: float, seed: int) -> None:
    """Store what judges say about the hits of `judged` queries per group; none of them is a test query."""
    rng, kept, queries = np.random.default_rng(seed), Judgements(index.folder), task.training_queries
    groups, split = (np.array(queries.column(name).to_pylist()) for name in ("group", "split"))  # type: ignore[union-attr]
    row_of = {name: row for row, name in enumerate(task.training_corpus.ids.to_pylist())}
    for group in np.unique(groups):
        for row in rng.permutation(np.flatnonzero((groups == group) & (split != "test")))[:judged].tolist():
            query, relevant = queries[row], set(task.training_relevance.of(row).tolist())
            hits = index.search(query, LOOKED_AT, unknown_marks="keep")
            said = [(hit.id, _said(row_of[hit.id] in relevant, noise, rng)) for hit in hits]
            kept.append(_shown(query), said)


def first_model(corpus: EventSequences) -> Embedder:
    """Return the model of the index whose hits are judged."""
    made = make(FIRST, "default").fit(None, corpus.without_columns("group"))
    assert isinstance(made, Embedder)
    return made


def _said(truth: bool, noise: float, rng: np.random.Generator) -> bool:
    return bool(truth) != (rng.random() < noise)


def _shown(query: EventSequence) -> dict[str, Any]:
    marks = query.marks.tolist() if query.mark_names is None else [query.mark_names[mark] for mark in query.marks]
    return {"id": query.id, "times": query.times.tolist(), "marks": marks}


def mean_ap(model: RelevanceModel, task: RankingTask) -> float:
    """Return the MAP of a model in points, the whole corpus ranked."""
    return _points(model.score(task.queries, task.corpus, unknown_marks="keep"), task.relevance)


def _points(scores: np.ndarray, relevance: Relevance) -> float:
    return 100 * float(np.nanmean(average_precision(scores, relevance)))


def at_once(model: Embedder, task: RankingTask, noise: float) -> Result:
    """Return MAP of what was not judged: as it was, moved towards the good hits, and also away from the others."""
    rng = np.random.default_rng(0)
    queries = model.embed(task.queries, "query", unknown_marks="keep")
    rows = model.embed(task.corpus, "corpus", unknown_marks="keep")
    as_query = model.as_query(rows)
    sums, worse = np.zeros(3), np.zeros(2, int)
    counted = 0
    for at, query in enumerate(queries):
        best = np.argsort(-(rows @ query), kind="stable")[:LOOKED_AT]
        said = np.array([_said(bool(np.isin(row, task.relevance.of(at))), noise, rng) for row in best])
        left = np.ones(len(rows), bool)
        left[best] = False
        rest = task.relevance.select_queries(np.array([at])).select_corpus(left)
        if not rest.counts[0]:
            continue
        good, bad = as_query[best[said]], as_query[best[~said]]
        moved = [query, refined(query, good), refined(query, good, bad)]
        values = [_points((rows[left] @ vector)[None], rest) for vector in moved]
        sums, counted = sums + values, counted + 1
        worse += [values[1] < values[0] - 1e-9, values[2] < values[0] - 1e-9]
    plain, towards, both = (sums / max(counted, 1)).round(3).tolist()
    counts = {"worse_towards": int(worse[0]), "worse_both": int(worse[1]), "queries": counted}
    return {"plain": plain, "towards": towards, "both": both, **counts}
