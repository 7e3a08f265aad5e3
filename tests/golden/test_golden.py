"""No figure moves without a raised version: every method, hash function, look and default against the recorded ones."""

from __future__ import annotations

import json

import pytest

from golden import golden_figures
from golden.golden_figures import Golden, nearly_equal
from neuroseqret import methods
from neuroseqret.candidates import HASHES

GOLDEN = list(golden_figures.golden())
RECORDED = golden_figures.read()


@pytest.mark.parametrize("one", GOLDEN, ids=lambda one: f"{one.kind}: {one.name}")
def test_what_is_computed_is_what_was_recorded(one):
    complaint = one.complaint(RECORDED.get(one.kind, {}).get(one.name), one.figures())
    assert complaint is None, complaint


def test_every_method_and_hash_is_golden():
    names = {(one.kind, one.name.split()[0]) for one in GOLDEN}
    for kind in ("methods", "method settings"):
        assert {name for which, name in names if which == kind} == {*methods.MODELS, *methods.BASELINES}
    for kind in ("hashes", "hash settings"):
        assert {name for which, name in names if which == kind} == set(HASHES)


def test_nothing_is_recorded_that_is_not_there():
    assert {(kind, name) for kind in RECORDED for name in RECORDED[kind]} == {(one.kind, one.name) for one in GOLDEN}


# ---------------------------------------------------------------- the comparison itself


def toy(version: int = 1, kind: str = "methods") -> Golden:
    return Golden(kind, "toy", version, "Toy.version", dict)


BEFORE = {"version": 1, "figures": {"AP": 0.5, "scores": [0.0, -2.0, 1.0]}}


@pytest.mark.parametrize(
    ("version", "found", "complaint", "recordable"),
    [
        (1, {"AP": 0.5, "scores": [0.0, -2.0, 1.0]}, None, True),
        (1, {"AP": 0.51, "scores": [0.003, -2.0, 1.0]}, None, True),
        (1, {"AP": 0.5, "scores": [0.0, -2.0, 1.01]}, "what `toy` computes has moved (scores: ", False),
        (1, {"AP": 0.6, "scores": [0.0, -2.0, 1.0]}, "has moved (AP: 0.5 was recorded, 0.6 found): undo", False),
        (1, {"AP": 0.5, "scores": [0.0, -2.0]}, "has moved", False),
        (2, {"AP": 0.6, "scores": [0.0, -2.0, 1.0]}, "Toy.version is 2, and the figures are of 1: run python", True),
        (0, {"AP": 0.5, "scores": [0.0, -2.0, 1.0]}, "Toy.version is 0, and the figures are of 1", False),
    ],
)
def test_a_moved_figure_needs_a_raised_version(version, found, complaint, recordable):
    said = toy(version).complaint(BEFORE, found)
    assert said is None if complaint is None else complaint in said
    assert toy(version).may_be_recorded(BEFORE, found) == recordable


def test_the_complaint_says_what_to_do():
    said = toy().complaint(BEFORE, {"AP": 0.9, "scores": [0.0, -2.0, 1.0]})
    assert said.endswith(": undo the change, or raise Toy.version and run python tests/golden/golden_figures.py")
    assert "there are no golden figures of `toy` (methods): run python" in toy().complaint(None, {})


def test_a_changed_default_needs_a_raised_version_and_a_new_name_a_look():
    before = {"version": 1, "figures": {"steps": 1000, "rate": 0.001, "kind": None}}
    settings = toy(kind="method settings")
    assert settings.complaint(before, {"steps": 1000, "rate": 0.001, "kind": None}) is None
    said = settings.complaint(before, {"steps": 1001, "rate": 0.001, "kind": None})
    assert "the defaults of `toy` have moved (steps: 1000 was recorded, 1001 found)" in said
    assert not settings.may_be_recorded(before, {"steps": 1001})
    renamed = {"steps": 1000, "rate": 0.001, "sort": None}
    assert "have other names (kind, sort): if `toy` computes what it did" in settings.complaint(before, renamed)
    assert settings.may_be_recorded(before, renamed)


def test_texts_and_numbers_are_compared():
    assert nearly_equal(["a", "b"], ["a", "b"])
    assert not nearly_equal(["a", "b"], ["a", "c"])
    assert nearly_equal([1000.0, 1.0], [1001.0, 0.0])
    assert not nearly_equal([True, False], [True, True])


def test_the_script_records_raised_versions_and_refuses_the_others(tmp_path, monkeypatch, capsys):
    figures = {"kept": {"x": [1.0]}, "raised": {"x": [2.0]}, "moved": {"x": [2.0]}, "new": {"x": [1.0]}}
    versions = {"kept": 1, "raised": 2, "moved": 1, "new": 1}
    these = [
        Golden("methods", name, version, f"{name.title()}.version", lambda name=name: figures[name])
        for name, version in versions.items()
    ]
    before = {name: {"version": 1, "figures": {"x": [1.0001]}} for name in ("kept", "raised", "moved", "gone")}
    file = tmp_path / "figures.json"
    file.write_text(json.dumps({"methods": before}))
    monkeypatch.setattr(golden_figures, "FILE", file)
    monkeypatch.setattr(golden_figures, "golden", lambda: iter(these))
    assert golden_figures.main() == 1
    assert "raise Moved.version" in capsys.readouterr().out
    assert json.loads(file.read_text())["methods"] == {
        "kept": before["kept"],
        "raised": {"version": 2, "figures": figures["raised"]},
        "moved": before["moved"],
        "new": {"version": 1, "figures": figures["new"]},
    }
