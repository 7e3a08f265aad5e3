"""The Georgia Tech pickle, as other tools write it, and wrong content."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from neuroseqret.data.sequences import EventSequences
from neuroseqret.errors import DataError
from neuroseqret.readers import read, sniff

CONTENT = {
    "dim_process": 3,
    "devtest": [],
    "args": None,
    "train": [
        [
            {"time_since_start": 0.5, "time_since_last_event": 0.5, "type_event": 2, "idx_event": 1},
            {"time_since_start": 1.5, "time_since_last_event": 1.0, "type_event": 0, "idx_event": 2},
        ]
    ],
    "dev": [[{"time_since_start": 3, "time_since_last_event": 0, "type_event": 1}]],
    "test": [],
}

EXPECTED = EventSequences.from_lists(
    [([0.5, 1.5], [2, 0]), ([3.0], [1])],
    ids=["train-0", "dev-0"],
    metadata={"split": ["train", "validation"]},
    mark_names=["0", "1", "2"],
)


@pytest.mark.parametrize("protocol", range(6))
def test_the_georgia_tech_pickle(tmp_path: Path, protocol: int) -> None:
    (tmp_path / "train.pkl").write_bytes(pickle.dumps(CONTENT, protocol))
    assert sniff(tmp_path / "train.pkl") == "gatech"
    assert read(tmp_path / "train.pkl", allow_pickle=True) == EXPECTED


@pytest.mark.parametrize("protocol", [2, 4, 5])
def test_the_georgia_tech_pickle_with_numpy_numbers(tmp_path: Path, protocol: int) -> None:
    def with_numpy(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: with_numpy(item) for key, item in value.items()}
        if isinstance(value, list):
            return [with_numpy(item) for item in value]
        return np.float64(value) if isinstance(value, float) else np.int64(value) if isinstance(value, int) else value

    (tmp_path / "train.pkl").write_bytes(pickle.dumps(with_numpy(CONTENT), protocol))
    assert read(tmp_path / "train.pkl", allow_pickle=True) == EXPECTED


def test_sequences_under_other_keys_are_read(tmp_path: Path) -> None:
    """Other tools say `valid`; whatever a key is called, its sequences are not lost."""
    found = {**CONTENT, "dev": [], "valid": CONTENT["dev"], "devtest": CONTENT["dev"], "index": [[1, 2]], "args": {}}
    (tmp_path / "train.pkl").write_bytes(pickle.dumps(found))
    back = read(tmp_path / "train.pkl", allow_pickle=True)
    assert back.ids.to_pylist() == ["train-0", "devtest-0", "valid-0"]
    assert back.column("split").to_pylist() == ["train", "devtest", "validation"]
    (tmp_path / "train.pkl").write_bytes(pickle.dumps({"valid": CONTENT["dev"], "train": []}))
    assert read(tmp_path / "train.pkl", allow_pickle=True).ids.to_pylist() == ["valid-0"]


@pytest.mark.parametrize("times", [[0, 2**60 + 1], [0.5, 2**60 + 1]])
def test_times_that_a_float_does_not_hold_are_refused(tmp_path: Path, times: list[float]) -> None:
    events = [{"time_since_start": time, "type_event": 0} for time in times]
    (tmp_path / "a.pkl").write_bytes(pickle.dumps({"train": [events[:1], events]}))
    with pytest.raises(DataError, match=r"sequence train-1: event 1: time_since_start does not fit a float64 \(11529"):
        read(tmp_path / "a.pkl", allow_pickle=True)


def test_a_pickle_of_python_2(tmp_path: Path) -> None:
    """As cPickle wrote it: byte strings for keys, protocol 2."""
    event = b"}(U\x10time_since_startG?\xe0\x00\x00\x00\x00\x00\x00U\ntype_eventK\x01u"
    content = b"\x80\x02}(U\x0bdim_processK\x02U\x05train]]" + event + b"aau."
    (tmp_path / "train.pkl").write_bytes(content)
    back = read(tmp_path / "train.pkl", allow_pickle=True)
    assert back.to_lists() == [([0.5], [1])]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ([1, 2], "not a dict with sequences"),
        ({"dim_process": 3}, "not a dict with sequences"),
        ({"train": {"a": 1}}, "'train' is not a list of sequences"),
        ({"train": [[{"time_since_start": 1.0}]]}, "sequence train-0: event 0: type_event is None"),
        ({"train": [[{"time_since_start": "x", "type_event": 0}]]}, "time_since_start is 'x'"),
        ({"train": [[{"time_since_start": 2.0**70, "type_event": 2**70}]]}, "event 0: type_event is 1180591620717411"),
        ({"train": [[3]]}, "sequence train-0: event 0: an event is 3"),
        ({"train": [[{"time_since_start": 1.0, "type_event": 0.5}]]}, "mark 0.5 is not a 32-bit integer"),
        (
            {"train": [[{"time_since_start": 1.0, "type_event": 0}]], "dim_process": "many"},
            "the number of marks is many",
        ),
        *(
            ({"train": [[{"time_since_start": 1.0, "type_event": 0}]], "dim_process": number}, "the number of marks is")
            for number in (float("nan"), float("inf"), 2.5, 2**70, 0, [])
        ),
        ({"train": [[{"time_since_start": 1.0, "type_event": 7}]], "dim_process": 2}, "mark 7 has no name"),
        ({"train": [[]]}, "sequence train-0: no events"),
    ],
)
def test_wrong_content(tmp_path: Path, content: Any, message: str) -> None:
    (tmp_path / "a.pkl").write_bytes(pickle.dumps(content))
    with pytest.raises(DataError) as caught:
        read(tmp_path / "a.pkl", allow_pickle=True)
    assert message in str(caught.value)
    assert str(caught.value).startswith(str(tmp_path / "a.pkl"))
