"""Cells: fresh and stale ones, damaged ones, and processes that share a folder."""

from __future__ import annotations

import json
import multiprocessing

import pytest

from experiments import result_cells as module
from experiments.result_cells import ResultCells
from neuroseqret.errors import UserError

NAME = "sports/thp/seed0-seen-full"
CONFIG = {"data": "sports", "seed": 0, "versions": {"method": 1, "protocol": 1}}
NEWER = {**CONFIG, "versions": {"method": 2, "protocol": 1}}


def test_a_cell_is_fresh_only_with_its_own_configuration(tmp_path):
    cells = ResultCells(tmp_path)
    assert cells.get(NAME, CONFIG) is None
    cells.put(NAME, CONFIG, {"measures": {"AP": 0.5}, "list": [1, 2, 3]})
    assert cells.get(NAME, CONFIG) == {"measures": {"AP": 0.5}, "list": [1, 2, 3]}
    assert cells.get(NAME, {**CONFIG, "seed": 1}) is None
    assert cells.get(NAME, NEWER) is None
    assert cells.get(NAME, {**CONFIG, "more": 1}) is None


def test_keep_stale_forgives_other_versions_and_nothing_else(tmp_path):
    ResultCells(tmp_path).put(NAME, CONFIG, {"x": 1})
    cells = ResultCells(tmp_path, keep_stale=True)
    assert cells.get(NAME, {**CONFIG, "versions": {"method": 2}}) == {"x": 1}
    assert cells.get(NAME, {**CONFIG, "seed": 1}) is None


def test_another_commit_does_not_make_a_cell_stale(tmp_path, monkeypatch):
    cells = ResultCells(tmp_path)
    cells.put(NAME, CONFIG, {"x": 1})
    monkeypatch.setattr(module, "commit", lambda: "9876543210")
    assert cells.get(NAME, CONFIG) == {"x": 1}
    assert cells.commits() == {"0123456789"}


def test_without_git_a_cell_is_kept_all_the_same(monkeypatch):
    def absent(*arguments, **options):
        raise FileNotFoundError("git")

    monkeypatch.undo()
    monkeypatch.setattr(module.subprocess, "run", absent)
    assert module.commit() == "unknown"


def test_a_new_result_replaces_the_old_and_lists_stay_on_one_line(tmp_path):
    cells = ResultCells(tmp_path)
    cells.put(NAME, CONFIG, {"x": 1})
    cells.put(NAME, NEWER, {"x": [1, 2, 3]})
    assert list(cells.all()) == [(NAME, NEWER, {"x": [1, 2, 3]})]
    assert cells.commits() == {"0123456789"}
    assert '"x": [1,2,3]' in (tmp_path / f"{NAME}.json").read_text()
    assert [p.name for p in tmp_path.rglob("*") if p.is_file()] == ["seed0-seen-full.json"]  # nothing half-written


@pytest.mark.parametrize("content", ["", "{", "[]", '{"config": {}}', "\x00\x01"])
def test_a_damaged_cell_is_one_clear_line(tmp_path, content):
    (tmp_path / "a.json").write_text(content)
    cells = ResultCells(tmp_path)
    for ask in (lambda: cells.get("a", CONFIG), lambda: list(cells.all()), cells.commits):
        with pytest.raises(UserError, match=r"a\.json: is not a cell.*remove it") as raised:
            ask()
        assert "\n" not in str(raised.value)


def test_a_cell_that_cannot_be_written_is_one_clear_line(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="file"):  # which the command line says in one line
        ResultCells(tmp_path / "file" / "cells").put(NAME, CONFIG, {})


def test_what_another_process_claims_is_not_ours_until_it_ends(tmp_path):
    forked = multiprocessing.get_context("fork")
    mine, theirs = forked.Pipe()
    cells = ResultCells(tmp_path)

    def other():
        with ResultCells(tmp_path).claimed("sports/thp") as claimed:
            theirs.send(claimed)
            theirs.recv()

    process = forked.Process(target=other, daemon=True)
    process.start()
    assert mine.recv()
    with cells.claimed("sports/thp") as claimed:
        assert not claimed
    with cells.claimed("sports/sahp") as claimed:
        assert claimed
    process.kill()  # a process that dies gives its work back
    process.join()
    with cells.claimed("sports/thp") as claimed:
        assert claimed


def test_cells_are_plain_json(tmp_path):
    ResultCells(tmp_path).put(NAME, CONFIG, {"error": "no “marks”"})
    content = json.loads((tmp_path / f"{NAME}.json").read_text(encoding="utf-8"))
    assert content == {"config": CONFIG, "commit": "0123456789", "result": {"error": "no “marks”"}}
