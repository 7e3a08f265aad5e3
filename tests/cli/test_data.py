"""`data info` and `data convert`, called as a user would."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cli.calling import call
from conftest import SETS
from neuroseqret.data.sequences import EventSequences
from neuroseqret.readers import read, write, write_folder
from simulated import simulate_retrieval


@pytest.fixture
def file(tmp_path: Path) -> Path:
    corpus, _ = simulate_retrieval(groups=3, per_group=4, seed=1)
    write(corpus.with_meaning(["a", "b [x]", "c", "d", "e"], "hours"), tmp_path / "corpus.parquet")
    return tmp_path / "corpus.parquet"


def test_info_tells_what_is_there(file: Path) -> None:
    done = call("data", "info", str(file))
    assert done.returncode == 0, done.stderr
    for words in ("corpus.parquet (canonical)", "12 sequences", "5 marks", "3 groups", "hours", "b [x]", "none found"):
        assert words in done.stdout


def test_info_reports_flaws_instead_of_refusing(tmp_path: Path) -> None:
    times = np.array([0.0, 2.0, 1.0])
    bad = EventSequences.from_arrays(times, [0, 1, 1], [0, 3], ids=["s1"], validate=False)
    write(bad, tmp_path / "bad.parquet")
    done = call("data", "info", str(tmp_path / "bad.parquet"))
    assert done.returncode == 0, done.stderr
    assert "time decreases, once; first: sequence s1: event 2" in " ".join(done.stdout.split())


def test_empty_cells_are_flaws_that_can_be_dropped(tmp_path: Path) -> None:
    source, target = tmp_path / "a.csv", tmp_path / "b.csv"
    source.write_text("id,time,mark\na,,x\na,2,\na,3,x\n")
    done = call("data", "info", str(source))
    printed = " ".join(done.stdout.split())
    assert done.returncode == 0, done.stderr
    assert "time not finite, once; first: sequence a: event 0" in printed
    assert "empty mark, once; first: sequence a: event 1: mark is empty; fill it in or repair with 'drop'" in printed
    assert "empty 1 33.3%" in printed
    done = call("data", "convert", str(source), str(target))
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    source.write_text("id,time,mark\na,1,x\na,2,\n")
    done = call("data", "convert", str(source), str(target))
    assert "sequence a: event 1: mark (mark) is empty; drop the event" in done.stderr
    source.write_text("id,time,mark\na,,x\na,2,\na,3,x\n")
    done = call("data", "convert", str(source), str(target), "--repair", "drop")
    assert done.returncode == 0, done.stderr
    assert "2 events dropped" in done.stderr
    assert read(target).to_lists() == [([3.0], [0])]


@pytest.mark.parametrize("times", ["1 nan", "nan 1", "nan", "1 inf", "-inf 1", "inf", "nan inf"])
def test_info_of_times_that_are_no_numbers(tmp_path: Path, times: str) -> None:
    (tmp_path / "bad.csv").write_text("id,time,mark\n" + "".join(f"a,{time},x\n" for time in times.split()))
    done = call("data", "info", str(tmp_path / "bad.csv"))
    assert done.returncode == 0, done.stderr
    assert "time not finite, once" in done.stdout or times == "nan inf"
    assert ("1 to 1" in done.stdout) == ("1" in times)


def test_info_of_a_folder_has_the_numbers_of_its_meta_file(shared_data: Path) -> None:
    for name in SETS:
        if name in ("soccer", "audio", "electricity"):  # large ones: the statistics' own test has them
            continue
        done = call("data", "info", str(shared_data / name))
        counts = json.loads((shared_data / name / "meta.json").read_text())["counts"]
        printed = " ".join(done.stdout.split())
        assert f"{counts['corpus']:,} in the corpus, {counts['queries']:,} queries" in printed
        assert f"{counts['events']:,} events, {counts['marks']} marks, {counts['groups']:,} groups" in printed
        assert f"min {counts['length_min']}, median {counts['length_median']:g}, max {counts['length_max']}" in printed
        assert f"{counts['relevant_per_query_mean']:.2f} relevant per query" in printed


def test_dates_are_shown_as_dates(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id,time,mark\ns,2024-03-01 09:14:07,x\ns,2024-03-02,x\n")
    printed = " ".join(call("data", "info", str(tmp_path / "a.csv")).stdout.split())
    assert "1709284447 to 1709337600, median window 14.8 h" in printed
    assert "2024-03-01 09:14:07 to 2024-03-02 UTC" in printed


def test_names_are_shown_as_they_are(tmp_path: Path) -> None:
    """Neither emoji codes nor markup in what is the user's."""
    (tmp_path / "a.csv").write_text("id,time,mark\ns,0,:on:\ns,1,p:star:q\ns,2,[bold]x[/bold]\ns,3,[/]\n")
    done = call("data", "info", str(tmp_path / "a.csv"))
    assert done.returncode == 0, done.stderr
    assert all(name in done.stdout for name in (":on:", "p:star:q", "[bold]x[/bold]", "[/]"))
    done = call("data", "convert", str(tmp_path / "a.csv"), str(tmp_path / "o:key:[b]o.parquet"))
    assert "written to" in done.stderr
    assert "o:key:[b]o.parquet" in done.stderr
    corpus, queries = simulate_retrieval(groups=3, per_group=4, seed=1)
    made = tmp_path / ":key:[b]"
    write_folder(made, corpus, queries)
    done = call("evaluate", str(made), "--no-cache")
    assert ":key:[b]: " in done.stdout


def test_convert_there_and_back(file: Path, tmp_path: Path) -> None:
    table = tmp_path / "events.csv"
    assert call("data", "convert", str(file), str(table), "--to", "long-csv").returncode == 0
    back = tmp_path / "back.parquet"
    done = call("data", "convert", str(table), str(back), "--time-unit", "hours")
    assert done.returncode == 0, done.stderr
    assert read(back).to_lists() == read(file).to_lists()


def test_convert_repairs_when_asked_and_says_what(tmp_path: Path) -> None:
    (tmp_path / "events.csv").write_text("id,time,mark\na,2,x\na,1,y\na,3,x\n")
    refused = call("data", "convert", str(tmp_path / "events.csv"), str(tmp_path / "out.parquet"))
    assert refused.returncode == 2
    assert re.search(r"events\.csv: sequence a: event 1: .*sort", refused.stderr)
    assert refused.stderr.endswith("or repair with --repair sort of 'data prepare' or 'data convert'\n")
    assert not (tmp_path / "out.parquet").exists()
    done = call("data", "convert", str(tmp_path / "events.csv"), str(tmp_path / "out.parquet"), "--repair", "sort")
    assert done.returncode == 0, done.stderr
    assert "1 sequence sorted" in done.stderr
    assert read(tmp_path / "out.parquet")[0].times.tolist() == [1.0, 2.0, 3.0]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--repair", "wish"], "no repair is called 'wish'"),
        (["--column", "time"], "write it as NAME=COLUMN"),
        (["--to", "nonsense"], "nonsense"),
    ],
)
def test_a_wrong_option_is_one_line(file: Path, tmp_path: Path, arguments: list[str], words: str) -> None:
    done = call("data", "convert", str(file), str(tmp_path / "out.parquet"), *arguments)
    assert done.returncode == 2
    assert len(done.stderr.strip().splitlines()) == 1
    assert words in done.stderr
    assert not (tmp_path / "out.parquet").exists()


def test_a_file_without_marks_or_groups(tmp_path: Path) -> None:
    (tmp_path / "events.csv").write_text("id,time,group\na,1,x\na,2,y\n")
    done = call("data", "info", str(tmp_path / "events.csv"))
    assert done.returncode == 2
    assert "no column for mark" in done.stderr
    assert "if there are no marks, --column mark= or {'mark': None}" in done.stderr
    done = call("data", "info", str(tmp_path / "events.csv"), "--column", "mark=")
    assert "--column group=" in done.stderr
    done = call("data", "info", str(tmp_path / "events.csv"), "--column", "mark=", "--column", "group=")
    assert done.returncode == 0, done.stderr
    assert "1 sequence, 2 events, 1 mark\n" in re.sub(r" +\n", "\n", done.stdout)


def test_info_tells_the_format_as_it_is_read(tmp_path: Path) -> None:
    columns = {"id": ["a"], "when": [[1.0, 2.0]], "kind": [[0, 1]], "date": ["2024-01-01"]}
    pq.write_table(pa.table(columns), tmp_path / "x.parquet")
    done = call("data", "info", str(tmp_path / "x.parquet"), "--column", "time=when", "--column", "mark=kind")
    assert done.returncode == 0, done.stderr
    assert "x.parquet (lifestream)" in done.stdout


def test_info_of_a_folder_of_parquet_files(file: Path, tmp_path: Path) -> None:
    for number in range(2):
        write(read(file)[6 * number : 6 * number + 6], tmp_path / "parts" / f"part-{number}.parquet")
    done = call("data", "info", str(tmp_path / "parts"))
    assert done.returncode == 0, done.stderr
    assert "12 sequences" in done.stdout


def test_info_of_a_folder_without_queries(tmp_path: Path) -> None:
    corpus, _ = simulate_retrieval(groups=2, per_group=4, seed=1)
    write_folder(tmp_path / "data", corpus)
    done = call("data", "info", str(tmp_path / "data"))
    assert "data folder without queries" in done.stdout


def test_info_names_further_columns_and_dates_of_flaws(tmp_path: Path) -> None:
    table = tmp_path / "events.csv"
    table.write_text("id,time,mark,country\na,2024-03-02,x,DE\na,2024-03-01,x,DE\n")
    said = " ".join(call("data", "info", str(table)).stdout.split())
    assert "further columns: country" in said
    assert "time 1709251200 (2024-03-01 UTC) is before the previous event's 1709337600 (2024-03-02 UTC)" in said


def test_info_shows_the_sizes_of_groups(file: Path) -> None:
    said = call("data", "info", str(file)).stdout
    for group in ("process 0", "process 1", "process 2"):
        assert re.search(rf"^{group} +4 +33\.3%", said, re.MULTILINE), said


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ("a,1,x,g\na,1,y,g\nb,5,x,h\nb,5,y,h", "all times of a sequence are equal; check which column is the time"),
        ("a,1,x,g\na,2,y,g\nb,5,x,g\nb,7,y,g", "there is one group only, so everything is relevant to everything"),
        ("a,1,x,g\na,2,y,g\nb,5,x,h\nb,7,y,h", "every sequence has a group of its own"),
        ("a,1709284447000,x,g\na,1709284448000,y,g", "times look like milliseconds since 1970 (2024-03-01 09:14:07 to"),
        ("a,1,x,g\nb,2,y,g\nc,2,y,h", "every sequence has one event; check which column is the id"),
    ],
)
def test_info_tells_what_looks_wrong(tmp_path: Path, rows: str, words: str) -> None:
    (tmp_path / "a.csv").write_text(f"id,time,mark,group\n{rows}\n")
    done = call("data", "info", str(tmp_path / "a.csv"))
    assert words in done.stdout
    assert "e+" not in done.stdout
    told = json.loads(call("data", "info", str(tmp_path / "a.csv"), "--json").stdout)
    assert any(words in doubt for doubt in told["doubts"])


def test_nothing_looks_wrong_where_nothing_is(file: Path, tmp_path: Path) -> None:
    assert "looks wrong" not in call("data", "info", str(file)).stdout
    (tmp_path / "dates.csv").write_text("id,time,mark\na,2024-03-01,x\na,2024-03-02,y\na,2024-03-04,x\n")
    assert "looks wrong" not in call("data", "info", str(tmp_path / "dates.csv")).stdout
    empty = EventSequences.from_lists([([], []), ([], [])], validate=False)
    write(empty, tmp_path / "empty.parquet")
    assert "no sequence has an event" in call("data", "info", str(tmp_path / "empty.parquet")).stdout


def test_prepare_without_groups_says_loudly_what_that_means(file: Path, tmp_path: Path) -> None:
    write(read(file).without_columns("group"), tmp_path / "plain.parquet")
    done = call("data", "prepare", "--from", str(tmp_path / "plain.parquet"), "--out", str(tmp_path / "plain"))
    assert done.returncode == 0, done.stderr
    assert "neuroseqret: note: the file has no groups, so relevance is made from sub-sequences" in done.stderr
    assert "--column group=COLUMN" in done.stderr
    corpus, _ = simulate_retrieval(groups=3, per_group=12, seed=1)
    write(corpus, tmp_path / "groups.parquet")
    grouped = ("data", "prepare", "--from", str(tmp_path / "groups.parquet"), "--out", str(tmp_path / "grouped"))
    done = call(*grouped, "--json")
    assert done.returncode == 0, done.stderr
    assert "no groups" not in done.stderr
    assert json.loads(done.stdout)["groups"] == 3


def test_help_names_every_role_of_a_column() -> None:
    said = " ".join(call("data", "prepare", "--help").stdout.split())
    assert "id, time, mark, group, start or end" in said
    assert "group=KIND" in said
