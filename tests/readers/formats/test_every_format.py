"""Every format: what is written is read again, whole or as far as the format has room."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neuroseqret.data.sequences import EventSequences
from neuroseqret.readers import FORMATS, LossWarning, lost_by, read, scan, sniff, write
from strategies import PLAIN_IDS, event_sequences

WHOLE = ("canonical", "lifestream", "long-parquet")  # hold everything that a valid batch can carry

SCANNED = [name for name, each in FORMATS.items() if each.scan]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One folder for all examples of a property."""
    return tmp_path_factory.mktemp("formats")


def again(batch: EventSequences, name: str, folder: Path) -> EventSequences:
    """Written and read, the format told by the content."""
    path = folder / f"file.{name}"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LossWarning)
        write(batch, path, name)
    assert sniff(path) == name
    return read(path, allow_pickle=True)


def events(batch: EventSequences) -> list[tuple[list[float], list[int]]]:
    return batch.to_lists()


@pytest.mark.parametrize("name", WHOLE)
@given(batch=event_sequences())
@settings(max_examples=20)
def test_nothing_is_lost(name: str, folder: Path, batch: EventSequences) -> None:
    assert lost_by(batch, name) == []
    assert again(batch, name, folder) == batch


@pytest.mark.parametrize("name", sorted(set(FORMATS) - set(WHOLE)))
@given(batch=event_sequences(min_sequences=1, limit=1e300))
@settings(max_examples=18)
def test_what_is_not_said_to_be_lost_is_kept(name: str, folder: Path, batch: EventSequences) -> None:
    back = again(batch, name, folder)
    lost = lost_by(batch, name)
    assert events(back) == events(batch)
    assert np.array_equal(np.signbit(back.times), np.signbit(batch.times))
    if not lost and name not in ("gatech", "ifl-tpp"):
        # The count of marks is said even where nobody named them.
        assert back == batch.with_meaning(back.mark_names)
    if "ids" not in lost and name != "gatech":
        assert back.ids.equals(batch.ids)
    if "groups" not in lost and batch.groups is not None:
        assert back.groups is not None
        assert back.groups.equals(batch.groups)
    if "observation windows" not in lost and batch.starts is not None:
        assert back.column("start").equals(batch.column("start"))
        assert back.column("end").equals(batch.column("end"))
    if "mark names" not in lost and batch.mark_names is not None:
        assert back.mark_names == batch.mark_names
    if "time unit" not in lost:
        assert back.time_unit == batch.time_unit


@pytest.mark.parametrize("name", ["easytpp-json", "easytpp-jsonl", "long-csv"])
@given(batch=event_sequences(min_sequences=1, named=False, metadata=("source", "text", "label"), nulls=False))
@settings(max_examples=18)
def test_text_columns_survive_text_formats(name: str, folder: Path, batch: EventSequences) -> None:
    back = again(batch, name, folder)
    if not lost_by(batch, name):
        assert back == batch.with_meaning(back.mark_names)


@pytest.mark.parametrize("name", ["easytpp-json", "easytpp-jsonl", "long-csv"])
def test_a_replacement_character_is_text(name: str, folder: Path) -> None:
    batch = EventSequences.from_lists([([0.0, 1.0], [0, 1])], ids=["a"], metadata={"note": ["\ufffd"]})
    assert again(batch, name, folder).column("note").to_pylist() == ["\ufffd"]


@pytest.mark.parametrize("name", SCANNED)
@given(batch=event_sequences(min_sequences=1, ids=PLAIN_IDS, metadata=("whole", "source")), rows=st.integers(1, 4))
@settings(max_examples=15)
def test_a_scan_gives_what_a_read_gives(name: str, folder: Path, batch: EventSequences, rows: int) -> None:
    whole = again(batch, name, folder)
    parts = list(scan(folder / f"file.{name}", rows))
    assert all(len(part) <= rows for part in parts)
    assert EventSequences.concat(parts) == whole


@pytest.mark.parametrize("name", ["long-csv", "easytpp-json", "easytpp-jsonl"])
@given(batch=event_sequences(min_sequences=1, metadata=("bytes", "day", "record", "list"), min_events=2))
@settings(max_examples=10)
def test_types_that_text_has_no_form_for_do_no_harm(name: str, folder: Path, batch: EventSequences) -> None:
    assert events(again(batch, name, folder)) == events(batch)
