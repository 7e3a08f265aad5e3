"""Golden figures of everything between a fitted method and a cell: the protocol, and the looks of the experiments.

They do not depend on any method, so a method that changes does not move them. `runtime` measures time and has none.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from golden_data import SEED, golden_data

from experiments import examples, hash_curve
from experiments.cutting import CUTS, cut_queries
from neuroseqret.baselines.random import Random
from neuroseqret.candidates.codes import pack_bits
from neuroseqret.candidates.hyperplanes import RandomHyperplanes
from neuroseqret.data.relevance import Relevance
from neuroseqret.evaluation.protocol import RankingTask, make_task
from neuroseqret.evaluation.scoring import answer_from

Figures = dict[str, Any]


def _task(**options: Any) -> RankingTask:
    return make_task(*golden_data(), seed=SEED, **options)


def protocol() -> Figures:
    """Measures of fixed scores with many ties, the queries drawn, and the best candidates of the first query."""
    found: Figures = {}
    for name in ("full", "sampled"):
        for condition in ("seen", "unseen"):
            task = _task(protocol=name, condition=condition, max_queries=8, negatives=20)
            scores = np.random.default_rng(0).integers(0, 4, (len(task.queries), len(task.corpus)))
            answers = answer_from(scores.astype(np.float32), task)
            which = f"{name} {condition}"
            found[f"{which} measures"] = [round(float(values.mean()), 6) for values in answers.measures.values()]
            found[f"{which} queries"] = task.queries.ids.to_pylist()
            found[f"{which} best"] = answers.top_rows[0, :8].tolist()
    return found


def cutting() -> Figures:
    """The first time and the length of cut queries."""
    queries, _ = golden_data()
    cut = {name: cut_queries(queries, name, SEED) for name in CUTS if name != "whole"}
    return {
        **{f"{name} lengths": made.lengths[:12].tolist() for name, made in cut.items()},
        **{f"{name} starts": [round(float(made[row].times[0]), 6) for row in range(12)] for name, made in cut.items()},
    }


def hashing() -> Figures:
    """Curves of the ways without a hash function, and how many codes share a bucket with the first."""
    rng = np.random.default_rng(1)
    centres, labels = rng.normal(size=(20, 16)), np.repeat(np.arange(20), 30)
    made = centres[np.concatenate([labels, np.arange(20)])] + 0.5 * rng.normal(size=(620, 16))
    unit = (made / np.linalg.norm(made, axis=1, keepdims=True)).astype(np.float32)
    truth = Relevance(np.arange(21) * 30, np.arange(600), 600)
    curves = {way: hash_curve.curve(way, "golden", unit[:600], unit[600:], truth) for way in ("exhaustive", "cells")}
    codes = pack_bits(rng.random((400, hash_curve.BITS)) < 0.2)
    masks = hash_curve.bucket_masks(RandomHyperplanes(hash_curve.BITS), (1, 4, 8, 16))
    return {
        **{f"{way} {part}": [point[part] for point in points] for way, points in curves.items() for part in points[0]},
        "bucket": [len(hash_curve.in_buckets(codes, codes[0], mask)) for mask in masks],
    }


def qualitative() -> Figures:
    """The query that is shown, its hits, and the times of its first events."""
    queries, corpus = golden_data()
    look = examples.best_hits(Random().fit(queries, corpus, seed=SEED), _task(), 3)
    return {
        "ids": [look["query"]["id"], *(hit["id"] for hit in look["hits"])],
        "relevant": [hit["relevant"] for hit in look["hits"]],
        "times": look["query"]["times"][:12],
    }


def unwarping() -> Figures:
    """The pair that is shown. What U does to it belongs to the model."""
    task = _task()
    row, hit = examples.typical_pair(task)
    return {"ids": [task.queries.ids[row].as_py(), task.corpus.ids[hit].as_py()]}


LOOKS = {"cutting": cutting, "hashing": hashing, "qualitative": qualitative, "unwarping": unwarping}
