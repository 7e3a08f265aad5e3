"""A small file cannot fill the memory: what it stands for is checked before it is decoded."""

from __future__ import annotations

import gzip
import json
import time
import zipfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import neuroseqret as nsr
from neuroseqret.errors import DataError, UserError
from neuroseqret.readers import limits
from neuroseqret.readers.engines.parquet_footer import decoded_bytes
from neuroseqret.readers.pickles.torch_file import load

OBJECT = {"seq_idx": 0, "time_since_start": [0.0, 1.0], "type_event": [0, 1]}


def _json(path: Path, keys: int) -> Path:
    whole = OBJECT | {f"k{i}": i for i in range(keys)}
    path.write_text(json.dumps(whole if path.suffix == ".jsonl" else [whole]))
    return path


def _csv(path: Path, columns: int) -> Path:
    names, values = (",".join(words) for words in zip(*((f"c{i}", "1") for i in range(columns)), strict=True))
    path.write_text(f"id,time,mark,{names}\n" + f"a,1,0,{values}\n" * 3)
    return path


@pytest.mark.parametrize(("make", "name"), [(_json, "x.json"), (_json, "x.jsonl"), (_csv, "x.csv")])
def test_too_many_columns_are_refused_and_the_limit_can_be_raised(
    make: object, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = make(tmp_path / name, 300)  # type: ignore[operator]
    monkeypatch.setenv(limits.COLUMNS, "200")
    with pytest.raises(DataError, match=r"30\d .*more than 200; .*set NEUROSEQRET_MAX_COLUMNS"):
        nsr.read(path)
    monkeypatch.setenv(limits.COLUMNS, "400")
    assert len(nsr.read(path)) == 1
    monkeypatch.setenv(limits.COLUMNS, "many")
    with pytest.raises(UserError, match="NEUROSEQRET_MAX_COLUMNS is 'many'; set it to a whole number"):
        nsr.read(path)


def test_reading_takes_time_in_proportion_to_the_keys(tmp_path: Path) -> None:
    def seconds(keys: int) -> float:
        path, spent = _json(tmp_path / f"{keys}.json", keys), []
        for _ in range(4):  # the fastest one: what else the machine does only adds
            begun = time.process_time()
            nsr.read(path)
            spent.append(time.process_time() - begun)
        return min(spent)

    few, many = seconds(500), seconds(4000)
    assert many < 8 * 3 * max(few, 0.01)  # quadratic: 64 times


def test_run_length_encoded_columns_are_counted_before_they_are_decoded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    n = 100_000
    table = pa.table({"id": pa.repeat("a", n).cast(pa.string()), "time": pa.repeat(1.0, n), "mark": pa.repeat(0, n)})
    pq.write_table(table, tmp_path / "long.parquet", compression="zstd")
    lists = [pa.LargeListArray.from_arrays(pa.array([0, n]), pa.repeat(x, n)) for x in (1.0, 0)]
    pq.write_table(pa.table({"id": ["a"], "times": lists[0], "marks": lists[1]}), tmp_path / "list.parquet")
    for name in ("long.parquet", "list.parquet"):
        assert decoded_bytes(tmp_path / name) >= 16 * n
        assert len(nsr.read(tmp_path / name)) == 1  # small enough to be harmless
    monkeypatch.setattr(limits, "ALWAYS_ALLOWED", 1 << 10)
    for name in ("long.parquet", "list.parquet"):
        with pytest.raises(DataError, match=r"bytes stand for .* in memory; .*NEUROSEQRET_MAX_EXPANSION"):
            nsr.read(tmp_path / name)
    monkeypatch.setenv(limits.EXPANSION, "100000")
    assert len(nsr.read(tmp_path / "list.parquet")) == 1


@pytest.mark.parametrize("name", ["x.csv", "x.json", "x.jsonl"])
def test_a_compressed_text_is_read_only_so_far(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = {
        "x.csv": "id,time,mark\n" + "a,1,0\n" * 300_000,
        "x.json": json.dumps([OBJECT]) + " " * 2_000_000,
        "x.jsonl": (json.dumps(OBJECT | {"seq_idx": "x"}) + "\n") + "\n" * 2_000_000,
    }[name]
    path = tmp_path / f"{name}.gz"
    path.write_bytes(gzip.compress(text.encode()))
    assert len(nsr.read(path)) == 1
    monkeypatch.setattr(limits, "ALWAYS_ALLOWED", 1 << 10)
    monkeypatch.setenv(limits.EXPANSION, "20")
    with pytest.raises(DataError, match="stand for"):
        nsr.read(path)


def test_a_compressed_archive_is_not_opened(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "bomb.pt", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("archive/data.pkl", b"\0" * 1_000_000)
    with (tmp_path / "bomb.pt").open("rb") as stream, pytest.raises(DataError, match=r"not one of torch\.save"):
        load(stream)  # type: ignore[arg-type]
