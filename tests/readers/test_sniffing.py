"""Formats are told by content; a misleading file name changes nothing."""

from __future__ import annotations

import warnings
import zipfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from neuroseqret.data.sequences import EventSequences
from neuroseqret.errors import UserError
from neuroseqret.readers import FORMATS, LossWarning, read, sniff, write

BATCH = EventSequences.from_lists([([0.0, 0.5], [0, 1]), ([2.0], [1])], ids=["a", "b"], groups=["x", "y"])


@pytest.mark.parametrize("misleading", ["data.csv", "data.json", "data.parquet", "data.pkl", "data"])
@pytest.mark.parametrize("name", sorted(set(FORMATS) - {"paired-text"}))
def test_the_name_of_the_file_does_not_matter(tmp_path: Path, name: str, misleading: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LossWarning)
        write(BATCH, tmp_path / misleading, name)
    assert sniff(tmp_path / misleading) == name
    assert read(tmp_path / misleading, allow_pickle=True).times.tolist() == [0.0, 0.5, 2.0]


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        ({"id": ["a"], "times": [[1.0]], "marks": [[0]]}, "canonical"),
        ({"id": ["a"], "timestamps": [[1.0]], "labels": [[0]]}, "hotpp"),
        ({"id": ["a"], "event_time": [[1.0]], "kind": [[0]]}, "lifestream"),
        ({"id": ["a"], "x": [[1.0]], "kind": [[0]]}, "lifestream"),
        ({"id": ["a"], "time": [1.0], "mark": [0]}, "long-parquet"),
        ({"id": ["a"], "time": [1.0], "mark": [0], "tags": [["x"]]}, "long-parquet"),
        ({"user": ["a"], "moment": [1.0], "what": [0]}, "long-parquet"),
        ({"id": ["a"], "time": [1.0], "mark": [0], "record": [{"x": 1}]}, "long-parquet"),
    ],
)
def test_parquet_is_told_by_its_columns(tmp_path: Path, columns: dict, expected: str) -> None:
    pq.write_table(pa.table(columns), tmp_path / "x")
    assert sniff(tmp_path / "x") == expected


def test_a_zip_archive_is_looked_into(tmp_path: Path) -> None:
    for entry, kind in (("xl/workbook.xml", None), ("archive/data.pkl", "ifl-tpp")):
        with zipfile.ZipFile(tmp_path / "x", "w") as archive:
            archive.writestr("[Content_Types].xml", "")
            archive.writestr(entry, "")
        if kind:
            assert sniff(tmp_path / "x") == kind
        else:
            with pytest.raises(UserError, match=r"x: a zip archive, perhaps a spreadsheet; .* CSV or Parquet"):
                sniff(tmp_path / "x")


def test_text_cut_within_a_character_is_text(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("id,time,mark\n" + "é" * (1 << 16), encoding="utf-8")
    assert sniff(tmp_path / "x") == "long-csv"
    (tmp_path / "x").write_text("id,time,mark,\n" + "é" * (1 << 16), encoding="utf-8")
    assert sniff(tmp_path / "x") == "long-csv"


def test_a_map_helps_to_tell(tmp_path: Path) -> None:
    columns = {"id": ["a"], "times": [[1.0, 2.0]], "marks": [[0, 1]], "other": [[3, 4]], "when": [5.0]}
    pq.write_table(pa.table(columns), tmp_path / "x")
    for roles, expected in (
        ({"time": "times"}, [0, 1]),
        ({"mark": "other"}, [3, 4]),
        ({"time": "times", "mark": "other", "id": "id"}, [3, 4]),
    ):
        assert read(tmp_path / "x", columns=roles).marks.tolist() == expected


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "empty"),
        (b"hello\nworld\n", "not a known format; see docs/formats.md"),
        (b"\x89PNG\r\n\x1a\n" + bytes(20), "binary content"),
        (b"1 2 3\n4 5 6\n", "numbers without a header"),
        (b"1 nan 3 inf -inf\n", "numbers without a header"),
        (b"0.25 " * 12_000 + b"x\n", "not a known format"),  # at once, not after trying all ways to match
        ("id,time,mark\na,1,café\n".encode("latin-1"), "not UTF-8 text; save it as UTF-8"),
        (("id,time,mark\n" + "a,1,x\n" * 400 + "a,1,café\n").encode("latin-1"), "not UTF-8 text; save it as UTF-8"),
        ("id,time,mark\na,1,x\n".encode("utf-16"), "not UTF-8 text; save it as UTF-8"),
        (b"PK\x03\x04" + bytes(40), "a zip archive, perhaps a spreadsheet; unpack it, or export the sheet as CSV"),
        (b'{"hello": 1}\n', "JSON without 'time_since_start'"),
    ],
)
def test_what_is_not_known_is_one_line(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "x.parquet").write_bytes(content)
    with pytest.raises(UserError) as caught:
        sniff(tmp_path / "x.parquet")
    assert message in str(caught.value)
    assert str(tmp_path / "x.parquet") in str(caught.value)
