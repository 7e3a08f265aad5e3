"""Long tables, CSV and Parquet: against a loop over rows, with other people's columns, and what is refused."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from naive.readers import group_events, read_long_csv
from neuroseqret.data.repair import repair
from neuroseqret.data.sequences import EventSequences
from neuroseqret.errors import DataError
from neuroseqret.readers import LossWarning, read, scan, write
from neuroseqret.readers.formats import long_csv
from strategies import event_sequences


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


@given(batch=event_sequences(min_sequences=1, windows=False, groups=False, metadata=False, limit=1e300))
@settings(max_examples=25)
def test_what_is_written_as_csv_is_csv(folder: Path, batch: EventSequences) -> None:
    long_csv.write(batch, folder / "a.csv")
    expected = [list(zip(t, x, strict=True)) for t, x in batch.to_lists()]
    assert read_long_csv(folder / "a.csv") == dict(zip(batch.ids.to_pylist(), expected, strict=True))


def test_a_map_names_the_columns(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("klant|moment|soort|kleur\n007|1.5|open|r\n007|2|dicht|g\n8|0|open|r\n")
    with pytest.raises(
        DataError,
        match=r"a.csv: no column for the id; say '.*--column id=...', .* columns={'id': ...}; columns found: klant",
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


def test_whole_numbers_are_marks_and_mixed_ones_are_names(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id,time,mark\na,1,10\na,2,9\n")
    back = read(tmp_path / "a.csv")
    assert (back.marks.tolist(), back.mark_names) == ([10, 9], None)
    (tmp_path / "a.csv").write_text("id,time,mark\na,1,10\na,2,x\n")
    back = read(tmp_path / "a.csv")
    assert (back.marks.tolist(), back.mark_names) == ([0, 1], ("10", "x"))
    (tmp_path / "a.csv").write_text("id,time,mark\na,1,10.0\na,2,2.0\n")
    assert read(tmp_path / "a.csv").marks.tolist() == [10, 2]


def test_types_are_told_by_all_values_not_the_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(long_csv, "BLOCK", 256)
    lines = [f"s{i},{i},m{i % 3},{i},{'x' if i == 99 else i}" for i in range(100)]
    lines[50] = "s50,50.25,m2,50.5,50"
    (tmp_path / "a.csv").write_text("\n".join(["id,time,mark,size,note", *lines]) + "\n")
    back = read(tmp_path / "a.csv")
    assert back.times[50] == 50.25
    assert back.column("size").type == pa.float64()
    assert back.column("note").to_pylist()[98:] == ["98", "x"]
    parts = list(scan(tmp_path / "a.csv", 7))
    assert len(parts) > 10
    assert EventSequences.concat(parts) == back


def test_codes_made_of_digits_stay_as_written(tmp_path: Path) -> None:
    text = "id,time,mark,postcode,card,price\na,1,0,01234,1234567890123456789,10\nb,2,1,56789,1,2.50\n"
    (tmp_path / "a.csv").write_text(text)
    back = read(tmp_path / "a.csv")
    assert back.column("postcode").to_pylist() == ["01234", "56789"]
    assert back.column("card").to_pylist() == ["1234567890123456789", "1"]
    assert back.column("price").to_pylist() == [10.0, 2.5]


def test_a_sequence_longer_than_a_block_is_scanned_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(long_csv, "BLOCK", 128)
    lines = ["a,0,1", *(f"b,{i},0" for i in range(200)), "c,1,1", "c,2,0"]
    (tmp_path / "a.csv").write_text("\n".join(["id,time,mark", *lines]))
    parts = list(scan(tmp_path / "a.csv"))
    assert [len(s) for part in parts for s in part] == [1, 200, 2]


def test_a_scan_needs_the_rows_of_a_sequence_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(long_csv, "BLOCK", 64)
    lines = [f"{'ab'[i % 2]},{i},0" for i in range(40)]
    (tmp_path / "a.csv").write_text("\n".join(["id,time,mark", *lines]))
    with pytest.raises(DataError, match=r"a.csv: sequence [ab]: its rows do not lie together; sort the table by id"):
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
    message = r"sequence a: event 1: start is 1 here and 0 before; .*columns={'start': None}"
    with pytest.raises(DataError, match=message):
        read(tmp_path / "a.csv")
    assert read(tmp_path / "a.csv", columns={"start": None}).starts is None


def test_a_table_without_ids_is_one_sequence(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("t,type\n1,x\n2,y\n")
    back = read(tmp_path / "a.csv", columns={"id": None})
    assert back == EventSequences.from_lists([([1, 2], [0, 1])], ids=["0"], mark_names=["x", "y"])
    with pytest.raises(DataError, match="a table without ids is one sequence; read it whole"):
        list(scan(tmp_path / "a.csv", columns={"id": None}))


def test_compressed_and_tabbed(tmp_path: Path) -> None:
    batch = EventSequences.from_lists([([0.0, 1.0], [0, 1])], ids=["a,b"])
    write(batch, tmp_path / "a.tsv")
    text = (tmp_path / "a.tsv").read_bytes()
    assert text.splitlines()[0].count(b"\t") == 2
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(text))
    assert read(tmp_path / "a.tsv") == read(tmp_path / "a.csv.gz") == batch
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(text)[:-12])
    with pytest.raises(DataError, match=r"a.csv.gz"):
        read(tmp_path / "a.csv.gz")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("id,time,mark\na,1,0\na,x,0\n", "not readable as CSV .*invalid value 'x'"),
        ("id,time,mark\na,1,0\n,2,0\n", "line 3 has no 'id'; give every event the id of its sequence"),
        ('id,time,mark\n\na,1,"x\ny"\n,2,0\n', "line 5 has no 'id'"),
        ('id,time,mark\n\na,1,"x\ny"\na,z,0\n', "column 'time': line 5: .*invalid value 'z'"),
        ('id,time,mark\n\na,1,"x\ny"\na,2,0,4\n', "line 5: Expected 3 columns, got 4"),
        ('id,time,mark\na,1,x\na,2,"y\na,3,x\na,4,z\n', "line 3: a quote opens here and is never closed; close or"),
        ('id,time,mark\na,1,5" pipe\na,2,"y\na,3,x\n', "line 3: a quote opens here and is never closed"),
        ('id,time,mark\na,1,"x\nx"\na,2,"y""', "line 4: a quote opens here and is never closed"),
        ('id,time,mark\n"a,1,x\na,2,y\n', "line 2: a quote opens here and is never closed"),
        ('id,time,"mark\na,1,x\na,2,y\n', "line 1: a quote opens here and is never closed"),
        (
            "id,time,mark\na,1,x\na,1700000000123456789,x\n",
            r"line 3: time \(time\) does not fit a float64 \(17000000001",
        ),
        ("id,time,mark\na,9007199254740993,x\n", r"does not fit a float64 \(9007199254740993\); convert it to seconds"),
        ("id,time,mark,start\na,10,x,2024-01-01\n", "'start' is string, not a number or a datetime"),
        ("id,time,mark\na,1,0\na,,0\n", r"sequence a: event 1: time \(time\) is null"),
        ("id,time,mark\na,1,0\na,2,\n", r"sequence a: event 1: mark \(mark\) is null"),
        ("id,time,mark\na,2,0\na,1,0\n", "sequence a: event 1: time 1 is before"),
        ("id,time,mark\na,1,-1\n", "sequence a: event 0: mark is -1"),
        ("id,time,mark\na,1,0,5\n", "not readable as CSV .*Expected 3 columns, got 4"),
        ("id,time,mark,mark\na,1,0,0\n", "two columns are called 'mark'"),
        ("1,2,0\n1,3,0\n", "the first line is not a header; name the columns there"),
        ("B00005,AH2IFH,5.0,1005177600\n", "the first line is not a header"),
        ("id,time,mark\na,yesterday,0\n", "not readable as CSV .*yesterday.*write dates as 2024-03-01 or"),
    ],
)
def test_what_is_refused(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "a.csv").write_text(text)
    with pytest.raises(DataError, match=rf"a\.csv: .*{message}") as caught:
        read(tmp_path / "a.csv", format="long-csv")
    assert "\n" not in str(caught.value)


def test_a_scan_names_lines_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(long_csv, "BLOCK", 64)
    lines = ["id,time,mark", *(f"s{i},1,0" for i in range(40))]
    for change, message in (
        (",2,0", "line 32 has no 'id'"),
        ('s31,1,"x', "line 32: a quote opens here and is never closed"),
        ("s31,-9007199254740993,0", r"line 32: time \(time\) does not fit a float64"),
    ):
        (tmp_path / "a.csv").write_text("\n".join([*lines[:31], change, *lines[32:]]))
        with pytest.raises(DataError, match=rf"a\.csv: {message}"):
            list(scan(tmp_path / "a.csv"))


def test_quotes_that_are_closed_do_no_harm(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text('id,time,mark\na,1,"x ""y"", z"\na,2,5" pipe\na,3,"end\n"\n')
    assert read(tmp_path / "a.csv").mark_names == ('5" pipe', "end\n", 'x "y", z')


def test_large_times_that_a_float_holds_are_read(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id,time,mark\na, 1152921504606846976,0\na,1.7000000001234568e+18,0\na,1e300,0\n")
    assert read(tmp_path / "a.csv").times.tolist() == [2.0**60, 1700000000123456789.0, 1e300]


def test_the_first_time_that_is_there_tells_the_type(tmp_path: Path) -> None:
    for text in (
        'note,id,time,mark\n"hello\nworld",a,2024-02-29,0\nx,a,2024-03-01,1\n',
        '"a\nnote",id,time,mark\n1,a,2024-02-29,0\n2,a,2024-03-01,1\n',
        '"a,b;c\td|e,f,g,h";id;time;mark\n1;a;2024-02-29;0\n2;a;2024-03-01;1\n',
    ):
        (tmp_path / "a.csv").write_text(text)
        assert read(tmp_path / "a.csv").times.tolist() == [1709164800.0, 1709251200.0]
    (tmp_path / "a.csv").write_text("id,time,mark\na,,0\na,2024-02-29,0\n")
    assert str(read(tmp_path / "a.csv", validate=False).times.tolist()) == "[nan, 1709164800.0]"


def test_windows_of_datetimes(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(
        "id,time,mark,start,end\na,2024-02-29 12:00,0,2024-02-29,\nb,2024-03-01,1,,2024-03-02\n"
    )
    back = read(tmp_path / "a.csv")
    assert back.column("start").to_pylist() == [1709164800.0, None]
    assert back.column("end").to_pylist() == [None, 1709337600.0]


def test_a_unit_other_than_seconds_does_not_fit_datetimes(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id,time,mark\na,2024-02-29,0\n")
    times = pa.array([[0, 86_400]], pa.list_(pa.timestamp("s")))
    pq.write_table(pa.table({"id": ["a"], "times": times, "marks": [[0, 0]]}), tmp_path / "a.parquet")
    pq.write_table(pa.table({"id": ["a", "a"], "time": times.flatten(), "mark": [0, 0]}), tmp_path / "b.parquet")
    for name in ("a.csv", "a.parquet", "b.parquet"):
        with pytest.raises(DataError, match=rf"{name}: times are datetimes and read as seconds, not 'days'; leave out"):
            read(tmp_path / name, time_unit="days")
        assert read(tmp_path / name, time_unit="seconds").time_unit == "seconds"


def test_a_header_with_any_names_comes_back(tmp_path: Path) -> None:
    batch = EventSequences.from_lists([([1.0], [0])], metadata={"a,b,c,d,e": ["x"], 'new\nline;"': ["y"]})
    for name in ("a.tsv", "a.csv"):
        write(batch, tmp_path / name)
        assert read(tmp_path / name) == batch


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
    with pytest.raises(DataError, match="group is 'q' here and 'p' before"):
        read(tmp_path / "a", columns={"group": "kind"})


def test_a_header_alone_is_no_sequences(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id,time,mark\n")
    assert len(read(tmp_path / "a.csv")) == 0


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


@pytest.mark.parametrize("before", [b"\n\n", b"\r\n", b"\xef\xbb\xbf\r\n\r\n"])
def test_blank_lines_before_the_header(tmp_path: Path, before: bytes) -> None:
    (tmp_path / "a.csv").write_bytes(before + b"id,time,mark\r\na,1,x\r\n\r\na,2,y\r\n")
    assert read(tmp_path / "a.csv").to_lists() == [([1.0, 2.0], [0, 1])]
