"""Every format: what is written is read again, and what has no room is said; a refused write leaves no trace."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neuroseqret.data.sequences import EventSequence, EventSequences
from neuroseqret.errors import DataError, UserError
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


@pytest.fixture
def small() -> EventSequences:
    return EventSequences.from_lists(
        [([0.0, 0.5, 0.5], [0, 1, 0]), ([2.0], [1])],
        ids=["a", "b"],
        starts=[0.0, 0.0],
        ends=[1.0, 2.0],
        groups=["x", None],
        metadata={"source": ["s", "t"], "size": pa.array([1, 2], pa.uint8())},
        mark_names=["up", "down"],
        time_unit="days",
    )


def test_a_lossy_format_says_what_it_loses_in_one_line(small: EventSequences, tmp_path: Path) -> None:
    with pytest.warns(LossWarning) as warned:
        write(small, tmp_path / "x_ev.txt")
    assert len(warned) == 1
    text = str(warned[0].message)
    assert text == (
        f"{tmp_path}/x_ev.txt: paired-text has no room for ids, observation windows, groups, mark names, time unit, "
        "columns (source, size)"
    )
    assert lost_by(small, "long-csv") == ["mark names", "time unit", "exact types of columns (size)"]


@pytest.mark.parametrize(
    ("name", "chosen"),
    [
        ("a.parquet", "canonical"),
        ("a.csv", "long-csv"),
        ("A.TSV", "long-csv"),
        ("a.json", "easytpp-json"),
        ("a.jsonl", "easytpp-jsonl"),
        ("a.pkl", "gatech"),
        ("a.pt", "ifl-tpp"),
        ("a_ti.txt", "paired-text"),
    ],
)
@pytest.mark.filterwarnings("ignore::neuroseqret.readers.LossWarning")
def test_the_name_chooses_the_format_to_write(small: EventSequences, tmp_path: Path, name: str, chosen: str) -> None:
    write(small, tmp_path / name)
    assert sniff(tmp_path / name) == chosen


def test_names_that_tell_nothing_are_refused(small: EventSequences, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="does not tell a format"):
        write(small, tmp_path / "a.data")
    with pytest.raises(UserError, match="no format is called 'xml'; there are canonical"):
        write(small, tmp_path / "a.data", "xml")
    with pytest.raises(UserError, match="no format is called 'xml'"):
        read(tmp_path / "a.data", format="xml")


@pytest.mark.parametrize("name", ["lifestream", "long-parquet", "long-csv", "easytpp-json"])
def test_a_column_with_the_format_s_own_name_is_refused(small: EventSequences, tmp_path: Path, name: str) -> None:
    taken = FORMATS[name].reserved_names[-1]
    path = tmp_path / "file"
    path.write_text("before")
    with pytest.raises(DataError, match="needs the name"):
        write(small.with_column(taken, ["p", "q"]), path, name)
    assert path.read_text() == "before"


@pytest.mark.parametrize("name", sorted(FORMATS))
@pytest.mark.filterwarnings("ignore::neuroseqret.readers.LossWarning")
def test_a_write_that_fails_leaves_the_old_file(
    small: EventSequences, tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "file.bin"
    write(small, target, name)
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("neuroseqret.storage.files.os.replace", full)
    with pytest.raises(UserError, match="No space left on device"):
        write(small[:1], target, name)
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


@pytest.mark.parametrize("name", sorted(FORMATS))
def test_what_is_not_there_is_one_line(tmp_path: Path, name: str) -> None:
    with pytest.raises(UserError) as caught:
        read(tmp_path / "nothing", format=name, allow_pickle=True)
    assert "nothing" in str(caught.value)
    with pytest.raises(DataError, match="no such file; check the path"):
        sniff(tmp_path / "nothing")


def test_formats_that_cannot_stream_say_so(small: EventSequences, tmp_path: Path) -> None:
    with pytest.warns(LossWarning):
        write(small, tmp_path / "a.json")
    with pytest.raises(UserError, match="cannot be read in batches; convert it to one of canonical"):
        scan(tmp_path / "a.json")
    with pytest.raises(UserError, match="batch_rows is 0"):
        scan(tmp_path / "a.json", 0)


def test_a_bad_column_map_is_one_line(small: EventSequences, tmp_path: Path) -> None:
    write(small, tmp_path / "a.parquet")
    with pytest.raises(UserError, match="no column is called 'when'; name id, time, mark"):
        read(tmp_path / "a.parquet", columns={"when": "t"})
    with pytest.raises(UserError, match="events need a time"):
        read(tmp_path / "a.parquet", columns={"time": None})
    with pytest.raises(UserError, match="'id' is named twice; a column has one role"):
        read(tmp_path / "a.parquet", columns={"id": "id", "group": "id"})
    with pytest.raises(UserError, match="mark_names is one string"):
        read(tmp_path / "a.parquet", mark_names="ab")
    with pytest.raises(UserError, match="mark_names holds 'a' twice"):
        read(tmp_path / "a.parquet", mark_names=["a", "a"])
    with pytest.raises(DataError, match=r"a.parquet: no column 'clock' for times; columns found: id, times"):
        read(tmp_path / "a.parquet", columns={"time": "clock"}, format="canonical")


def test_names_and_unit_of_the_caller_win(small: EventSequences, tmp_path: Path) -> None:
    write(small, tmp_path / "a.parquet")
    back = read(tmp_path / "a.parquet", mark_names=["p", "q"], time_unit="hours")
    assert (back.mark_names, back.time_unit) == (("p", "q"), "hours")
    with pytest.raises(DataError, match=r"a.parquet: sequence a: event 1: mark 1 has no name"):
        read(tmp_path / "a.parquet", mark_names=["p"])
    assert read(tmp_path / "a.parquet", mark_names=["p"], validate=False).marks.max() == 1


@pytest.mark.parametrize("name", ["easytpp-json", "easytpp-jsonl", "gatech", "ifl-tpp"])
def test_more_marks_than_can_be_read_are_not_written(tmp_path: Path, name: str) -> None:
    codes = EventSequences.from_lists([([1.0], [40912345])])
    with pytest.raises(DataError, match="file: the largest mark is 40912345, and the format counts at most 1048576 m"):
        write(codes, tmp_path / "file", name)
    assert not list(tmp_path.iterdir())


def test_errors_of_writing_name_the_file(small: EventSequences, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"a\.pkl: sequence a: split is 'foo'; use train"):
        write(small.with_column("split", ["foo", "foo"]), tmp_path / "a.pkl")


@pytest.mark.parametrize("name", ["gatech", "ifl-tpp", "paired-text"])
@pytest.mark.filterwarnings("ignore::neuroseqret.readers.LossWarning")
def test_formats_with_fixed_names_take_no_map(small: EventSequences, tmp_path: Path, name: str) -> None:
    write(small, tmp_path / "file", name)
    with pytest.raises(UserError, match="has names of its own; leave out the column map"):
        read(tmp_path / "file", columns={"id": "x"}, allow_pickle=True)


@pytest.mark.parametrize("name", ["long-csv", "easytpp-json", "easytpp-jsonl"])
@given(batch=event_sequences(min_sequences=1, metadata=("bytes", "day", "record", "list"), min_events=2))
@settings(max_examples=10)
def test_types_that_text_has_no_form_for_do_no_harm(name: str, folder: Path, batch: EventSequences) -> None:
    assert events(again(batch, name, folder)) == events(batch)


def test_one_sequence_or_many_are_written(tmp_path: Path) -> None:
    batch = EventSequences.from_lists(
        [([0.0, 1.0], [0, 1]), ([2.0], [1])], ids=["a", "b"], groups=["g", "h"], mark_names=["x", "y"]
    )
    write(batch[0], tmp_path / "one.parquet")
    assert read(tmp_path / "one.parquet") == batch[:1]
    write(list(batch), tmp_path / "many.parquet")
    assert read(tmp_path / "many.parquet") == batch
    assert lost_by(batch[0], "hotpp") == lost_by(batch[:1], "hotpp") != []
    unsorted = EventSequence("c", np.array([1.0, 0.0]), np.array([0, 0], np.int32))
    with pytest.raises(DataError, match=r"c.parquet: sequence c: event 1: time 0 is before"):
        write(unsorted, tmp_path / "c.parquet")
    assert not (tmp_path / "c.parquet").exists()
