"""Tables with one row per sequence: names of other formats, lists of fixed size, repeated names."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from neuroseqret.data.sequences import EventSequences
from neuroseqret.errors import DataError
from neuroseqret.readers import read, sniff, write
from parquet_files import save


@pytest.mark.parametrize("name", ["canonical", "lifestream", "long-parquet"])
def test_lists_with_the_names_of_other_formats(tmp_path: Path, name: str) -> None:
    lists = ("timestamps", "labels", "type_event", "time_since_start")
    lists += () if name == "lifestream" else ("event_time", "event_type")
    batch = EventSequences.from_lists([([1.0, 2.0], [0, 1])], ids=["a"], metadata={key: [[5, 6, 7]] for key in lists})
    write(batch, tmp_path / "a", name)
    assert sniff(tmp_path / "a") == name
    assert read(tmp_path / "a") == batch


def test_lists_of_a_fixed_size(tmp_path: Path) -> None:
    pairs = {"times": pa.array([[1, 2], [3, 4]], pa.list_(pa.int16(), 2)), "marks": [["x", "y"], ["y", "y"]]}
    marks = pa.array(pairs["marks"], pa.list_(pa.string(), 2))
    path = save(tmp_path / "a", id=["a", "b"], times=pairs["times"], marks=marks)
    assert sniff(path) == "canonical"
    assert read(path).to_lists() == [([1.0, 2.0], [0, 1]), ([3.0, 4.0], [1, 1])]
    holes = pa.array([[1, 2], None], pa.list_(pa.int16(), 2))
    with pytest.raises(DataError, match="sequence b: no times"):
        read(save(tmp_path / "a", id=["a", "b"], times=holes, marks=marks))


def test_two_columns_of_one_name(tmp_path: Path) -> None:
    columns = [pa.array(["a"]), pa.array([[1.0]]), pa.array([[0]]), pa.array([[2.0]])]
    pq.write_table(pa.table(columns, names=["id", "times", "marks", "times"]), tmp_path / "a")
    with pytest.raises(DataError, match="a: two columns are called 'times'; rename one"):
        read(tmp_path / "a")
