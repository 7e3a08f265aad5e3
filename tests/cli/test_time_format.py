"""Dates that are not written as ISO 8601 says, in every command that reads sequences."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cli.calling import call
from neuroseqret.errors import UserError
from neuroseqret.readers import read, scan

NINE = 1709284440.0  # 2024-03-01 09:14 UTC


@pytest.mark.parametrize(
    ("written", "texts"),
    [
        ("%d.%m.%Y %H:%M", ["01.03.2024 09:14", "01.03.2024 09:15"]),
        ("%m/%d/%Y %I:%M %p", ["03/01/2024 09:14 AM", "03/01/2024 09:15 AM"]),
        ("%d/%m/%Y %H:%M:%S.%f", ["01/03/2024 09:14:00.000", "01/03/2024 09:15:00.000"]),
        ("%d %b %Y %H:%M %z", ["01 Mar 2024 10:14 +0100", "01 Mar 2024 10:15 +0100"]),
    ],
)
def test_dates_are_read_as_the_format_says(tmp_path: Path, written: str, texts: list[str]) -> None:
    csv, parquet = tmp_path / "a.csv", tmp_path / "a.parquet"
    csv.write_text("id,time,mark\n" + "".join(f"a,{text},x\n" for text in texts))
    pq.write_table(pa.table({"id": ["a", "a"], "time": texts, "mark": ["x", "x"]}), parquet)
    for file in (csv, parquet):
        found = read(file, time_format=written)
        assert found[0].times.tolist() == [NINE, NINE + 60]
        assert found.time_unit == "seconds"
        assert [part[0].times.tolist() for part in scan(file, time_format=written)] == [[NINE, NINE + 60]]


def test_what_does_not_fit_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id,time,mark\na,01.03.2024,x\na,2024-03-02,x\n")
    for written in ("%d.%m.%Y", "%d.%m.%Y%z"):
        with pytest.raises(UserError, match=r"a\.csv: line [23]: column 'time' is '.*', not written as '%d"):
            read(tmp_path / "a.csv", time_format=written)
    with pytest.raises(UserError, match=r"write it with codes such as %d\.%m\.%Y"):
        read(tmp_path / "a.csv", time_format="dd.mm.yyyy")
    done = call("data", "info", str(tmp_path / "a.csv"))
    assert "say how they are written, for example --time-format '%d.%m.%Y %H:%M'" in done.stderr


def test_a_format_for_numbers_is_refused(searchable: Path) -> None:
    with pytest.raises(UserError, match="times of the format canonical are numbers; leave out the time format"):
        read(searchable / "data" / "corpus.parquet", time_format="%d.%m.%Y")


def test_every_command_takes_columns_and_a_time_format(searchable: Path, tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    names = read(searchable / "data" / "corpus.parquet").mark_names or ["0", "1"]
    file.write_text(f"who,when,what\na,01.03.2024 09:14,{names[0]}\na,01.03.2024 09:15,{names[1]}\n")
    columns = ["--column", "id=who", "--column", "time=when", "--column", "mark=what"]
    options = [*columns, "--time-format", "%d.%m.%Y %H:%M"]
    model, index = str(searchable / "model"), str(tmp_path / "index")
    for words in (
        ["index", "create", model, str(file), "--out", index],
        ["index", "add", index, str(file)],
        ["search", index, str(file), "-k", "1"],
        ["embed", model, str(file), "--out", str(tmp_path / "e.parquet")],
        ["data", "convert", str(file), str(tmp_path / "b.parquet")],
    ):
        done = call(*words, *options)
        assert done.returncode == 0, done.stderr
