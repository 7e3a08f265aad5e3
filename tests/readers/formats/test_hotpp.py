"""HoTPP's Parquet, as HoTPP writes it."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from neuroseqret.data.sequences import EventSequences
from neuroseqret.readers import LossWarning, read, sniff, write
from parquet_files import save


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
