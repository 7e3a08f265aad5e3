"""How much feedback helps: simulated judges, some of whom are wrong.

    python -m experiments.feedback [--data DIR] [--seeds 3]

The corpus has no labels. A first index ranks it by histograms. Judges look at the ten best hits of 1, 3 or 10 queries
per group and say which are of the query's group; with noise, each of their words is wrong with probability 0.1. The
judgements go through the index's own store.

- Learned: `histogram-metric` is fitted to the judgements, and ranks the corpus for test queries that nobody judged.
- At once: Rocchio moves each test query by the judgements of its own ten best hits; MAP over the rest of the corpus,
  because the judged hits would count twice.
"""

from __future__ import annotations

import argparse
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np

import neuroseqret as nsr
from neuroseqret.data.relevance import Relevance
from neuroseqret.data.sequences import EventSequence, EventSequences
from neuroseqret.feedback.judgements import Judgements
from neuroseqret.feedback.labels import labels_of
from neuroseqret.feedback.rocchio import refined
from neuroseqret.measures.ranking_measures import average_precision
from neuroseqret.methods.registry import make
from neuroseqret.models.base import Embedder

LOOKED_AT, JUDGED, NOISE = 10, (1, 3, 10), (0.0, 0.1)


def main() -> None:
    """Measure and print one table per question."""
    parser = argparse.ArgumentParser(description="How much feedback of simulated judges helps.")
    parser.add_argument("--data", type=Path, help="data folder; simulated data by default")
    parser.add_argument("--seeds", type=int, default=3)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    data = nsr.simulate(12, 30, 24, seed=0) if given.data is None else nsr.read_folder(given.data)
    assert data.queries is not None
    split = np.array(data.queries.column("split").to_pylist())  # type: ignore[union-attr]
    pool, test = data.queries[split != "test"], data.queries[split == "test"]
    first = make("histogram", "default").fit(None, data.corpus)
    assert isinstance(first, Embedder)
    relevance = Relevance.from_groups(test, data.corpus)
    with tempfile.TemporaryDirectory() as folder:
        index = nsr.Index.create(first, Path(folder) / "index", data.corpus)
        print(f"{len(data.corpus):,} sequences, {len(test)} test queries, MAP in points; mean of {given.seeds} seeds")
        print(f"no feedback: {_points(first.score(test, data.corpus), relevance):.1f}")
        for noise in NOISE:
            for number in JUDGED:
                runs = [
                    _learned(index, pool, number, noise, seed, data.corpus, test, relevance)
                    for seed in range(given.seeds)
                ]
                values, judgements = zip(*runs, strict=True)
                print(
                    f"learned from {number:2} judged queries per group, {noise:.0%} wrong: {np.mean(values):.1f} "
                    f"± {np.std(values):.1f} ({np.mean(judgements):.0f} judgements)"
                )
        for noise in NOISE:
            print(f"at once, {noise:.0%} wrong: {_at_once(first, data.corpus, test, relevance, noise)}")


def _learned(
    index: nsr.Index,
    pool: EventSequences,
    number: int,
    noise: float,
    seed: int,
    corpus: EventSequences,
    test: EventSequences,
    relevance: Relevance,
) -> tuple[float, int]:
    """Return the MAP of a model fitted to the judgements of some queries per group, and how many there were."""
    rng = np.random.default_rng(seed)
    kept = Judgements(index.folder)
    kept.file.unlink(missing_ok=True)
    groups = np.array(pool.groups.to_pylist())  # type: ignore[union-attr]
    for group in np.unique(groups):
        for row in rng.permutation(np.flatnonzero(groups == group))[:number]:
            query = pool[int(row)]
            hits = index.search(query, LOOKED_AT)
            kept.append(_shown(query), [(hit.id, _said(hit.group == group, noise, rng)) for hit in hits])
    bare = corpus.without_columns("group")
    labels = labels_of(index, bare)
    model = make("histogram-metric", "default").fit(labels.queries, bare, labels.relevance, seed=seed)
    return _points(model.score(test, corpus), relevance), labels.judgements


def _said(truth: bool, noise: float, rng: np.random.Generator) -> bool:
    return bool(truth) != (rng.random() < noise)


def _shown(query: EventSequence) -> dict[str, Any]:
    marks = query.marks.tolist() if query.mark_names is None else [query.mark_names[mark] for mark in query.marks]
    return {"id": query.id, "times": query.times.tolist(), "marks": marks}


def _points(scores: np.ndarray, relevance: Relevance) -> float:
    return 100 * float(np.nanmean(average_precision(scores, relevance)))


def _at_once(model: Any, corpus: EventSequences, test: EventSequences, relevance: Relevance, noise: float) -> str:
    """Return residual MAP without feedback, with relevant hits alone, and with all judgements."""
    rng = np.random.default_rng(0)
    queries, rows = model.embed(test, "query"), model.embed(corpus, "corpus")
    sums, worse = np.zeros(3), np.zeros(2, int)
    counted = 0
    for at in range(len(test)):
        best = np.argsort(-(rows @ queries[at]), kind="stable")[:LOOKED_AT]
        said = np.array([_said(bool(np.isin(row, relevance.of(at))), noise, rng) for row in best])
        left = np.ones(len(corpus), bool)
        left[best] = False
        rest = relevance.select_queries(np.array([at])).select_corpus(left)
        if not rest.counts[0]:
            continue
        moved = [
            queries[at],
            refined(queries[at], rows[best[said]]),
            refined(queries[at], rows[best[said]], rows[best[~said]]),
        ]
        values = [_points((rows[left] @ vector)[None], rest) for vector in moved]
        sums, counted = sums + values, counted + 1
        worse += [values[1] < values[0] - 1e-9, values[2] < values[0] - 1e-9]
    plain, towards, both = sums / counted
    return (
        f"MAP of what was not judged {plain:.1f}; towards relevant hits {towards:.1f} (worse for {worse[0]} of "
        f"{counted} queries); also away from the others {both:.1f} (worse for {worse[1]})"
    )


if __name__ == "__main__":
    main()
