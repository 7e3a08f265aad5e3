"""ifl-tpp's torch file in both of torch's layouts, and wrong content."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from neuroseqret.data.sequences import EventSequences
from neuroseqret.errors import DataError
from neuroseqret.readers import read, sniff, write


@pytest.mark.parametrize("times", [[0, 2**60 + 1], [0.5, 2**60 + 1]])
def test_times_in_torch_files_that_a_float_does_not_hold_are_refused(tmp_path: Path, times: list[float]) -> None:
    torch.save({"sequences": [{"arrival_times": times}]}, tmp_path / "a.pt")
    with pytest.raises(
        DataError, match=r"sequence 0: event 1: arrival_times does not fit a float64 \(1152921504606846"
    ):
        read(tmp_path / "a.pt", allow_pickle=True)
    torch.save({"sequences": [{"arrival_times": [0.5], "t_end": 2**60 + 1}]}, tmp_path / "a.pt")
    with pytest.raises(DataError, match="sequence 0: event 0: t_end does not fit a float64"):
        read(tmp_path / "a.pt", allow_pickle=True)


def test_a_window_that_one_sequence_lacks_is_null(tmp_path: Path) -> None:
    rows = [{"arrival_times": [1.0], "t_start": 0.0, "t_end": 2}, {"arrival_times": [1.0], "t_start": 0.5}]
    torch.save({"sequences": rows}, tmp_path / "a.pt")
    back = read(tmp_path / "a.pt", allow_pickle=True)
    assert back.column("start").to_pylist() == [0.0, 0.5]
    assert back.column("end").to_pylist() == [2.0, None]


DATASET = {
    "sequences": [
        {"arrival_times": [0.25, 4.5], "marks": [1, 0], "t_start": 0.0, "t_end": 10.0},
        {"arrival_times": [2.5], "marks": [4], "t_start": 0.0, "t_end": 10.0},
    ],
    "num_marks": 5,
}

READ = EventSequences.from_lists(
    [([0.25, 4.5], [1, 0]), ([2.5], [4])],
    ids=["0", "1"],
    starts=[0.0, 0.0],
    ends=[10.0, 10.0],
    mark_names=list("01234"),
)


@pytest.mark.parametrize("zipped", [True, False])
@pytest.mark.parametrize("kind", ["lists", "arrays", "tensors"])
def test_the_torch_file_of_ifl_tpp(tmp_path: Path, zipped: bool, kind: str) -> None:
    convert = {"lists": list, "arrays": np.array, "tensors": torch.tensor}[kind]
    rows = [
        {**row, "arrival_times": convert(row["arrival_times"]), "marks": convert(row["marks"])}
        for row in DATASET["sequences"]
    ]
    path = tmp_path / "synth.pkl"
    torch.save({**DATASET, "sequences": rows}, path, _use_new_zipfile_serialization=zipped)
    assert sniff(path) == "ifl-tpp"
    assert read(path, allow_pickle=True) == READ


def test_unmarked_torch_files(tmp_path: Path) -> None:
    rows = [{k: v for k, v in row.items() if k != "marks"} for row in DATASET["sequences"]]
    torch.save({"sequences": rows}, tmp_path / "a.pt")
    back = read(tmp_path / "a.pt", allow_pickle=True)
    assert (back.marks.tolist(), back.mark_names) == ([0, 0, 0], None)


def test_what_is_written_is_what_ifl_tpp_loads(tmp_path: Path) -> None:
    write(READ, tmp_path / "a.pt")
    rows = torch.load(tmp_path / "a.pt", weights_only=True)["sequences"]
    assert [{k: v for k, v in row.items() if k != "id"} for row in rows] == DATASET["sequences"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"a": 1}, "not a dict with a list of 'sequences'"),
        ({"sequences": [3]}, "not a dict with a list of 'sequences'"),
        ({"sequences": [{"marks": [1]}]}, "sequence 0: arrival_times is not a list of numbers"),
        ({"sequences": [{"arrival_times": ["x"]}]}, "sequence 0: arrival_times is not a list of numbers"),
        ({"sequences": [{"arrival_times": [[1], [2, 3]]}]}, "sequence 0: arrival_times is not a list of numbers"),
        ({"sequences": [{"arrival_times": [1.0], "marks": [0, 1]}]}, "sequence 0: 1 times but 2 marks"),
        ({"sequences": [{"arrival_times": [1.0]}], "num_marks": 0}, "the number of marks is 0"),
        (
            {"sequences": [{"arrival_times": [1.0]}], "num_marks": 2**70},
            "the number of marks is 1180591620717411303424",
        ),
        ({"sequences": [{"arrival_times": [2.0], "t_start": 3.0}]}, "sequence 0: event 0: the window starts"),
        ({"sequences": [{"arrival_times": [2.0], "t_start": "x"}]}, "sequence 0: t_start is not a list of numbers"),
    ],
)
def test_wrong_torch_content(tmp_path: Path, content: Any, message: str) -> None:
    torch.save(content, tmp_path / "a.pt")
    with pytest.raises(DataError) as caught:
        read(tmp_path / "a.pt", allow_pickle=True)
    assert message in str(caught.value)


@pytest.mark.parametrize("number", [3, 3.0, np.int64(3), torch.tensor(3)])
def test_the_number_of_marks_in_any_spelling(tmp_path: Path, number: Any) -> None:
    torch.save({"sequences": [{"arrival_times": [1.0]}], "num_marks": number}, tmp_path / "a.pt")
    assert read(tmp_path / "a.pt", allow_pickle=True).mark_names == ("0", "1", "2")
