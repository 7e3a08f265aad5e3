"""Long tables as CSV: types, dates, quotes, compression, and errors that name the line."""

from __future__ import annotations

import gzip
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings

from naive.readers import read_long_csv
from neuroseqret.data.sequences import EventSequences
from neuroseqret.errors import DataError
from neuroseqret.readers import read, scan, write
from neuroseqret.readers.engines import csv_table
from neuroseqret.readers.engines.formulas import restored_name
from neuroseqret.readers.formats import long_csv
from strategies import event_sequences


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("long")


@given(batch=event_sequences(min_sequences=1, windows=False, groups=False, metadata=False, limit=1e300))
@settings(max_examples=25)
def test_what_is_written_as_csv_is_csv(folder: Path, batch: EventSequences) -> None:
    long_csv.write(batch, folder / "a.csv")
    expected = [list(zip(t, x, strict=True)) for t, x in batch.to_lists()]
    found = {restored_name(id): events for id, events in read_long_csv(folder / "a.csv").items()}
    assert found == dict(zip(batch.ids.to_pylist(), expected, strict=True))


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
    monkeypatch.setattr(csv_table, "BLOCK", 256)
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
        ("id,time,mark\na,1,0\na,,0\n", r"sequence a: event 1: time \(time\) is empty"),
        ("id,time,mark\na,1,0\na,2,\n", r"sequence a: event 1: mark \(mark\) is empty"),
        ("id,time,mark\na,2,0\na,1,0\n", "sequence a: event 1: time 1 is before"),
        ("id,time,mark\na,1,-1\n", "sequence a: event 0: mark is -1"),
        ("id,time,mark\na,1,0,5\n", "not readable as CSV .*Expected 3 columns, got 4"),
        ("id,time,mark,mark\na,1,0,0\n", "two columns are called 'mark'"),
        ("1,2,0\n1,3,0\n", "the first line is not a header; name the columns in the first line"),
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
    monkeypatch.setattr(csv_table, "BLOCK", 64)
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


def test_a_header_with_any_names_comes_back(tmp_path: Path) -> None:
    batch = EventSequences.from_lists([([1.0], [0])], metadata={"a,b,c,d,e": ["x"], 'new\nline;"': ["y"]})
    for name in ("a.tsv", "a.csv"):
        write(batch, tmp_path / name)
        assert read(tmp_path / name) == batch


def test_a_header_alone_is_no_sequences(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id,time,mark\n")
    assert len(read(tmp_path / "a.csv")) == 0


@pytest.mark.parametrize("before", [b"\n\n", b"\r\n", b"\xef\xbb\xbf\r\n\r\n"])
def test_blank_lines_before_the_header(tmp_path: Path, before: bytes) -> None:
    (tmp_path / "a.csv").write_bytes(before + b"id,time,mark\r\na,1,x\r\n\r\na,2,y\r\n")
    assert read(tmp_path / "a.csv").to_lists() == [([1.0, 2.0], [0, 1])]
