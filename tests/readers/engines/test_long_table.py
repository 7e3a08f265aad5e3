"""Long tables, CSV and Parquet: against a loop over rows, with other people's columns, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from naive.readers import group_events
from neuroseqret.data.repair import repair
from neuroseqret.data.sequences import EventSequences
from neuroseqret.errors import DataError
from neuroseqret.readers import LossWarning, read, scan, write
from neuroseqret.readers.engines import csv_table


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("long")


ROWS = st.lists(
    st.fixed_dictionaries(
        {"id": st.sampled_from("abcd"), "time": st.integers(0, 5).map(float), "mark": st.integers(0, 3)}
    ),
    min_size=1,
    max_size=20,
)


@given(rows=ROWS, as_csv=st.booleans())
@settings(max_examples=40)
def test_rows_anywhere_are_grouped_as_by_a_loop(folder: Path, rows: list[dict], as_csv: bool) -> None:
    table = pa.Table.from_pylist(rows)
    path = folder / "rows"
    if as_csv:
        lines = [f"{row['id']};{row['time']};{row['mark']}" for row in rows]
        path.write_text("\n".join(["id;time;mark", *lines]))
    else:
        pq.write_table(table, path)
    back = read(path, validate=False)
    expected = group_events(rows)
    assert back.ids.to_pylist() == list(expected)
    assert [list(zip(t, x, strict=True)) for t, x in back.to_lists()] == list(expected.values())


def test_a_map_names_the_columns(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("klant|moment|soort|kleur\n007|1.5|open|r\n007|2|dicht|g\n8|0|open|r\n")
    with pytest.raises(
        DataError,
        match=r"a.csv: no column for id, time and mark; say --column id=... --column time=... --column "
        r"mark=..., in Python columns={'id': ..., 'time': ..., 'mark': ...} .*; columns found: klant",
    ):
        read(tmp_path / "a.csv")
    back = read(tmp_path / "a.csv", columns={"id": "klant", "time": "moment", "mark": "soort"}, time_unit="days")
    assert back == EventSequences.from_lists(
        [([1.5, 2.0], [1, 0]), ([0.0], [1])],
        ids=["007", "8"],
        metadata={"kleur": pa.array([["r", "g"], ["r"]])},
        mark_names=["dicht", "open"],
        time_unit="days",
    )


def test_datetimes_become_seconds(tmp_path: Path) -> None:
    for first, second in (("2024-02-29", "2024-03-01"), ("2024-02-29T00:00:00Z", "2024-03-01 01:00:00+01:00")):
        (tmp_path / "a.csv").write_text(f"id,time,mark\na,{first},0\na,{second},1\n")
        back = read(tmp_path / "a.csv")
        assert back.times.tolist() == [1709164800.0, 1709251200.0]
        assert back.time_unit == "seconds"
    pq.write_table(
        pa.table({"id": [1, 1], "timestamp": pa.array([0, 86_400_000], pa.timestamp("ms")), "mark": [0, 0]}),
        tmp_path / "a.parquet",
    )
    assert read(tmp_path / "a.parquet").times.tolist() == [0.0, 86400.0]


def test_a_sequence_longer_than_a_block_is_scanned_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csv_table, "BLOCK", 128)
    lines = ["a,0,1", *(f"b,{i},0" for i in range(200)), "c,1,1", "c,2,0"]
    (tmp_path / "a.csv").write_text("\n".join(["id,time,mark", *lines]))
    parts = list(scan(tmp_path / "a.csv"))
    assert [len(s) for part in parts for s in part] == [1, 200, 2]


def test_a_scan_needs_the_rows_of_a_sequence_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csv_table, "BLOCK", 64)
    lines = [f"{'ab'[i % 2]},{i},0" for i in range(40)]
    (tmp_path / "a.csv").write_text("\n".join(["id,time,mark", *lines]))
    with pytest.raises(DataError, match=r"a.csv: sequence [ab]: its rows are not contiguous; sort the table by id"):
        list(scan(tmp_path / "a.csv"))
    assert read(tmp_path / "a.csv").lengths.tolist() == [20, 20]


def test_columns_of_the_sequence_and_of_the_event(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(
        "id,time,mark,group,start,amount,city\na,1,0,g,0,5,x\na,2,0,g,0,6,x\nb,1,1,,0.5,7,\n"
    )
    back = read(tmp_path / "a.csv")
    assert back == EventSequences.from_lists(
        [([1, 2], [0, 0]), ([1], [1])],
        ids=["a", "b"],
        starts=[0.0, 0.5],
        groups=["g", None],
        metadata={"amount": pa.array([[5, 6], [7]]), "city": ["x", None]},
    )
    (tmp_path / "a.csv").write_text("id,time,mark,start\na,1,0,0\na,2,0,1\n")
    message = r"sequence a: event 1: start is 1 here but 0 before; .*columns={'start': None}"
    with pytest.raises(DataError, match=message):
        read(tmp_path / "a.csv")
    assert read(tmp_path / "a.csv", columns={"start": None}).starts is None


def test_a_table_without_ids_is_one_sequence(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("t,type\n1,x\n2,y\n")
    back = read(tmp_path / "a.csv", columns={"id": None})
    assert back == EventSequences.from_lists([([1, 2], [0, 1])], ids=["0"], mark_names=["x", "y"])
    with pytest.raises(DataError, match="a table without ids is one sequence; read it whole"):
        list(scan(tmp_path / "a.csv", columns={"id": None}))


def test_a_unit_other_than_seconds_does_not_fit_datetimes(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id,time,mark\na,2024-02-29,0\n")
    times = pa.array([[0, 86_400]], pa.list_(pa.timestamp("s")))
    pq.write_table(pa.table({"id": ["a"], "times": times, "marks": [[0, 0]]}), tmp_path / "a.parquet")
    pq.write_table(pa.table({"id": ["a", "a"], "time": times.flatten(), "mark": [0, 0]}), tmp_path / "b.parquet")
    for name in ("a.csv", "a.parquet", "b.parquet"):
        with pytest.raises(DataError, match=rf"{name}: times are datetimes and read as seconds, not 'days'; leave out"):
            read(tmp_path / name, time_unit="days")
        assert read(tmp_path / name, time_unit="seconds").time_unit == "seconds"


@pytest.mark.parametrize("format", ["long-csv", "long-parquet", "canonical", "easytpp-jsonl"])
def test_what_is_missing_can_be_looked_at_and_repaired(tmp_path: Path, format: str) -> None:
    path = tmp_path / "a"
    if format == "long-csv":
        path.write_text("id,time,mark\na,,x\na,2,y\nb,3,\nb,5,x\n,4,x\n")
    elif format == "long-parquet":
        times, marks = pa.array([None, 2, 3, 5, 4], pa.int16()), ["x", "y", None, "x", "x"]
        pq.write_table(pa.table({"id": ["a", "a", "b", "b", None], "time": times, "mark": marks}), path)
    else:
        rows = {"id": ["a", "b", "c"], "times": [[None, 2], [3, 5], None], "marks": [["x", "y"], [None, "x"], None]}
        if format == "canonical":
            pq.write_table(pa.table(rows), path)
        else:
            names = {"id": "seq_idx", "times": "time_since_start", "marks": "type_event"}
            lines = pa.table(rows).rename_columns(list(names.values())).to_pylist()
            path.write_text("\n".join(map(json.dumps, lines)) + "\n")
    with pytest.raises(DataError, match="has no 'id'" if "long" in format else "is null|no times"):
        read(path)
    loose = read(path, validate=False)
    assert (loose.marks.tolist()[:4], str(loose.times[0])) == ([0, 1, -1, 0], "nan")
    mended, _ = repair(loose, "drop")
    assert (mended.validate().to_lists(), mended.mark_names) == ([([2.0], [1]), ([5.0], [0])], ("x", "y"))
    if format != "easytpp-jsonl":
        assert EventSequences.concat(scan(path, validate=False)) == loose


def test_columns_that_are_called_like_roles_are_kept(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(
        "id,user,time,times,mark,marks,start,begin,file_id\n1,a,5,6,0,7,8,2,x\n2,a,6,6,0,7,8,2,x\n"
    )
    columns = {"id": "user", "start": "begin"}
    expected = EventSequences.from_lists(
        [([5.0, 6.0], [0, 0])],
        ids=["a"],
        starts=[2.0],
        metadata={"file_id_": [[1, 2]], "file_times": [6], "file_marks": [7], "file_start": [8], "file_id": ["x"]},
    )
    for back in (read(tmp_path / "a.csv", columns=columns), *scan(tmp_path / "a.csv", columns=columns)):
        assert set(back.table.column_names) == set(expected.table.column_names)
        assert all(
            back.column(name).to_pylist() == expected.column(name).to_pylist() for name in back.table.column_names
        )
    table = pa.table({"id": [1], "user": ["a"], "times": [[1.0]], "when": [[5.0]], "marks": [[0]], "group": ["g"]})
    pq.write_table(table.append_column("label", pa.array(["h"])), tmp_path / "a")
    back = read(tmp_path / "a", columns={"id": "user", "time": "when", "group": "label"}, format="canonical")
    assert back[0].metadata == {"file_id": 1, "file_times": [1.0], "file_group": "g"}
    assert (back[0].id, back[0].group, back.times.tolist()) == ("a", "h", [5.0])


def test_a_map_is_not_misled_by_how_another_column_lies(tmp_path: Path) -> None:
    """The file says that `group` has a value a sequence; that `kind`, which shall be the group, has not."""
    batch = EventSequences.from_lists([([1.0, 2.0], [0, 0])], groups=["g"], metadata={"kind": [["p", "q"]]})
    write(batch, tmp_path / "a", "long-parquet")
    with pytest.raises(DataError, match="group is 'q' here but 'p' before"):
        read(tmp_path / "a", columns={"group": "kind"})


def test_lists_that_are_not_of_events_survive_in_parquet_only(tmp_path: Path) -> None:
    batch = EventSequences.from_lists(
        [([0.0, 1.0], [0, 1]), ([2.0], [0])],
        metadata={"tags": [["x"], ["y", "z"]], "amount": pa.array([[1, 2], [3]], pa.list_(pa.int16()))},
    )
    write(batch, tmp_path / "a.parquet", "long-parquet")
    back = read(tmp_path / "a.parquet")
    assert back == batch
    assert back.column("amount").type == pa.list_(pa.int16())
    with pytest.warns(LossWarning, match=r"nested columns \(tags\)"):
        write(batch, tmp_path / "a.csv")
    assert read(tmp_path / "a.csv").column("amount").to_pylist() == [[1, 2], [3]]


def test_records_of_other_tools_become_lists(tmp_path: Path) -> None:
    table = pa.table({"id": ["a", "a"], "time": [1.0, 2.0], "mark": [0, 1], "record": [{"x": 1}, {"x": 1}]})
    pq.write_table(table, tmp_path / "a.parquet")
    assert read(tmp_path / "a.parquet").column("record").to_pylist() == [[{"x": 1}, {"x": 1}]]
