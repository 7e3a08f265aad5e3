"""`index`, called as a user would: what it counts, what it tells, and how it ends."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from cli.calling import call
from cli.conftest import LONG as FIRST
from neuroseqret.index import Index


@pytest.fixture
def index(searchable: Path, tmp_path: Path) -> Path:
    """A copy of the index of windows, to be changed."""
    shutil.copytree(searchable / "windows", tmp_path / "index")
    return tmp_path / "index"


def made(*words: object) -> dict[str, object]:
    done = call("index", *map(str, words), "--json")
    assert done.returncode == 0, done.stderr
    told: dict[str, object] = json.loads(done.stdout)
    return told


def test_info_tells_window_and_step(searchable: Path, index: Path, tmp_path: Path) -> None:
    said = call("index", "info", str(index)).stdout
    assert "window events: 10\n" in said
    assert "window step: 5\n" in said
    told = made("info", index)
    assert (told["sequences"], told["windows"]) == (18, len(Index.open(index)))
    made("create", searchable / "model", searchable / "data", "--out", tmp_path / "long", "--window-duration", 4)
    told = made("info", tmp_path / "long")
    assert (told["window_events"], told["window_duration"], told["window_step"]) == (None, 4.0, 4.0)
    assert "windows" not in made("info", searchable / "index")


def test_added_and_held_are_both_sequences(searchable: Path, index: Path) -> None:
    windows = len(Index.open(index))
    done = call("index", "add", str(index), str(searchable / "data"))
    assert f"0 sequences added, 18 already there; {index} now holds 18 sequences ({windows:,} windows)" in done.stderr
    told = made("add", index, searchable / "data", "--upsert")
    assert told == {"added": 0, "already_there": 0, "replaced": 18, "sequences": 18, "windows": windows}


def test_removing_an_unknown_id_names_it_and_fails(searchable: Path, index: Path) -> None:
    known = FIRST
    done = call("index", "remove", str(index), known, "nobody", "no one")
    assert done.returncode == 1
    assert "1 sequence removed; " in done.stderr
    assert f"2 ids not in {index}: nobody, no one\n" in done.stderr
    done = call("index", "remove", str(index), known, "--json")
    told = json.loads(done.stdout)
    assert (done.returncode, told["removed"], told["unknown"], told["sequences"]) == (1, 0, [known], 17)


def test_compact_merges_files_and_keeps_the_answers(searchable: Path, index: Path) -> None:
    before = Index.open(index).search(id=FIRST, k=5)
    told = made("compact", index)
    assert told["sequences"] == 18
    assert Index.open(index).search(id=FIRST, k=5) == before
    assert Index.open(index).info()["not_yet_in_structure"] == 0
    assert made("check", index) == {"flaws": []}


def test_every_setting_of_python_is_an_option(searchable: Path, tmp_path: Path) -> None:
    words = "--candidates buckets --hash hyperplanes --bits 32 --tables 4 --table-bits 6 --fraction .2 --at-least 5"
    made("create", searchable / "model", searchable / "data", "--out", tmp_path / "index", *words.split())
    settings = Index.open(tmp_path / "index").config.settings
    assert settings.model_dump() == {
        "candidates": "buckets",
        "fraction": 0.2,
        "at_least": 5,
        "hash": "hyperplanes",
        "hash_preset": None,
        "hash_eta": None,
        "bits": 32,
        "tables": 4,
        "table_bits": 6,
        "window_events": None,
        "window_duration": None,
        "window_step": None,
    }
    done = call("index", "create", "m", "c.parquet", "--out", "i", "--step", "2")
    assert "--step needs --window or --window-duration" in done.stderr
