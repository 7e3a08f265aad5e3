"""Data frames and Arrow tables: read as the same data in a file is, in both shapes, and what is refused."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings

import neuroseqret as nsr
from neuroseqret.data.repair import repair
from neuroseqret.data.sequences import EventSequences
from neuroseqret.errors import DataError, UserError
from neuroseqret.readers import write
from neuroseqret.readers.engines.long_table import explode
from strategies import event_sequences

#: Every kind of frame, out of columns.
KINDS = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "arrow": pa.table}
frames = pytest.mark.parametrize("frame", KINDS.values(), ids=list(KINDS))

LOG = {
    "who": ["007", "007", "8"],
    "at": ["2024-02-29", "2024-03-01 00:00:00.25", "2024-02-29"],
    "what": ["open", "shut", "open"],
    "group": ["g", "g", "h"],
    "amount": [1.5, 2.5, 3.5],
}
MAP = {"id": "who", "time": "at", "mark": "what"}


@frames
def test_a_row_an_event_is_read_as_from_csv(frame: Any, tmp_path: Path) -> None:
    rows = zip(*LOG.values(), strict=True)
    (tmp_path / "a.csv").write_text("\n".join([",".join(LOG), *(",".join(map(str, row)) for row in rows)]))
    back = nsr.read(frame(LOG), columns=MAP)
    assert back == nsr.read(tmp_path / "a.csv", columns=MAP)
    assert back.times.tolist() == [1709164800.0, 1709251200.25, 1709164800.0]
    assert (back.mark_names, back.time_unit) == (("open", "shut"), "seconds")


@frames
def test_a_row_a_sequence(frame: Any) -> None:
    lists = {"id": ["a", "b"], "times": [[0.0, 1.5], [2.0]], "marks": [["x", "y"], ["y"]], "city": ["r", "s"]}
    expected = EventSequences.from_lists(
        [([0.0, 1.5], [0, 1]), ([2.0], [1])], ids=["a", "b"], mark_names=["x", "y"], metadata={"city": ["r", "s"]}
    )
    assert nsr.read(frame(lists)) == expected
    renamed = {"who": lists["id"], "when": lists["times"], "what": lists["marks"], "city": lists["city"]}
    assert nsr.read(frame(renamed), columns={"id": "who", "time": "when", "mark": "what"}) == expected
    hotpp = {"id": lists["id"], "timestamps": lists["times"], "labels": lists["marks"], "city": lists["city"]}
    assert nsr.read(frame(hotpp)) == expected


@given(batch=event_sequences(min_sequences=1))
@settings(max_examples=25)
def test_what_was_given_away_comes_back(batch: EventSequences) -> None:
    assert nsr.read(batch.to_arrow()) == batch
    meaning = {"mark_names": batch.mark_names, "time_unit": batch.time_unit}
    if not batch.metadata.column_names:  # other columns have types of their own in a data frame
        assert nsr.read(batch.to_pandas()) == batch
        assert nsr.read(batch.to_polars(), **meaning) == batch


@given(batch=event_sequences(min_sequences=1, metadata=False))
@settings(max_examples=25)
def test_long_tables_as_from_parquet(batch: EventSequences, tmp_path_factory: pytest.TempPathFactory) -> None:
    table, _ = explode(batch, {"times": "time", "marks": "mark"}, lists=False)
    path = tmp_path_factory.getbasetemp() / "long.parquet"
    pq.write_table(table, path)
    expected = nsr.read(path)
    assert nsr.read(table) == nsr.read(table.to_pandas()) == nsr.read(pl.DataFrame(pl.from_arrow(table))) == expected


@frames
def test_flaws_are_found_and_repaired_as_in_files(frame: Any) -> None:
    data = frame({"id": ["a", "a", "a"], "time": [2.0, 1.0, None], "mark": [0, 1, 0]})
    with pytest.raises(DataError, match=r"^the frame: sequence a: event 2: time \(time\) is empty; drop the event or"):
        nsr.read(data)
    mended, report = repair(nsr.read(data, validate=False), ["drop", "sort"])
    assert mended == EventSequences.from_lists([([1.0, 2.0], [1, 0])], ids=["a"])
    assert report.changes["events dropped"] == 1
    with pytest.raises(DataError, match=r"^the frame: sequence a: event 1: time 1 is before the previous event's 2"):
        nsr.read(frame({"id": ["a", "a"], "time": [2.0, 1.0], "mark": [0, 1]}))


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"time": [1.0], "mark": [0]}, "the frame: no column for id; say .* columns found: time, mark"),
        (
            {"id": ["a"], "time": ["soon"], "mark": [0]},
            "the frame: row 0: column 'time' is 'soon', not a date; write dates as",
        ),
        (
            {"id": ["a", "a"], "time": ["2024-01-01", "1.1.24"], "mark": [0, 0]},
            "the frame: row 1: column 'time' is '1.1.24', not a date like the first one; write dates as 2024-03-01",
        ),
        ({"id": ["a"], "time": ["1.5"], "mark": [0]}, r"the frame: time \(time\) is (large_)?string, not a number"),
        ({"id": ["a", None], "time": [1.0, 2.0], "mark": [0, 0]}, "the frame: row 1 has no 'id'; give every event"),
        ({"id": ["a"], "time": [1.0], "mark": [0.5]}, r"the frame: sequence a: event 0: mark \(mark\) 0.5 is not"),
        ({"id": ["a"], "times": [[1.0, 2.0]], "marks": [[0]]}, "the frame: sequence a: 2 times but 1 marks"),
        ({"id": ["a", "a"], "times": [[1.0], [2.0]], "marks": [[0], [1]]}, "the frame: sequence a: the id occurs more"),
    ],
)
@frames
def test_a_mistake_is_one_line_about_the_frame(frame: Any, columns: dict[str, list], message: str) -> None:
    with pytest.raises(DataError, match=f"^{message}") as caught:
        nsr.read(frame(columns))
    assert "\n" not in str(caught.value)


def test_columns_that_have_no_one_type_are_named() -> None:
    with pytest.raises(DataError, match=r"^the frame: not readable as a table \(.*column id with type object\); give"):
        nsr.read(pd.DataFrame({"id": ["a", 1], "time": [1.0, 2.0], "mark": [0, 0]}))
    twice = pd.DataFrame([["a", 1.0, 0, 0]], columns=["id", "time", "mark", "mark"])
    with pytest.raises(DataError, match=r"^the frame: not readable as a table \(Duplicate column names"):
        nsr.read(twice)


def test_the_named_index_of_pandas_is_a_column() -> None:
    frame = pd.DataFrame({"id": ["a", "a", "b"], "time": [1.0, 2.0, 3.0], "mark": [0, 1, 0]})
    expected = nsr.read(frame)
    assert nsr.read(frame.set_index("id")) == expected
    assert nsr.read(frame.set_index(["id", "time"])) == expected
    assert nsr.read(frame.set_index("id", drop=False)) == expected
    assert nsr.read(frame[frame["mark"] >= 0].set_index(pd.Index([7, 5, 3]))) == expected


def test_types_of_pandas_and_polars() -> None:
    when = pd.to_datetime(["2024-02-29", "2024-03-01", "2024-03-02"], utc=True)
    frame = pd.DataFrame({"id": [1, 1, 2], "time": when, "mark": pd.Categorical(["x", "y", "x"], ["z", "y", "x"])})
    back = nsr.read(frame)
    assert back.times.tolist() == [1709164800.0, 1709251200.0, 1709337600.0]
    assert (back.ids.to_pylist(), back.marks.tolist(), back.mark_names) == (["1", "2"], [0, 1, 0], ("x", "y"))
    assert nsr.read(pl.from_pandas(frame)) == back
    numbers = frame.assign(mark=pd.Categorical([5, 7, 5]), time=pd.to_timedelta([0, 1500, 2000], "ms"))
    back = nsr.read(numbers)
    assert (back.marks.tolist(), back.times.tolist(), back.time_unit) == ([5, 7, 5], [0.0, 1.5, 2.0], "seconds")
    nullable = frame.assign(mark=pd.array([1, None, 2], "Int64"))
    assert nsr.read(nullable, validate=False).marks.tolist() == [1, -1, 2]


def test_meaning_given_wins() -> None:
    batch = EventSequences.from_lists([([0.0, 1.0], [0, 1])], mark_names=["x", "y"], time_unit="days")
    assert nsr.read(batch.to_pandas()) == batch
    back = nsr.read(batch.to_pandas(), mark_names=["p", "q"], time_unit="hours")
    assert (back.mark_names, back.time_unit) == (("p", "q"), "hours")


def test_tables_in_many_chunks(tmp_path: Path) -> None:
    batch = EventSequences.from_lists([([0.0, 1.0], [0, 1]), ([2.0], [1])], ids=["a", "b"], groups=["g", "h"])
    whole = batch.to_arrow()
    assert nsr.read(pa.concat_tables([whole.slice(1), whole.slice(0, 1)])) == batch[[1, 0]]
    assert len(nsr.read(whole.slice(0, 0))) == 0
    write(batch, tmp_path / "long.parquet", "long-parquet")
    long = pq.read_table(tmp_path / "long.parquet")
    assert nsr.read(pa.concat_tables([long.slice(0, 1), long.slice(1)])) == batch
    assert len(nsr.read(long.slice(0, 0))) == 0


def test_what_is_neither_a_path_nor_a_frame() -> None:
    with pytest.raises(UserError, match=r"read takes a path, a data frame of pandas or polars, .*, not list; for"):
        nsr.read([([0.0], [1])])  # type: ignore[arg-type]
    with pytest.raises(UserError, match="the frame: 'long-csv' is a file format; leave out format"):
        nsr.read(pd.DataFrame({"id": ["a"], "time": [1.0], "mark": [0]}), format="long-csv")


def test_neither_pandas_nor_polars_is_needed(tmp_path: Path) -> None:
    for library in ("pandas", "polars"):
        (tmp_path / f"{library}.py").write_text("raise ImportError")
    code = (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n"
        "import pyarrow, neuroseqret\n"
        "print(len(neuroseqret.read(pyarrow.table({'id': ['a'], 'time': [1.0], 'mark': [0]}))))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.strip() == "1", done.stderr


def test_text_dates_in_parquet_too(tmp_path: Path) -> None:
    days = {"time": ["2024-02-29", "2024-03-01T00:00:00"], "end": ["2024-03-02"] * 2}
    pq.write_table(pa.table({"id": ["a", "a"], "mark": [0, 1], **days}), tmp_path / "a.parquet")
    back = nsr.read(tmp_path / "a.parquet")
    assert (back.times.tolist(), back.ends.tolist()) == ([1709164800.0, 1709251200.0], [1709337600.0])
    assert EventSequences.concat(nsr.scan(tmp_path / "a.parquet")) == back
    with pytest.raises(DataError, match="times are datetimes and read as seconds, not 'days'"):
        nsr.read(tmp_path / "a.parquet", time_unit="days")
