"""Writing: which format is chosen, what is refused or lost is said, and a failed write leaves no trace."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from neuroseqret.data.sequences import EventSequence, EventSequences
from neuroseqret.errors import DataError, UserError
from neuroseqret.readers import FORMATS, LossWarning, lost_by, read, sniff, write


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
    with pytest.raises(UserError, match="does not tell the format"):
        write(small, tmp_path / "a.data")
    with pytest.raises(UserError, match="no format is called 'xml'; choose from canonical"):
        write(small, tmp_path / "a.data", "xml")
    with pytest.raises(UserError, match="no format is called 'xml'"):
        read(tmp_path / "a.data", format="xml")


@pytest.mark.parametrize("name", ["lifestream", "long-parquet", "long-csv", "easytpp-json"])
def test_a_column_with_the_format_s_own_name_is_refused(small: EventSequences, tmp_path: Path, name: str) -> None:
    taken = FORMATS[name].reserved_names[-1]
    path = tmp_path / "file"
    path.write_text("before")
    with pytest.raises(DataError, match="uses the name"):
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


@pytest.mark.parametrize("name", ["easytpp-json", "easytpp-jsonl", "gatech", "ifl-tpp"])
def test_more_marks_than_can_be_read_are_not_written(tmp_path: Path, name: str) -> None:
    codes = EventSequences.from_lists([([1.0], [40912345])])
    with pytest.raises(DataError, match="file: the largest mark is 40912345, but the format has at most 1048576 m"):
        write(codes, tmp_path / "file", name)
    assert not list(tmp_path.iterdir())


def test_errors_of_writing_name_the_file(small: EventSequences, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"a\.pkl: sequence a: split is 'foo'; use train"):
        write(small.with_column("split", ["foo", "foo"]), tmp_path / "a.pkl")


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
