"""Measurements that are not rankings: curves of hashes, examples, the index; with quick models."""

from __future__ import annotations

import numpy as np
import pytest

from experiments import (
    examples,
    feedback,
    hashing,
    qualitative,
    runtime,
    unwarping,
)
from experiments.find_data import find_data
from experiments.lab import Lab
from experiments.measured import Measured
from experiments.plan import View
from experiments.result_cells import ResultCells
from experiments.variants import variant_fit
from neuroseqret.baselines.histogram import Histogram
from neuroseqret.models.self_attention.model import SelfAttention
from simulated import simulate


@pytest.fixture
def lab(data, tmp_path, monkeypatch):
    """A lab whose SelfAttention is a histogram, or untrained where U is asked for."""
    queries, corpus = simulate()

    def quick(self, fit):
        if not fit.variant and fit.preset == "default":
            return Histogram().fit(queries, corpus), {}
        model = SelfAttention("paper-literal")
        model.scale_on(corpus)
        model._build()
        model.network.eval()
        return model, {}

    monkeypatch.setattr(Lab, "fitted", quick)
    monkeypatch.setattr(runtime.accuracy, "measure", lambda lab: None)
    monkeypatch.setattr(hashing, "WAYS", ("exhaustive", "hyperplanes", "rotation", "multi-probe", "cells"))
    return Lab(find_data([data / "first"]), ResultCells(tmp_path / "cells"), tmp_path / "models", max_queries=10)


@pytest.mark.parametrize("part", [hashing, qualitative, runtime, unwarping])
def test_measured_once_and_reported(lab, part):
    part.measure(lab)
    kept = list(lab.cells.all())
    assert kept
    assert not [result for _, _, result in kept if "error" in result]
    lab.say = pytest.fail  # a second run has nothing to say
    part.measure(lab)
    assert "first" in part.report(Measured(lab.cells))


def test_judges_are_simulated_once_and_reported(lab, monkeypatch):
    monkeypatch.setattr(feedback, "DATA", ("first",))
    monkeypatch.setattr(feedback, "JUDGED", (0, 1))
    monkeypatch.setattr(feedback, "LEARNERS", ("histogram-metric",))
    monkeypatch.setattr(feedback, "MOVED", ("histogram",))
    lab.seeds, lab.max_seconds = 1, 0.5
    feedback.measure(lab)
    kept = {name.rsplit("/", 1)[1]: result for name, _, result in lab.cells.all()}
    learned = [f"learned-histogram-metric-{way}-seed0" for way in ("0-0", "1-0", "1-10")]
    assert sorted(kept) == ["at-once-histogram", *learned]
    assert kept[learned[0]]["judgements"] == 0 < kept[learned[1]]["judgements"] == kept[learned[2]]["judgements"]
    right = kept["at-once-histogram"]["0"]
    assert right["towards"] > right["plain"]
    lab.say = pytest.fail
    feedback.measure(lab)
    assert "| first | `histogram-metric` |" in feedback.report(Measured(lab.cells))


def test_the_pair_for_unwarping_is_a_typical_query_and_a_relevant_sequence(lab):
    fit = variant_fit("first", "paper-literal")
    task = lab.task(fit, View())
    look = examples.unwarped_pair(lab.fitted(fit)[0], task)
    row = task.queries.ids.tolist().index(look["query"]["id"])
    assert task.queries.lengths[row] == np.sort(task.queries.lengths)[len(task.queries) // 2]
    relevant = task.relevance.of(row)
    ids = task.corpus.ids.tolist()
    assert look["hit"]["id"] in [ids[place] for place in relevant]
    nearest = np.abs(task.corpus.lengths[relevant] - task.queries.lengths[row]).min()
    assert abs(len(look["hit"]["times"]) - len(look["query"]["times"])) == nearest


def test_other_methods_alone_measure_nothing(lab):
    lab.methods = frozenset({"random"})
    for part in (hashing, qualitative, runtime, unwarping):
        part.measure(lab)
    assert not list(lab.cells.all())
