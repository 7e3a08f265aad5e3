"""The canonical Parquet: types, meaning, checksum, memory, and errors that name the place."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from naive.readers import unseal
from neuroseqret.data.sequences import EventSequences
from neuroseqret.errors import DataError
from neuroseqret.readers import read, scan, write


def save(path: Path, **columns: object) -> Path:
    pq.write_table(pa.table(columns), path)
    return path


def test_other_tools_read_a_sealed_file(tmp_path: Path) -> None:
    batch = EventSequences.from_lists([([0.5, 1.0], [1, 0])], ids=["a"], mark_names=["x", "y"])
    write(batch, tmp_path / "a.parquet")
    assert polars.read_parquet(tmp_path / "a.parquet")["times"].to_list() == [[0.5, 1.0]]
    table = pq.read_table(tmp_path / "a.parquet")
    assert EventSequences.from_arrow(table) == batch  # names travel in the schema
    # What another tool writes anew has no seal, and no old one is held against it.
    pq.write_table(table.slice(0, 0), tmp_path / "b.parquet")
    assert len(read(tmp_path / "b.parquet")) == 0


def test_the_seal_changes_nothing_else(tmp_path: Path) -> None:
    batch = EventSequences.from_lists([([0.5, 1.0], [1, 0])])
    write(batch, tmp_path / "a.parquet")
    (tmp_path / "b.parquet").write_bytes(unseal((tmp_path / "a.parquet").read_bytes()))
    assert read(tmp_path / "b.parquet") == batch


@pytest.mark.parametrize("kind", [pa.float32(), pa.int64(), pa.int16(), pa.decimal128(21, 2)])
@pytest.mark.parametrize("marks", [pa.int64(), pa.uint8(), pa.float64(), pa.bool_()])
def test_numbers_of_any_width(tmp_path: Path, kind: pa.DataType, marks: pa.DataType) -> None:
    path = save(
        tmp_path / "a.parquet",
        id=[7, 8],
        times=pa.array([[1, 2], [3]], pa.list_(pa.int64())).cast(pa.list_(kind)),
        marks=pa.array([[0, 1], [1]], pa.list_(pa.int8())).cast(pa.list_(marks)),
        group=pa.array(["a", "b"]).dictionary_encode(),
    )
    assert read(path) == EventSequences.from_lists([([1, 2], [0, 1]), ([3], [1])], ids=["7", "8"], groups=["a", "b"])


def test_text_marks_are_numbered_in_sorted_order_or_as_named(tmp_path: Path) -> None:
    path = save(tmp_path / "a.parquet", id=["a", "b"], times=[[1.0, 2.0], [3.0]], marks=[["b", "a"], ["c"]])
    back = read(path)
    assert back.mark_names == ("a", "b", "c")
    assert back.marks.tolist() == [1, 0, 2]
    named = read(path, mark_names=["c", "b", "a", "d"])
    assert named.marks.tolist() == [1, 2, 0]
    assert [part.marks.tolist() for part in scan(path, 1)] == [[1, 0], [2]]
    with pytest.raises(DataError, match=r"sequence b: event 0: mark \(marks\) 'c' is not among the mark names"):
        read(path, mark_names=["a", "b"])


def test_datetimes_become_seconds_to_the_last_tick(tmp_path: Path) -> None:
    stamps = np.array([["2024-02-29T12:00:00.123456789", "2024-02-29T12:00:01"]], "datetime64[ns]")
    path = save(
        tmp_path / "a.parquet",
        id=["a"],
        times=pa.array(list(stamps), pa.list_(pa.timestamp("ns"))),
        marks=[[0, 0]],
        start=pa.array(["2024-02-29"]).cast(pa.date32()),
        end=pa.array([None], pa.timestamp("s")),
    )
    back = read(path)
    assert back.time_unit == "seconds"
    assert back.times.tolist() == [1709208000 + 0.123456789, 1709208001.0]
    assert back.column("start").to_pylist() == [1709164800.0]
    assert back.column("end").to_pylist() == [None]


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"times": [[1.0], None], "marks": [[0], [0]]}, "sequence b: no times; drop the row"),
        ({"times": [[1.0], [2.0, None]], "marks": [[0], [0, 1]]}, "sequence b: event 1: time (times) is empty"),
        ({"times": [[1.0], [2.0]], "marks": [[0], [None]]}, "sequence b: event 0: mark (marks) is empty"),
        ({"times": [[1.0], [2.0]], "marks": [[0], [0, 1]]}, "sequence b: 1 times but 2 marks; give one mark per"),
        ({"times": [[1.0], [2.0]], "marks": [[0], [2**40]]}, "sequence b: event 0: mark (marks) 1099511627776 is"),
        ({"times": [[1.0], [2.0]], "marks": [[0], [0.5]]}, "sequence b: event 0: mark (marks) 0.5 is not a 32-bit"),
        ({"times": [[1.0], [2.0, 1.0]], "marks": [[0], [0, 0]]}, "sequence b: event 1: time 1 is before"),
        ({"times": [[1.0], [np.inf]], "marks": [[0], [0]]}, "sequence b: event 0: time is inf"),
        ({"times": [[1.0], []], "marks": [[0], []]}, "sequence b: no events; drop the sequence"),
        ({"times": [[2**60 + 1], [1]], "marks": [[0], [0]]}, "time (times) does not fit a float64"),
        ({"times": [[1], [2, 2**60 + 1]], "marks": [[0], [0, 0]]}, "sequence b: event 1: time (times) does not fit"),
        ({"times": [["x"], ["y"]], "marks": [[0], [0]]}, "time (times) is string, not a number or a datetime"),
        ({"times": [[1.0], [2.0]], "marks": [[0], [0]], "start": [["x"], ["y"]]}, "start needs one value per row"),
        ({"times": [[1.0], [2.0]], "marks": [[0], [0]], "start": [0.0, 3.0]}, "sequence b: event 0: the window"),
    ],
)
def test_flaws_are_named_with_file_sequence_and_event(tmp_path: Path, columns: dict, message: str) -> None:
    path = save(tmp_path / "a.parquet", id=["a", "b"], **columns)
    with pytest.raises(DataError) as caught:
        read(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert message in str(caught.value)


def test_text_that_is_not_utf8_is_found_at_once(tmp_path: Path) -> None:
    ids = pa.array([b"a", b"\xff\xfe"], pa.binary())
    text = pa.Array.from_buffers(pa.string(), 2, ids.buffers())
    path = save(tmp_path / "a.parquet", id=["a", "b"], times=[[1.0], [2.0]], marks=[[0], [0]], note=text)
    with pytest.raises(DataError, match=r"not readable as Parquet .*UTF8"):
        read(path)


def test_a_folder_of_files_is_read_as_one(tmp_path: Path) -> None:
    batch = EventSequences.from_lists([([float(i)], [i % 2]) for i in range(7)], ids=[f"s{i}" for i in range(7)])
    for number, part in enumerate((batch[:3], batch[3:4], batch[4:])):
        write(part, tmp_path / "set.parquet" / f"part-{number}.parquet")
    (tmp_path / "set.parquet" / "_SUCCESS").touch()
    (tmp_path / "set.parquet" / ".hidden.parquet").write_bytes(b"x")
    assert read(tmp_path / "set.parquet") == batch
    assert EventSequences.concat(scan(tmp_path / "set.parquet", 2)) == batch
    write(batch.with_column("more", [1] * 7), tmp_path / "set.parquet" / "part-9.parquet")
    with pytest.raises(DataError, match=r"its files have different columns: part-0\.parquet and part-9\.parquet"):
        read(tmp_path / "set.parquet")


@pytest.mark.parametrize("name", ["canonical", "hotpp", "lifestream", "long-parquet"])
@pytest.mark.parametrize(
    ("change", "what"), [({"mark_names": ["sell", "view"]}, "mark names"), ({"time_unit": "hours"}, "time units")]
)
def test_files_of_a_folder_must_mean_the_same(tmp_path: Path, name: str, change: dict, what: str) -> None:
    meaning = {"mark_names": ["buy", "view"], "time_unit": "days"}
    for part, more in (("1", {}), ("2", change)):
        batch = EventSequences.from_lists([([1.0, 2.0], [0, 1])], ids=[part], **{**meaning, **more})
        write(batch, tmp_path / "parts" / f"{part}.parquet", name)
    message = rf"parts: its files have different {what}: 1\.parquet and 2\.parquet; read them one by one"
    for options in ({}, {"mark_names": ["p", "q"], "time_unit": "weeks"}):
        with pytest.raises(DataError, match=message):
            read(tmp_path / "parts", **options)
        with pytest.raises(DataError, match=message):
            list(scan(tmp_path / "parts", **options))


def test_files_of_a_folder_must_have_the_same_layout(tmp_path: Path) -> None:
    """A value a sequence and a list with a value an event look alike in a long table."""
    for part, sizes in (("1", [5]), ("2", [[5, 6]])):
        batch = EventSequences.from_lists([([1.0, 2.0], [0, 1])], ids=[part], metadata={"size": sizes})
        write(batch, tmp_path / "parts" / f"{part}.parquet", "long-parquet")
    with pytest.raises(DataError, match=r"different layouts: 1\.parquet and 2\.parquet"):
        read(tmp_path / "parts")


def test_folders_of_a_folder_tell_columns(tmp_path: Path) -> None:
    rows = {"id": ["a", "b", "c"], "times": [[1.0], [2.0], [3.0]], "marks": [[0], [1], [0]], "year": [2023, 2024, 2024]}
    table = pa.table({**rows, "group": ["x/y", None, "x/y"]})
    pq.write_to_dataset(table, tmp_path / "lists", partition_cols=["group", "year"])
    back = read(tmp_path / "lists")
    assert dict(zip(back.ids.to_pylist(), back.groups.to_pylist(), strict=True)) == {"a": "x/y", "b": None, "c": "x/y"}
    assert dict(zip(back.ids.to_pylist(), back.column("year").to_pylist(), strict=True)) == {
        "a": 2023,
        "b": 2024,
        "c": 2024,
    }
    assert EventSequences.concat(scan(tmp_path / "lists", 1)) == back
    long = pa.table({"id": ["007", "8", "007"], "time": [1.0, 2.0, 3.0], "mark": ["x", "y", "y"]})
    for column in ("id", "mark"):
        pq.write_to_dataset(long, tmp_path / column, partition_cols=[column])
        back = read(tmp_path / column)
        assert dict(zip(back.ids.to_pylist(), back.to_lists(), strict=True)) == {
            "007": ([1.0, 3.0], [0, 1]),
            "8": ([2.0], [1]),
        }
        assert back.mark_names == ("x", "y")
    (tmp_path / "id" / "other=1").mkdir()
    pq.write_table(long, tmp_path / "id" / "other=1" / "a.parquet")
    with pytest.raises(DataError, match=r"id: "):
        read(tmp_path / "id")


def test_a_folder_without_files_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="a folder without Parquet files"):
        read(tmp_path)


def test_many_batches_and_row_groups_come_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("neuroseqret.readers.engines.list_parquet._EVENTS_PER_BATCH", 12)
    monkeypatch.setattr("neuroseqret.readers.engines.parquet._EVENTS_PER_ROW_GROUP", 16)
    rng = np.random.default_rng(0)
    batch = EventSequences.from_lists(
        [(np.sort(rng.normal(size=n)), rng.integers(0, 4, n)) for n in rng.integers(1, 9, 40)],
        metadata={"kind": pa.array(list("abcd") * 10).dictionary_encode(), "list": [[1]] * 40, "text": ["é"] * 40},
    )
    write(batch, tmp_path / "a.parquet")
    assert pq.ParquetFile(tmp_path / "a.parquet").num_row_groups > 3
    assert read(tmp_path / "a.parquet") == batch
    parts = list(scan(tmp_path / "a.parquet", 2))
    assert {len(part) for part in parts} == {1, 2}
    assert EventSequences.concat(parts) == batch


def test_empty_lists_between_row_groups_leave_no_gap(tmp_path: Path) -> None:
    lengths = [0, 2, 0, 0, 3, 1, 0, 2]
    rows = [(np.arange(n) + 10.0 * i, np.full(n, i)) for i, n in enumerate(lengths)]
    batch = EventSequences.from_lists(rows, validate=False)
    pq.write_table(batch.table, tmp_path / "a.parquet", row_group_size=2)
    assert read(tmp_path / "a.parquet", validate=False) == batch
    with pytest.raises(DataError, match="sequence 0: no events"):
        read(tmp_path / "a.parquet")


def test_a_scan_holds_one_batch_at_a_time(tmp_path: Path) -> None:
    number = 1_500_000
    batch = EventSequences.from_arrays(np.arange(number / 1), np.zeros(number, np.int32), np.arange(0, number + 1, 20))
    write(batch, tmp_path / "a.parquet")
    before, most = pa.total_allocated_bytes(), 0
    for part in scan(tmp_path / "a.parquet", 500):
        assert len(part) <= 500
        most = max(most, pa.total_allocated_bytes() - before)
    assert most < batch.nbytes / 3


def test_a_column_map_renames_and_leaves_out(tmp_path: Path) -> None:
    path = save(tmp_path / "a.parquet", user=["u"], when=[[1.0, 2.0]], what=[[1, 0]], start=[5.0], label=["g"])
    back = read(path, columns={"id": "user", "time": "when", "mark": "what", "start": None, "group": "label"})
    assert back == EventSequences.from_lists([([1.0, 2.0], [1, 0])], ids=["u"], groups=["g"])
    unmarked = read(path, columns={"id": "user", "time": "when", "mark": None, "start": None})
    assert unmarked.marks.tolist() == [0, 0]


def test_a_column_s_name_may_contain_dots(tmp_path: Path) -> None:
    path = save(tmp_path / "a", id=["a"], **{"t.x": [[9.0]], "t": [[1.0, 2.0]], "k": [[0, 1]]})
    back = read(path, columns={"time": "t", "mark": "k"})
    assert back.times.tolist() == [1.0, 2.0]
    back = read(path, columns={"time": "t.x", "mark": None})
    assert back.times.tolist() == [9.0]


def test_damaged_meaning_is_one_line(tmp_path: Path) -> None:
    table = pa.table({"id": ["a"], "times": [[1.0]], "marks": [[0]]})
    for text in (b"{", b"[]", json.dumps({"mark_names": 3}).encode(), json.dumps({"time_unit": 3}).encode()):
        pq.write_table(table.replace_schema_metadata({b"neuroseqret": text}), tmp_path / "a.parquet")
        with pytest.raises(DataError, match=r"a.parquet: "):
            read(tmp_path / "a.parquet")
