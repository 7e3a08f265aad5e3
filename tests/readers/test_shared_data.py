"""The eight real sets: they read, they are what their `meta.json` says, and they survive every writer."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from conftest import SETS
from neuroseqret.data.sequences import EventSequences
from neuroseqret.readers import FORMATS, LossWarning, lost_by, read, read_folder, scan, write, write_folder

WHOLE = ("canonical", "lifestream", "long-parquet")


@pytest.mark.parametrize("name", SETS)
def test_a_set_is_what_its_meta_says(shared_data: Path, name: str) -> None:
    folder = read_folder(shared_data / name)
    assert folder.queries is not None
    assert folder.relevance is not None
    counts = folder.meta["counts"]
    both = np.concatenate([folder.corpus.lengths, folder.queries.lengths])
    assert (len(folder.corpus), len(folder.queries)) == (counts["corpus"], counts["queries"])
    assert both.sum() == counts["events"]
    assert (both.min(), np.median(both), both.max()) == (
        counts["length_min"],
        counts["length_median"],
        counts["length_max"],
    )
    assert folder.corpus.num_marks == counts["marks"]
    assert folder.corpus.time_unit == folder.meta["time_unit"]
    by_split = {split: len(folder.rows(split)) for split in ("train", "validation", "test")}
    assert by_split == counts["queries_by_split"]
    assert round(float(folder.relevance.counts.mean()), 2) == counts["relevant_per_query_mean"]


@pytest.mark.parametrize("name", SETS)
def test_a_set_agrees_with_pyarrow_and_survives_whole(shared_data: Path, tmp_path: Path, name: str) -> None:
    folder = read_folder(shared_data / name)
    for file, mine in (("corpus", folder.corpus), ("queries", folder.queries)):
        assert mine is not None
        theirs = pq.read_table(shared_data / name / f"{file}.parquet")
        assert mine == EventSequences.from_arrow(theirs, mine.mark_names, mine.time_unit)
    write_folder(tmp_path / name, folder.corpus, folder.queries, meta=folder.meta)
    again = read_folder(tmp_path / name)
    assert (again.corpus, again.queries, again.meta) == (folder.corpus, folder.queries, folder.meta)
    assert folder.queries is not None
    for kind in WHOLE:
        write(folder.queries, tmp_path / kind, kind)
        back = read(tmp_path / kind)
        assert back == folder.queries
        assert back.fingerprint() == folder.queries.fingerprint()


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("kind", sorted(set(FORMATS) - set(WHOLE)))
def test_a_set_survives_a_writer_as_far_as_it_has_room(shared_data: Path, tmp_path: Path, name: str, kind: str) -> None:
    batch = read(shared_data / name / "queries.parquet")[:40]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LossWarning)
        write(batch, tmp_path / "file", kind)
    back = read(tmp_path / "file", mark_names=batch.mark_names, time_unit=batch.time_unit, allow_pickle=True)
    lost = lost_by(batch, kind)
    if set(lost) <= {"mark names", "time unit"}:  # those were given anew
        assert back == batch
    kept = [column for column in batch.table.column_names if column in back.table.column_names]
    if kind == "gatech":  # sorted by split, and ids are numbers within it
        order = np.argsort(
            [("train", "validation", "test").index(s) for s in batch.column("split").to_pylist()], kind="stable"
        )
        batch, kept = batch[order], ["times", "marks", "split"]
    if kind == "paired-text":
        kept = ["times", "marks"]
    assert {"times", "marks"} <= set(kept)
    for column in kept:
        assert back.column(column).to_pylist() == batch.column(column).to_pylist(), column


@pytest.mark.parametrize("name", ["health", "amazon"])
def test_a_set_is_scanned_in_batches(shared_data: Path, name: str) -> None:
    path = shared_data / name / "corpus.parquet"
    assert EventSequences.concat(scan(path, 1000)) == read(path)
