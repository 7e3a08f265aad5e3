"""The paired text files of the paper's authors."""

from __future__ import annotations

from pathlib import Path

import pytest

from neuroseqret.data.sequences import EventSequences
from neuroseqret.errors import DataError, UserError
from neuroseqret.readers import read, sniff, write

EXPECTED = EventSequences.from_lists([([0.0, 0.25, 0.25], [5, 1, 3]), ([1e-05], [2])])


def save(folder: Path, marks: str, times: str) -> Path:
    (folder / "train_query_ev.txt").write_text(marks)
    (folder / "train_query_ti.txt").write_text(times)
    return folder / "train_query_ev.txt"


@pytest.mark.parametrize("name", ["train_query", "train_query_ev.txt", "train_query_ti.txt"])
def test_either_name_or_what_they_share(tmp_path: Path, name: str) -> None:
    save(tmp_path, "5 1 3 \n2 \n", "0.0 0.25 0.25 \n1e-05 \n")
    assert sniff(tmp_path / name) == "paired-text"
    assert read(tmp_path / name) == EXPECTED


def test_what_is_written_has_the_authors_form(tmp_path: Path) -> None:
    write(EXPECTED, tmp_path / "train_query", "paired-text")
    assert (tmp_path / "train_query_ev.txt").read_text() == "5 1 3\n2\n"
    assert (tmp_path / "train_query_ti.txt").read_text() == "0.0 0.25 0.25\n1e-05\n"


def test_marks_may_be_written_as_floats(tmp_path: Path) -> None:
    assert read(save(tmp_path, "5.0 1 3\n2\n", "0 0.25 0.25\n1e-05")) == EXPECTED


@pytest.mark.parametrize(
    ("marks", "times", "message"),
    [
        ("1 2\n3\n", "0 1\n", "train_query_ev.txt: 2 lines, but train_query_ti.txt has 1"),
        ("1 2\n3\n", "0 1\n2 3\n", "train_query_ev.txt: sequence 1: 1 marks but 2 times"),
        ("1 2\n", "0 x\n", "train_query_ti.txt: sequence 0: event 1: time 'x' is not a number"),
        ("1 y\n", "0 1\n", "train_query_ev.txt: sequence 0: event 1: mark 'y' is not a number"),
        ("1 0.5\n", "0 1\n", "mark 0.5 is not a 32-bit integer"),
        ("1 1e300\n", "0 1\n", "is not a 32-bit integer"),
        (
            "1\n1 2\n",
            "1\n0 1700000000123456789\n",
            "train_query_ti.txt: sequence 1: event 1: time does not fit a float64",
        ),
        ("1 2\n", "1 0\n", "sequence 0: event 1: time 0 is before"),
        ("1\n\n2\n", "1\n\n2\n", "sequence 1: no events"),
    ],
)
def test_flaws(tmp_path: Path, marks: str, times: str, message: str) -> None:
    with pytest.raises(DataError) as caught:
        read(save(tmp_path, marks, times))
    assert message in str(caught.value)


def test_half_a_pair_is_one_line(tmp_path: Path) -> None:
    path = save(tmp_path, "1\n", "0\n")
    (tmp_path / "train_query_ti.txt").unlink()
    with pytest.raises(UserError, match=r"paired text needs both NAME_ev\.txt and NAME_ti\.txt"):
        read(path)
