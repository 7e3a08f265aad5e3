"""HoTPP's and pytorch-lifestream's Parquet, as these tools write them."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from neuroseqret.data.sequences import EventSequences
from neuroseqret.errors import DataError
from neuroseqret.readers import LossWarning, read, sniff, write


def save(path: Path, **columns: object) -> Path:
    pq.write_table(pa.table(columns), path)
    return path


def test_hotpp_with_further_fields(tmp_path: Path) -> None:
    path = save(
        tmp_path / "train.parquet",
        id=[3, 4],
        timestamps=pa.array([[1, 2], [5]], pa.list_(pa.float32())),
        labels=[[2, 1], [1]],
        log_amount=[[0.5, 0.25], [1.0]],
        target_flag=[1, None],
    )
    assert sniff(path) == "hotpp"
    assert read(path) == EventSequences.from_lists(
        [([1, 2], [2, 1]), ([5], [1])],
        ids=["3", "4"],
        metadata={"log_amount": [[0.5, 0.25], [1.0]], "target_flag": [1, None]},
    )


def test_hotpp_gets_numbers_for_ids_if_all_are(tmp_path: Path) -> None:
    batch = EventSequences.from_lists([([1.0], [0]), ([2.0], [1])], ids=["10", "-7"], mark_names=["a", "b"])
    write(batch, tmp_path / "a", "hotpp")
    assert pq.read_table(tmp_path / "a").schema.field("id").type == pa.int64()
    assert read(tmp_path / "a") == batch
    for ids in (["10", "07"], ["10", "x"], ["10", "+7"]):
        other = EventSequences.from_lists([([1.0], [0]), ([2.0], [1])], ids=ids)
        write(other, tmp_path / "a", "hotpp")
        assert read(tmp_path / "a") == other
    with pytest.warns(LossWarning, match="hotpp has no room for groups"):
        write(EventSequences.from_lists([([1.0], [0])], groups=["g"]), tmp_path / "a", "hotpp")


def lifestream(path: Path, **more: object) -> Path:
    times = pa.array([[1452449213, 1454222108], [1452063037]], pa.list_(pa.int64()))
    return save(
        path, user_id=["u", "v"], mcc_code=[[55, 77], [2]], amount=[[1.5, 2.0], [3.0]], event_time=times, **more
    )


def test_lifestream_with_one_category(tmp_path: Path) -> None:
    path = lifestream(tmp_path / "a.parquet")
    assert sniff(path) == "lifestream"
    assert read(path, time_unit="seconds") == EventSequences.from_lists(
        [([1452449213, 1454222108], [55, 77]), ([1452063037], [2])],
        ids=["u", "v"],
        metadata={"amount": [[1.5, 2.0], [3.0]]},
        time_unit="seconds",
    )


def test_lifestream_asks_where_there_is_a_choice(tmp_path: Path) -> None:
    path = lifestream(tmp_path / "a.parquet", channel=[[1, 1], [2]], target=[0, 1])
    with pytest.raises(
        DataError, match=r"which feature is the mark is not clear; .*integer or text lists: mcc_code, chan"
    ):
        read(path)
    back = read(path, columns={"mark": "channel"})
    assert back.marks.tolist() == [1, 1, 2]
    assert back.ids.to_pylist() == ["u", "v"]
    assert set(back.metadata.column_names) == {"mcc_code", "amount", "target"}
    unknown = save(tmp_path / "b.parquet", a=["x"], b=["y"], event_time=[[1.0]], kind=[[1]])
    with pytest.raises(
        DataError,
        match=r"which column is the id is not clear; say '.*--column id=...', .* columns={'id': ...}; found: a, b",
    ):
        read(unknown)
    assert read(unknown, columns={"id": "b"}).ids.to_pylist() == ["y"]
    unknown = save(tmp_path / "c.parquet", id=["x"], when=[[1.0]], kind=[[1]])
    with pytest.raises(
        DataError,
        match=r"no list column 'event_time'; say '.*time=...', .* columns={'time': ...}; list columns: when, kind",
    ):
        read(unknown)
    assert read(unknown, columns={"time": "when"}).times.tolist() == [1.0]


def test_easytpp_s_data_sets_as_parquet(tmp_path: Path) -> None:
    path = save(
        tmp_path / "train.parquet",
        dim_process=[3],
        seq_len=[2],
        seq_idx=[7],
        time_since_start=[[0.0, 1.5]],
        time_since_last_event=[[0.0, 1.5]],
        type_event=[[2, 0]],
    )
    assert sniff(path) == "lifestream"
    back = read(path)
    assert (back.ids.to_pylist(), back.to_lists()) == (["7"], [([0.0, 1.5], [2, 0])])


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
