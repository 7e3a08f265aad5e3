"""Methods by name and by folder: fitted on the right data, cached, never stale; a failure is a row with a reason."""

from __future__ import annotations

from types import SimpleNamespace
from typing import ClassVar

import numpy as np
import pytest

from neuroseqret.baselines.random import Random
from neuroseqret.errors import UserError
from neuroseqret.evaluation import cache
from neuroseqret.evaluation.cache import ResultCache
from neuroseqret.evaluation.protocol import make_task
from neuroseqret.evaluation.runner import run
from neuroseqret.methods import registry


class Recorder(Random):
    """Remembers what it was fitted on."""

    name = "recorder"
    fitted: ClassVar[list[tuple]] = []

    def fit(self, queries, corpus, relevance=None, *, seed=0, max_seconds=None, checkpoint=None):
        self.fitted.append((queries, corpus, relevance, seed, max_seconds))
        return super().fit(queries, corpus, relevance, seed=seed)


class Refusing(Random):
    name = "refusing"

    def fit(self, queries, corpus, relevance=None, *, seed=0, max_seconds=None, checkpoint=None):
        raise UserError("series are too short; use longer ones")


class Buggy(Random):
    name = "buggy"

    def compute_scores(self, queries, candidates):
        raise ZeroDivisionError("division by zero")


CLASSES: dict[str, type[Random]] = {
    "random": Random,
    "histogram": Recorder,
    "refusing": Refusing,
    "buggy": Buggy,
    "recorder": Recorder,
}


@pytest.fixture(autouse=True)
def these_methods(monkeypatch):
    """The methods above are the only ones there are."""
    monkeypatch.setattr(registry, "MODELS", {})
    monkeypatch.setattr(registry, "BASELINES", {name: f"these:{name}" for name in CLASSES})
    monkeypatch.setattr(registry, "import_module", lambda module: SimpleNamespace(**CLASSES))


@pytest.fixture
def task(sets):
    return make_task(*sets(), protocol="sampled", negatives=10, seed=4)


@pytest.fixture(autouse=True)
def nothing_fitted():
    Recorder.fitted.clear()


def test_random_and_histogram_are_always_there(task):
    assert [r.name for r in run(task, [])] == ["random", "histogram"]
    assert [r.name for r in run(task, ["recorder", "random", "recorder"])] == [
        "histogram", "recorder", "random"
    ]  # fmt: skip


def test_named_methods_are_fitted_on_the_training_part(sets):
    task = make_task(*sets(), condition="unseen", seed=4)
    run(task, ["recorder"], max_seconds=7.0)
    queries, corpus, relevance, seed, max_seconds = Recorder.fitted[-1]
    assert corpus is task.training_corpus
    assert queries is task.training_queries
    assert relevance is task.training_relevance
    assert (seed, max_seconds) == (4, 7.0)


def test_a_second_call_computes_nothing(task, tmp_path):
    kept = ResultCache(tmp_path)
    first = run(task, ["recorder"], cache=kept)
    fits = len(Recorder.fitted)
    second = run(task, ["recorder"], cache=kept)
    assert len(Recorder.fitted) == fits
    assert [r.cached for r in first] == [False] * 3
    assert [r.cached for r in second] == [True] * 3
    assert [r.means() for r in first] == [r.means() for r in second]
    assert [r.seconds for r in first] == [r.seconds for r in second]
    run(task, ["recorder"], cache=kept, max_seconds=1.0)
    assert len(Recorder.fitted) == fits + 2


def test_a_changed_model_is_never_served_stale(task, tmp_path):
    kept = ResultCache(tmp_path / "cache")
    model = Random().fit(task.training_queries, task.training_corpus)
    folder = str(model.save(tmp_path / "model"))
    before = run(task, [folder], cache=kept)[-1]
    assert before.name == folder
    assert run(task, [folder], cache=kept)[-1].cached
    model.fit(task.training_queries, task.training_corpus, seed=11).save(folder)
    after = run(task, [folder], cache=kept)[-1]
    assert not after.cached
    assert (after.answers.measures["AP"] != before.answers.measures["AP"]).any()


def test_a_raised_version_is_computed_again(task, tmp_path, monkeypatch):
    kept = ResultCache(tmp_path)
    run(task, ["recorder"], cache=kept)
    monkeypatch.setattr(Recorder, "version", Recorder.version + 1)
    assert [r.cached for r in run(task, ["recorder"], cache=kept)] == [True, False, False]  # histogram is one too
    monkeypatch.setattr(cache, "PROTOCOL_VERSION", cache.PROTOCOL_VERSION + 1)
    assert not any(r.cached for r in run(task, ["recorder"], cache=kept))
    assert all(r.cached for r in run(task, ["recorder"], cache=kept))
    monkeypatch.setattr("neuroseqret.__version__", "9.9")
    assert not any(r.cached for r in run(task, ["recorder"], cache=kept))


def test_a_failure_is_a_row_and_not_kept(task, tmp_path):
    kept = ResultCache(tmp_path)
    results = {r.name: r for r in run(task, ["refusing", "buggy"], cache=kept)}
    assert results["refusing"].error == "series are too short; use longer ones"
    assert results["buggy"].error == "ZeroDivisionError: division by zero"
    assert results["buggy"].answers is None
    assert np.isnan(results["buggy"].mean("AP"))
    assert results["random"].error is None
    assert len(results["random"].answers.measures["AP"]) == len(task.queries)
    assert len(list(tmp_path.iterdir())) == 2


def test_unknown_names_and_folders_stop_before_anything_is_computed(task, tmp_path):
    for wrong, said in (("nothing", "no method is called"), (str(tmp_path / "none"), "not a model folder")):
        with pytest.raises(UserError, match=said):
            run(task, ["recorder", wrong])
    assert not Recorder.fitted


def test_a_folder_called_like_a_method_is_meant_only_by_its_path(task, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Random().fit(task.training_queries, task.training_corpus, seed=99).save("random")
    named, folder = run(task, ["random", "./random"])[1:]
    assert (named.answers.measures["AP"] != folder.answers.measures["AP"]).any()


def test_a_cache_that_cannot_be_written_is_said_and_survived(task, tmp_path):
    (tmp_path / "file").write_text("")
    said: list[str] = []
    results = run(task, [], cache=ResultCache(tmp_path / "file" / "cache"), remark=said.append)
    assert all(r.error is None for r in results)
    assert sum(line.startswith("fitting ") for line in said) == 2
    assert len(said) == 4
    assert "random is not kept" in said[1]
