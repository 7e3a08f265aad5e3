"""Reading: the column map, names and units of the caller, and what cannot be read."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from neuroseqret.data.sequences import EventSequences
from neuroseqret.errors import DataError, UserError
from neuroseqret.readers import FORMATS, LossWarning, read, scan, sniff, write


@pytest.mark.parametrize("name", sorted(FORMATS))
def test_what_is_not_there_is_one_line(tmp_path: Path, name: str) -> None:
    with pytest.raises(UserError) as caught:
        read(tmp_path / "nothing", format=name, allow_pickle=True)
    assert re.search(r"nothing\w*(\.txt)?: no such file; check the path", str(caught.value))
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
    with pytest.raises(UserError, match="'when' is nothing that a column can hold; it holds id, time, mark"):
        read(tmp_path / "a.parquet", columns={"when": "t"})
    with pytest.raises(UserError, match="events need a time"):
        read(tmp_path / "a.parquet", columns={"time": None})
    with pytest.raises(UserError, match="'id' is named twice; give every column one role"):
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


@pytest.mark.parametrize("name", ["gatech", "ifl-tpp", "paired-text"])
@pytest.mark.filterwarnings("ignore::neuroseqret.readers.LossWarning")
def test_formats_with_fixed_names_take_no_map(small: EventSequences, tmp_path: Path, name: str) -> None:
    write(small, tmp_path / "file", name)
    with pytest.raises(UserError, match="has fixed column names; leave out the column map"):
        read(tmp_path / "file", columns={"id": "x"}, allow_pickle=True)
