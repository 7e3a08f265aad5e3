"""The store on Lance: conflicts between writers, serials, and tables that LanceDB wrote."""

from __future__ import annotations

import re
import tarfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from naive import index as naive
from neuroseqret.data.sequences import EventSequences
from neuroseqret.errors import DataError, UserError
from neuroseqret.index import Index, lance_recovery, writer
from neuroseqret.index.lance_store import LanceStore
from neuroseqret.index.store import KEY, PARENT, SERIAL, Conflict, first_serial

HERE = Path(__file__).resolve().parent
QUERY = naive.some_sequences(1)[0]


def rows(version, keys, **columns):
    serials = first_serial(version) + np.arange(len(keys))
    return pa.table({SERIAL: serials, KEY: pa.array(keys, pa.int64()), **columns})


def content(store):
    store.refresh()
    found = pa.Table.from_batches(list(store.scan([SERIAL, KEY])), schema=pa.schema([(SERIAL, "i8"), (KEY, "i8")]))
    return sorted(found.column(KEY).to_pylist()), found.column(SERIAL).to_pylist()


@pytest.fixture
def pair(tmp_path):
    """Two stores of one folder, as on two machines: nothing makes them take turns."""
    schema = pa.schema([(SERIAL, pa.int64()), (KEY, pa.int64())])
    return LanceStore.create(tmp_path / "store", schema), LanceStore.open(tmp_path / "store")


CHANGES = {
    "put": lambda store, version: store.put(rows(version, [20, 21]), version),
    "put with a new column": lambda store, version: store.put(rows(version, [20, 21], colour=["red", "blue"]), version),
    "replace": lambda store, version: store.replace(rows(version, [3, 20]), [3], version),
    "replace windows": lambda store, version: store.replace(
        rows(version, [2, 2, 2], **{PARENT: pa.array(["a"] * 3, pa.large_string())}), [2], version
    ),
}


@pytest.mark.parametrize("empty", [True, False])
@pytest.mark.parametrize("second", list(CHANGES))
@pytest.mark.parametrize("first", list(CHANGES))
def test_only_one_of_two_changes_to_the_same_version_passes(pair, monkeypatch, first, second, empty):
    """The second writer has looked at the newest version already when the first one commits."""
    one, other = pair
    if not empty:
        one.put(rows(1, range(5)), 1)
        one.put(rows(2, range(5, 10)), 2)
    version = one.refresh()
    stale = other._newest()
    CHANGES[first](one, version)
    after = content(one)
    with monkeypatch.context() as patch:
        patch.setattr(other, "_newest", lambda: stale)
        with pytest.raises(Conflict):
            CHANGES[second](other, version)
    assert content(one) == after
    with pytest.raises(Conflict):  # also if it looks in time
        CHANGES[second](other, version)
    again = other.refresh()
    CHANGES[second](other, again)
    serials = content(one)[1]
    assert len(set(serials)) == len(serials)
    assert max(serials) < first_serial(one.version)


def test_serials_are_not_used_again_after_everything_was_removed(pair):
    one, _ = pair
    one.put(rows(1, [1, 2]), 1)
    used = set(content(one)[1])
    one.compact(0)
    one.delete([1, 2])
    version = one.refresh()
    one.put(rows(version, [1, 2, 3]), version)
    keys, serials = content(one)
    assert keys == [1, 2, 3]
    assert not used & set(serials)
    one.compact(0)
    assert one.get(np.array(serials[:2]), [KEY]).num_rows == 2  # found by the new access structure


def test_writers_that_do_not_take_turns_lose_and_double_nothing(tiny, tmp_path, monkeypatch):
    """As on two machines: the lock of one is not seen by the other."""
    from contextlib import nullcontext
    from threading import Thread

    index = Index.create(tiny, tmp_path / "index", naive.some_sequences(20))
    monkeypatch.setattr(LanceStore, "turn", lambda _: nullcontext())
    parts, counts = naive.some_sequences(60, seed=2, prefix="both"), []

    def add():
        opened = Index.open(tmp_path / "index")
        counts.extend(opened.add(parts[begin : begin + 5]).added for begin in range(0, 60, 5))

    threads = [Thread(target=add) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(counts) == 60
    ids = [hit.id for hit in index.search(QUERY, 1000)]
    assert sorted(ids) == sorted({f"s{i}" for i in range(20)} | {f"both{i}" for i in range(60)})
    serials = index._store._dataset.to_table(columns=[SERIAL]).column(SERIAL).to_pylist()
    assert len(set(serials)) == 80


def test_a_writer_that_is_always_too_late_says_so(tiny, tmp_path, monkeypatch):
    index = Index.create(tiny, tmp_path / "index", naive.some_sequences(5))

    def late(*_):
        raise Conflict("version 9 is there")

    monkeypatch.setattr(LanceStore, "put", late)
    monkeypatch.setattr(writer, "ATTEMPTS", 3)
    with pytest.raises(UserError, match="other writers were faster 3 times; nothing was changed, try again later"):
        index.add(naive.some_sequences(2, prefix="new"))


def test_an_index_that_lancedb_wrote_opens_and_goes_on(tmp_path):
    """Made by an earlier version: 12 sequences, one removed, compacted, a new column, two replaced, two removed."""
    with tarfile.open(HERE / "files" / "written_by_lancedb.tar.gz") as archive:
        archive.extractall(tmp_path, filter="data")
    index = Index.open(tmp_path / "lancedb_index")
    expected = ({f"s{i}" for i in range(12)} | {"new"}) - {"s3", "s7"}
    assert {hit.id for hit in index.search(QUERY, 100)} == expected
    assert index.check() == []
    assert index.get("new").table.column("colour").to_pylist() == ["red"]
    assert [hit.id for hit in index.search(QUERY, 100, where="colour = 'red'")] == ["new"]
    assert index.get("s1").times.tolist() == naive.some_sequences(2, seed=4)[1:2].times.tolist()
    index.add(EventSequences.from_lists([([0.0], [1])], ids=["late"], metadata={"colour": ["blue"]}))
    index.upsert(naive.some_sequences(3, seed=5))
    index.remove("s11")
    index.compact()
    assert {hit.id for hit in Index.open(index.folder).search(QUERY, 100)} == (expected | {"late"}) - {"s11"}
    assert index.check() == []


def test_compact_leaves_nothing_of_what_was_removed(tiny, tmp_path):
    index = Index.create(tiny, tmp_path / "index", naive.some_sequences(200))
    secret = EventSequences.from_lists(
        [([0.0], [1])] * 2, ids=["one", "two"], metadata={"note": ["Xq7Zw9Kp", "Vb3Nm5Lr"]}
    )
    index.add(secret)
    for turn in range(15):
        index.upsert(naive.some_sequences(3, seed=turn))
    index.remove("one")

    def files_with(text):
        return [f for f in index.folder.rglob("*") if f.is_file() and text in f.read_bytes()]

    def versions():
        return len(list((index.folder / "store").rglob("*.manifest")))

    expected = [(h.id, h.score) for h in index.search(QUERY, 500)]
    assert files_with(b"Xq7Zw9Kp")
    assert len([f for f in index.folder.rglob("*") if f.is_file()]) > 60
    index.compact()
    assert versions() > 15  # others may still read them
    index.compact(grace=0)
    assert not files_with(b"Xq7Zw9Kp")
    assert versions() <= 2
    assert len([f for f in index.folder.rglob("*") if f.is_file()]) < 45
    assert [(h.id, h.score) for h in index.search(QUERY, 500)] == expected
    assert [(h.id, h.score) for h in Index.open(index.folder).search(QUERY, 500)] == expected
    assert index.check() == []
    with pytest.raises(UserError, match="grace is a number of seconds"):
        index.compact(grace=-1)


@pytest.mark.parametrize("windows", [{}, {"window_events": 6, "window_step": 3}])
def test_get_refuses_what_is_not_as_it_was_written(tiny, tmp_path, monkeypatch, windows):
    index = Index.create(tiny, tmp_path / "index", naive.some_sequences(20), **windows)
    sound, wrong = ["s3[0:6]", "s4[3:9]"] if windows else ["s3", "s5"], "s4[0:6]" if windows else "s4"
    scan = LanceStore.scan

    def damaged(self, columns, **options):
        for batch in scan(self, columns, **options):
            times = pa.array(
                [
                    [t + (name == wrong) for t in row]
                    for name, row in zip(batch.column("id").to_pylist(), batch.column("times").to_pylist(), strict=True)
                ],
                batch.schema.field("times").type,
            )
            yield batch.set_column(batch.schema.get_field_index("times"), "times", times)

    monkeypatch.setattr(LanceStore, "scan", damaged)
    assert index.get(sound).ids.to_pylist() == sound
    with pytest.raises(DataError, match=rf"{re.escape(wrong)}.*not as it was written.*upsert it from your source"):
        index.get([*sound, wrong])


def test_what_the_store_keeps_in_memory_has_a_limit(tiny, tmp_path, monkeypatch):
    """Every commit and every look at it leaves some 30 kB in Lance's cache."""
    monkeypatch.setattr(lance_recovery, "METADATA_KEPT", 300_000)
    monkeypatch.setattr(lance_recovery, "INDEXES_KEPT", 100_000)
    Index.create(tiny, tmp_path / "index", naive.some_sequences(20))
    index = Index.open(tmp_path / "index")
    for turn in range(30):
        index.add(naive.some_sequences(2, seed=turn, prefix=f"t{turn}-"))
        assert len(index.search(naive.some_sequences(1, seed=9)[0], 100)) == 22 + 2 * turn
    assert index._store._dataset.session().size_bytes() < 500_000
