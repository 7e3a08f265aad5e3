"""Pickles: real ones are read, hostile ones do not run, and none is opened unasked."""

from __future__ import annotations

import builtins
import io
import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from naive.readers import strided
from neuroseqret.data.sequences import EventSequences
from neuroseqret.errors import DataError, UserError
from neuroseqret.readers import read, sniff, write
from neuroseqret.readers.pickles import safe_pickle, torch_file

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


class Evil:
    """Pickles to a call of its choice."""

    def __init__(self, function: Any, *arguments: Any) -> None:
        self.call = (function, arguments)

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        return self.call


class EvilState:
    """Pickles to an object with a state to be set."""

    def __getstate__(self) -> dict[str, int]:
        return {"x": 1}


def hostile(mark: Path) -> dict[str, bytes]:
    """Pickles that would make the file `mark`, or do worse."""
    touch = f"touch {mark}"
    raw = {
        "GLOBAL in text": b"cos\nsystem\n(S'" + touch.encode() + b"'\ntR.",
        "INST": b"(S'" + touch.encode() + b"'\nios\nsystem\n.",
        "OBJ": b"(cos\nsystem\nS'" + touch.encode() + b"'\no.",
        "STACK_GLOBAL": b"\x80\x04\x8c\x02os\x8c\x06system\x93\x8c" + bytes([len(touch)]) + touch.encode() + b"\x85R.",
        "EXT": b"\x80\x02\x82\x01.",
        "BUILD on a stand-in": b"\x80\x02cnumpy\ndtype\n}X\x05\x00\x00\x00valueK\x01sb.",
        "call of a number": b"\x80\x02K\x01K\x02\x85R.",
        "call of a list": b"\x80\x02]K\x02\x85R.",
        "builtins.bytes of a number": b"\x80\x02cbuiltins\nbytes\nJ\xff\xff\xff\x7f\x85R.",
        "dotted name": b"\x80\x04\x8c\x05numpy\x8c\x0dndarray.tofile\x93.",
        "memo far away": b"\x80\x02]r\xff\xff\xff\x7f.",
        "itself inside": b"\x80\x02]q\x00h\x00a.",
        "nested deeply": b"\x80\x02" + b"]" * 50_000 + b"a" * 49_999 + b".",
        "no end": b"\x80\x02]",
        "length beyond the file": b"\x80\x04\x8e\xff\xff\xff\xff\xff\xff\xff\x7f.",
        "persistent id": b"\x80\x02X\x01\x00\x00\x00xQ.",
    }
    array = pickle.dumps(np.zeros(3))
    raw["array of as many bytes"] = array.replace(b"C\x18" + bytes(24), b"J\xff\xff\xff\x7f")
    assert raw["array of as many bytes"] != array
    made = {
        "os.system": Evil(os.system, touch),
        "open": Evil(builtins.open, str(mark), "w"),
        "eval": Evil(eval, f"open({str(mark)!r}, 'w')"),
        "subprocess": Evil(subprocess.Popen, ["touch", str(mark)]),
        "getattr": Evil(getattr, "", "join"),
        "numpy.load": Evil(np.load, str(mark)),
        "state": EvilState(),
        "a class": Path,
        "hidden deep": {"train": [[{"time_since_start": 0.0, "type_event": Evil(os.system, touch)}]]},
        "object array": np.array([Evil(os.system, touch)], dtype=object),
    }
    return raw | {name: pickle.dumps(value) for name, value in made.items()}


NAMES = sorted(hostile(Path("x")))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", ["gatech", "ifl-tpp"])
def test_hostile_pickles_do_not_run(tmp_path: Path, name: str, kind: str) -> None:
    mark = tmp_path / "ran"
    content = hostile(mark)[name]
    path = tmp_path / "file"
    path.write_bytes(content)
    if kind == "ifl-tpp":
        import zipfile

        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("archive/data.pkl", content)
            archive.writestr("archive/byteorder", "little")
    with pytest.raises(UserError) as caught:
        read(path, format=kind, allow_pickle=True)
    assert str(caught.value).startswith(f"{path}: ")
    assert "\n" not in str(caught.value)
    assert not mark.exists()


def test_the_hostile_pickles_are_hostile(tmp_path: Path) -> None:
    """The attack works on the standard unpickler, so that the test above tests something."""
    mark = tmp_path / "ran"
    for name in ("os.system", "INST", "GLOBAL in text", "STACK_GLOBAL", "open"):
        mark.unlink(missing_ok=True)
        pickle.loads(hostile(mark)[name])
        assert mark.exists(), name


def test_no_pickle_is_opened_unasked(tmp_path: Path) -> None:
    mark = tmp_path / "ran"
    for name, content in (("a.pkl", hostile(mark)["os.system"]), ("b.pkl", pickle.dumps(CONTENT))):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(UserError, match=f"{name}: is a pickle; .*allow_pickle=True"):
            read(tmp_path / name)
    torch.save({"sequences": []}, tmp_path / "c.pt")
    with pytest.raises(UserError, match="is a pickle"):
        read(tmp_path / "c.pt")
    assert not mark.exists()


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


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


@given(value=PLAIN, protocol=st.integers(0, 5))
@settings(max_examples=30)
def test_plain_data_comes_out_as_it_went_in(value: Any, protocol: int) -> None:
    assert safe_pickle.load(io.BytesIO(pickle.dumps(value, protocol))) == value


@pytest.mark.parametrize("protocol", range(2, 6))
@pytest.mark.parametrize("dtype", ["f8", "f4", "i8", "i2", "u1", "?", ">f8", ">i4"])
@pytest.mark.parametrize("shape", [(0,), (3,), (2, 3)])
def test_arrays_come_out_as_they_went_in(protocol: int, dtype: str, shape: tuple[int, ...]) -> None:
    array = np.arange(np.prod(shape)).reshape(shape).astype(dtype)
    for each in (array, np.asfortranarray(array)):
        back = safe_pickle.load(io.BytesIO(pickle.dumps({"x": each, "y": [each]}, protocol)))
        assert np.array_equal(back["x"], each)
        assert np.array_equal(back["y"][0], each)


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


@pytest.mark.parametrize("zipped", [True, False])
@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "int64", "int32", "int16", "int8", "uint8", "bool"])
def test_tensors_and_views_come_out_as_arrays(zipped: bool, dtype: str) -> None:
    base = torch.arange(12).to(getattr(torch, dtype)).reshape(3, 4)
    views = [base, base.T, base[1:, ::2], base[0, :0], torch.tensor(3.0, dtype=torch.float64)]
    stream = io.BytesIO()
    torch.save(views, stream, _use_new_zipfile_serialization=zipped)
    stream.seek(0)
    for mine, theirs in zip(torch_file.load(stream), views, strict=True):
        assert mine.dtype == theirs.numpy().dtype
        assert np.array_equal(mine, theirs.numpy())


@given(
    offset=st.integers(0, 6),
    size=st.tuples(st.integers(1, 4), st.integers(1, 4)),
    stride=st.tuples(st.integers(0, 5), st.integers(0, 5)),
)
@settings(max_examples=50)
def test_a_tensor_never_looks_beyond_its_storage(offset: int, size: tuple[int, int], stride: tuple[int, int]) -> None:
    storage = torch_file._Storage(np.dtype("<f8"), 12)
    storage.data = np.arange(12.0)
    tensor = torch_file._Tensor(storage, offset, size, stride)
    last = offset + (size[0] - 1) * stride[0] + (size[1] - 1) * stride[1]
    if last >= 12 or size[0] * size[1] > 12:
        with pytest.raises(DataError, match="beyond its storage"):
            tensor.finished()
    else:
        assert tensor.finished().tolist() == strided(storage.data.tolist(), offset, size, stride)


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


def test_a_module_in_a_torch_file_is_refused(tmp_path: Path) -> None:
    torch.save(torch.nn.Linear(2, 2), tmp_path / "a.pt")
    with pytest.raises(DataError, match=r"asks for torch.nn.modules.linear.Linear"):
        read(tmp_path / "a.pt", allow_pickle=True)


def test_reading_a_torch_file_does_not_load_torch(tmp_path: Path) -> None:
    torch.save(DATASET, tmp_path / "a.pt")
    code = (
        "import sys; from neuroseqret.readers.pickles import torch_file; import io; "
        f"torch_file.load(io.BytesIO(open({str(tmp_path / 'a.pt')!r}, 'rb').read())); "
        "sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize("number", [3, 3.0, np.int64(3), torch.tensor(3)])
def test_the_number_of_marks_in_any_spelling(tmp_path: Path, number: Any) -> None:
    torch.save({"sequences": [{"arrival_times": [1.0]}], "num_marks": number}, tmp_path / "a.pt")
    assert read(tmp_path / "a.pt", allow_pickle=True).mark_names == ("0", "1", "2")


@pytest.mark.parametrize("name", ["gatech", "ifl-tpp"])
def test_a_file_that_is_not_there(tmp_path: Path, name: str) -> None:
    with pytest.raises(DataError, match="a: no such file; check the path"):
        read(tmp_path / "a", format=name, allow_pickle=True)
