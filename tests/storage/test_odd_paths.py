"""Names that no file can have, and places that cannot be used: one line from every verb that takes a path."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import neuroseqret as nsr
from golden.golden_data import golden_data
from neuroseqret import methods
from neuroseqret.errors import UserError
from neuroseqret.index import Index
from neuroseqret.models.base import RelevanceModel
from neuroseqret.readers.data_folder import read_folder, write_folder
from neuroseqret.readers.trec import read_qrels, read_run, write_run
from neuroseqret.storage.lock import held


@cache
def model() -> RelevanceModel:
    queries, corpus = golden_data()
    return methods.make("histogram").fit(queries, corpus)


def corpus() -> nsr.EventSequences:
    return golden_data()[1]


VERBS: dict[str, Callable[[Any], Any]] = {
    "read": nsr.read,
    "scan": lambda path: list(nsr.scan(path)),
    "write": lambda path: nsr.write(corpus(), path, format="long-csv"),
    "read_folder": read_folder,
    "write_folder": lambda path: write_folder(path, corpus()),
    "read_qrels": read_qrels,
    "read_run": read_run,
    "write_run": lambda path: write_run({}, path),
    "load": nsr.load,
    "save": lambda path: model().save(path),
    "open": Index.open,
    "create": lambda path: Index.create(model(), path),  # type: ignore[arg-type]
    "checkpoint": lambda path: methods.make("gru", loop={"steps": 1}).fit(*golden_data(), checkpoint=path),
}


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_explains_a_path_that_cannot_be(verb: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    os.symlink("circle", tmp_path / "circle")
    for path in ("a\0b", tmp_path / "\0", "\ud800", "x" * 300, "y/" * 3000, tmp_path / "file" / "below"):
        with pytest.raises(UserError) as error:
            VERBS[verb](path)
        assert "\n" not in str(error.value)
    if verb != "checkpoint":  # it fails only after a step of training
        with pytest.raises(UserError):
            VERBS[verb](tmp_path / "circle" / "below")


def test_a_device_without_end_is_not_read() -> None:
    for verb in (nsr.read, read_qrels, read_run):
        with pytest.raises(UserError, match="device"):
            verb("/dev/zero")


def test_a_line_without_end_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "qrels").write_text("q 0 d 1\n" + "x" * (3 << 20))
    with pytest.raises(UserError, match="line 2: longer than"):
        read_qrels(tmp_path / "qrels")


def test_a_lock_that_cannot_be_opened_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "lock").mkdir()
    for file in (tmp_path / "lock", tmp_path / "missing" / "lock"):
        with pytest.raises(UserError, match="lock: the lock cannot be taken"), held(file):
            pass


def test_writing_to_an_index_without_its_lock_is_one_line(tmp_path: Path) -> None:
    index = Index.create(model(), tmp_path / "index", corpus())  # type: ignore[arg-type]
    for lock in (tmp_path / "index").glob("*.lock"):
        lock.unlink()
        lock.mkdir()
    with pytest.raises(UserError, match="lock cannot be taken"):
        index.remove("c0")
