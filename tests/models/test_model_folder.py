"""The model folder: what is written is read back, and a damaged folder gives one clear error."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from neuroseqret.errors import UserError
from neuroseqret.models.card import ModelCard, ModelState
from neuroseqret.models.model_folder import CONFIG, TENSORS, read_card, read_state, write_state


def card(**values: object) -> ModelCard:
    known: dict[str, object] = {"model": "toy", "method_version": 1, "seed": 7, "corpus_fingerprint": "f"}
    return ModelCard.model_validate(known | {"marks": 2, "mark_names": ("ä", "b")} | values)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    weight = torch.arange(6.0).reshape(2, 3)
    tensors = {"weight": weight, "view": weight.T}
    return write_state(tmp_path / "model", ModelState(card(), tensors), {"training.jsonl": b"x"})


def test_what_is_written_is_read(folder: Path) -> None:
    state = read_state(folder, "toy")
    assert state.card == card()
    assert torch.equal(state.tensors["view"], torch.arange(6.0).reshape(2, 3).T)
    assert (folder / "training.jsonl").read_bytes() == b"x"
    assert sorted(p.name for p in folder.iterdir()) == [CONFIG, TENSORS, "training.jsonl"]


def test_every_file_has_the_mode_of_a_new_file(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "new").write_text("x")
    assert {file.stat().st_mode for file in folder.iterdir()} == {(tmp_path / "new").stat().st_mode}


def test_an_older_model_is_replaced_whole(folder: Path) -> None:
    write_state(folder, ModelState(card(seed=8), {"other": torch.zeros(1)}))
    state = read_state(folder, "toy")
    assert state.card.seed == 8
    assert set(state.tensors) == {"other"}
    assert not (folder / "training.jsonl").exists()
    assert [p.name for p in folder.parent.iterdir()] == ["model"]


def test_a_foreign_folder_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "letters").mkdir()
    (tmp_path / "letters" / "love.txt").write_text("dear")
    with pytest.raises(UserError, match="letters"):
        write_state(tmp_path / "letters", ModelState(card(), {}))
    assert (tmp_path / "letters" / "love.txt").read_text() == "dear"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda f: (f / CONFIG).unlink(), "not a model folder"),
        (lambda f: (f / CONFIG).write_text("{"), "damaged"),
        (lambda f: (f / CONFIG).write_bytes(b"\xff\xfe"), "damaged"),
        (lambda f: (f / CONFIG).write_text("{}"), "not written by neuroseqret"),
        (lambda f: _set(f, format_version=99), "format version 99"),
        (lambda f: _set(f, format_version=2), r"format version 2 \(library .*fit the model again"),
        (lambda f: write_state(f, ModelState(card(model="other"), {})), "holds a 'other' model"),
        (lambda f: _set(f, model="other"), "config.json: changed since it was written"),
        (lambda f: _set(f, seed=8), "changed since it was written"),
        (lambda f: _set(f, config_blake2b=None), "changed since it was written"),
        (lambda f: (f / TENSORS).unlink(), "is missing"),
        (lambda f: (f / TENSORS).write_bytes((f / TENSORS).read_bytes()[:-1]), "truncated or changed"),
        (lambda f: (f / TENSORS).write_bytes((f / TENSORS).read_bytes()[:-1] + b"!"), "truncated or changed"),
    ],
)
def test_whatever_is_off_is_one_clear_line(folder: Path, change: object, message: str) -> None:
    change(folder)  # type: ignore[operator]
    with pytest.raises(UserError, match=message) as error:
        read_state(folder, "toy")
    assert "\n" not in str(error.value)


def _set(folder: Path, **values: object) -> None:
    config = json.loads((folder / CONFIG).read_text())
    (folder / CONFIG).write_text(json.dumps(config | values))


def test_another_layout_of_the_configuration_is_no_change(folder: Path) -> None:
    _set(folder)  # all on one line
    assert read_card(folder).mark_names == ("ä", "b")


def test_a_model_that_was_moved_away_by_a_killed_process_is_found(folder: Path) -> None:
    away = folder.parent / f".{folder.name}-abcdefgh.nsr-old"
    away.mkdir()
    folder.rename(away / "folder")
    assert read_card(folder) == card()
    assert not away.exists()
