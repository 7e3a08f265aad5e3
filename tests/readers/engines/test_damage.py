"""Damaged files: the same data or one `UserError`; other data only where a format carries no checksum."""

from __future__ import annotations

import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neuroseqret.data.sequences import EventSequences
from neuroseqret.errors import UserError
from neuroseqret.readers import FORMATS, LossWarning, read, scan, write
from neuroseqret.readers.formats.paired_text import pair_of

#: Formats that this library writes with a checksum over everything, so that no damage goes unseen.
SEALED = ("canonical", "hotpp", "lifestream", "long-parquet")


def example() -> EventSequences:
    rng = np.random.default_rng(7)
    rows = [(np.sort(rng.normal(size=n) * 10), rng.integers(0, 3, n)) for n in (1, 4, 6, 2, 5)]
    return EventSequences.from_lists(
        rows,
        ids=[f"s{i}" for i in range(5)],
        starts=[t[0] - 1 for t, _ in rows],
        ends=[t[-1] + 1 for t, _ in rows],
        groups=list("ababc"),
        metadata={"source": list("vwxyz"), "split": ["train", "train", "validation", "test", "test"]},
        mark_names=["0", "1", "2"],
        time_unit="seconds",
    )


@st.composite
def damage(draw: st.DrawFn, content: bytes) -> bytes:
    """Bytes changed, cut off, taken out, put in, or zeroed."""
    at = draw(st.integers(0, len(content) - 1))
    length = draw(st.integers(1, 16))
    kind = draw(st.sampled_from(["change", "cut", "take", "put", "zero"]))
    if kind == "change":
        return content[:at] + bytes([draw(st.integers(0, 255))]) + content[at + 1 :]
    if kind == "cut":
        return content[:at]
    if kind == "take":
        return content[:at] + content[at + length :]
    if kind == "put":
        return content[:at] + draw(st.binary(min_size=1, max_size=16)) + content[at:]
    return content[:at] + bytes(min(length, len(content) - at)) + content[at + length :]


@pytest.mark.parametrize("name", sorted(FORMATS))
@given(data=st.data())
@settings(max_examples=35)
def test_damage_is_found_or_harmless(name: str, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    path = tmp_path_factory.getbasetemp() / f"damaged.{name}"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LossWarning)
        write(example(), path, name)
    whole = read(path, allow_pickle=True)
    file = data.draw(st.sampled_from(pair_of(path))) if name == "paired-text" else path
    file.write_bytes(data.draw(damage(file.read_bytes())))
    try:
        back = read(path, allow_pickle=True)
    except UserError as error:
        back, line = None, str(error)
        assert "\n" not in line  # whether it raises is not known beforehand
    if name in SEALED:
        assert back is None or back == whole


@pytest.mark.parametrize("name", SEALED)
def test_every_single_byte_of_a_sealed_file_counts(name: str, tmp_path: Path) -> None:
    path = tmp_path / "file"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LossWarning)
        write(example(), path, name)
    whole, content = read(path), path.read_bytes()
    for at in range(0, len(content), 5):
        path.write_bytes(content[:at] + bytes([content[at] ^ 0x21]) + content[at + 1 :])
        try:
            assert read(path) == whole, f"byte {at}"
        except UserError:
            continue


def test_damage_is_found_by_a_scan_too(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    write(example(), path)
    content = bytearray(path.read_bytes())
    content[len(content) // 3] ^= 1
    path.write_bytes(content)
    with pytest.raises(UserError, match=r"a.parquet: damaged: the checksum does not match"):
        list(scan(path))


@pytest.mark.parametrize(
    "content", [b"", b" \n", b"PAR1", b"PAR1PAR1", b"PK\x03\x04", b"\x80\x04.", b"[", b"{", b"\xff\xfe"]
)
@pytest.mark.parametrize("name", [None, *sorted(set(FORMATS) - {"paired-text"})])
def test_scraps_of_files_are_one_line(name: str | None, content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "scrap"
    path.write_bytes(content)
    with pytest.raises(UserError) as caught:
        read(path, format=name, allow_pickle=True)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


FOREIGN = """
import random, sys
import pyarrow.parquet as pq
from neuroseqret.errors import UserError
from neuroseqret.readers import read
from neuroseqret.data.sequences import EventSequences
path = sys.argv[1]
rows = [([0.5, 1.0, 2.5], [0, 1, 0]), ([2.0], [1]), ([1.0, 1.0], [2, 0])]
pq.write_table(EventSequences.from_lists(rows, groups=["a", "b", "a"], mark_names=["x", "y", "z"]).to_arrow(), path)
content = open(path, "rb").read()
footer = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
found = 0
for seed in range(400):
    chance = random.Random(seed)
    at, length = chance.randrange(footer - 200, len(content)), chance.randrange(1, 17)
    put = {0: bytes(length), 1: b"", 2: chance.randbytes(length), 3: chance.randbytes(1)}[seed % 4]
    with open(path, "wb") as out:
        out.write(content[:at] + put + content[at + (1 if seed % 4 == 3 else length):])
    try:
        read(path)
    except UserError:
        found += 1
print(found)
"""


def test_damaged_footers_of_other_tools_do_not_end_the_process(tmp_path: Path) -> None:
    """They have no checksum, so other data may come out; but pyarrow's accessors abort over some of them."""
    run = subprocess.run(
        [sys.executable, "-c", FOREIGN, str(tmp_path / "a.parquet")], capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr[:2000]
    assert int(run.stdout) > 200
