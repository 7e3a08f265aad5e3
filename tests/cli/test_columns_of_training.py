"""What `data prepare` was told about the columns of raw files need not be told again to commands with a model."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cli.calling import call
from neuroseqret.models.model_folder import read_card

TOLD = ("--column", "id=USER", "--column", "time=WHEN", "--column", "mark=ACTION", "--column", "group=KIND")


def rows(day: int, users: int) -> list[str]:
    """Events of some users, of two kinds, at dates that are not written as ISO 8601 says."""
    return [
        f"u{day}-{user},{day:02}.03.2024 {9 + hour:02}:{7 * user % 60:02},{('view', 'buy')[user % 2]},k{user % 2}"
        for user in range(users)
        for hour in range(6)
    ]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with raw `events.csv` and newer ones, and data, model and index of the former."""
    made = tmp_path_factory.mktemp("raw")
    header = "USER,WHEN,ACTION,KIND"
    (made / "events.csv").write_text("\n".join([header, *rows(1, 24)]) + "\n")
    (made / "new.csv").write_text("\n".join([header, *rows(2, 3)]) + "\n")
    without = [line.rsplit(",", 1)[0] for line in [header, *rows(3, 2)]]
    (made / "without-kind.csv").write_text("\n".join(without) + "\n")
    time = ("--time-format", "%d.%m.%Y %H:%M")
    for words in (
        ("data", "prepare", "--from", str(made / "events.csv"), *TOLD, *time, "--out", str(made / "data")),
        ("fit", str(made / "data"), "--model", "histogram", "--out", str(made / "model")),
        ("index", "create", str(made / "model"), str(made / "data"), "--out", str(made / "index")),
    ):
        done = call(*words)
        assert done.returncode == 0, done.stderr
        assert "columns as in" not in done.stderr
    return made


def test_the_model_remembers(folder: Path) -> None:
    card = read_card(folder / "index" / "model")
    assert card.columns == dict(word.split("=") for word in TOLD[1::2])
    assert card.time_format == "%d.%m.%Y %H:%M"


def test_raw_files_are_read_as_the_training_data_was(folder: Path, tmp_path: Path) -> None:
    said = "columns as in 'data prepare' of the training data: --column id=USER --column time=WHEN --column mark=ACTION"
    index, new = str(folder / "index"), str(folder / "new.csv")
    for words in (
        ("search", index, new, "-k", "2"),
        ("embed", str(folder / "model"), new, "--out", str(tmp_path / "vectors.parquet")),
        ("index", "create", str(folder / "model"), new, "--out", str(tmp_path / "index")),
        ("index", "add", str(tmp_path / "index"), new),
    ):
        done = call(*words)
        assert done.returncode == 0, done.stderr
        assert f"{new}: {said} --column group=KIND" in done.stderr
    found = call("search", index, new, "-k", "1", "--query", "u2-1")
    assert "query u2-1 (k1)" in found.stdout
    done = call("search", index, str(folder / "without-kind.csv"), "-k", "1")
    assert done.returncode == 0, done.stderr
    assert said in done.stderr
    assert "KIND" not in done.stderr


def test_what_is_said_and_what_is_in_the_file_comes_first(folder: Path, tmp_path: Path) -> None:
    index = str(folder / "index")
    done = call("search", index, str(folder / "data" / "queries.parquet"), "-k", "1")  # not a raw file
    assert (done.returncode, "columns as in" in done.stderr) == (0, False), done.stderr
    plain = tmp_path / "plain.csv"
    plain.write_text("id,time,mark\na,1709284440,view\na,1709288040,view\n")
    done = call("search", index, str(plain), "-k", "1")
    assert (done.returncode, "columns as in" in done.stderr) == (0, False), done.stderr
    long = tmp_path / "long.parquet"
    pq.write_table(pa.table({"USER": ["a"] * 2, "WHEN": [1.7e9, 1.7e9 + 60], "ACTION": ["buy"] * 2, "x": [1, 2]}), long)
    done = call("search", index, str(long), "-k", "1", "--column", "id=x", *TOLD[2:6])
    assert (done.returncode, "columns as in" in done.stderr) == (0, False), done.stderr
    assert "query 1" in done.stdout


def test_one_column_that_is_said_leaves_the_others_as_in_training(folder: Path) -> None:
    done = call("search", str(folder / "index"), str(folder / "new.csv"), "-k", "1", "--column", "id=USR")
    assert "new.csv: no column 'USR' for id; columns found:" in done.stderr
    done = call("search", str(folder / "index"), str(folder / "new.csv"), "-k", "1", "--column", "group=")
    assert done.returncode == 0, done.stderr
    assert "--column id=USER --column time=WHEN --column mark=ACTION" in done.stderr
