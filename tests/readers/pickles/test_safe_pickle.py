"""Pickles: plain data comes out as it went in, hostile ones do not run, and none is opened unasked."""

from __future__ import annotations

import builtins
import io
import os
import pickle
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from neuroseqret.errors import UserError
from neuroseqret.readers import read
from neuroseqret.readers.pickles import safe_pickle


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
    for name, content in (("a.pkl", hostile(mark)["os.system"]), ("b.pkl", pickle.dumps({"train": []}))):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(UserError, match=f"{name}: is a pickle; .*allow_pickle=True"):
            read(tmp_path / name)
    torch.save({"sequences": []}, tmp_path / "c.pt")
    with pytest.raises(UserError, match="is a pickle"):
        read(tmp_path / "c.pt")
    assert not mark.exists()


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
