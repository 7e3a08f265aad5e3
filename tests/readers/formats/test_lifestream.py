"""pytorch-lifestream's Parquet, as it is written there, and what has to be asked."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from neuroseqret.data.sequences import EventSequences
from neuroseqret.errors import DataError
from neuroseqret.readers import read, sniff
from parquet_files import save


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
        DataError, match=r"it is not clear which feature is the mark; .*integer or text lists: mcc_code, chan"
    ):
        read(path)
    back = read(path, columns={"mark": "channel"})
    assert back.marks.tolist() == [1, 1, 2]
    assert back.ids.to_pylist() == ["u", "v"]
    assert set(back.metadata.column_names) == {"mcc_code", "amount", "target"}
    unknown = save(tmp_path / "b.parquet", a=["x"], b=["y"], event_time=[[1.0]], kind=[[1]])
    with pytest.raises(
        DataError,
        match=r"it is not clear which column is the id; say --column id=..., .* columns={'id': ...}; found: a, b",
    ):
        read(unknown)
    assert read(unknown, columns={"id": "b"}).ids.to_pylist() == ["y"]
    unknown = save(tmp_path / "c.parquet", id=["x"], when=[[1.0]], kind=[[1]])
    with pytest.raises(
        DataError,
        match=r"no list column 'event_time'; say --column time=..., .* columns={'time': ...}; list columns: when, kind",
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
