"""A write that fails, even unnoticed by the store, is one clear error and leaves the index as it was."""

from __future__ import annotations

import os

import pytest

from naive import index as naive
from neuroseqret.data.sequences import EventSequences
from neuroseqret.errors import UserError
from neuroseqret.index import Index, lance_files

QUERY = naive.some_sequences(1)[0]
MORE = naive.some_sequences(5, seed=1, prefix="a")
CHANGES = {
    "add": lambda index: index.add(MORE),
    "upsert": lambda index: index.upsert(naive.some_sequences(7, seed=2, prefix="s")),
    "remove": lambda index: index.remove(["s3", "s9"]),
    "compact": lambda index: index.compact(),
    "add with a new column": lambda index: index.add(
        EventSequences.from_lists([([0.0, 1.0], [0, 1])], ids=["new"], metadata={"colour": ["red"]})
    ),
}


def content(folder):
    table = Index.open(folder)._store._dataset.to_table()
    return table.select(["id", "times", "marks", "nsr_serial"]).sort_by("id").to_pylist(), set(table.column_names)


@pytest.fixture
def made(tiny, tmp_path):
    index = Index.create(tiny, tmp_path / "index", naive.some_sequences(30))
    index.add(naive.some_sequences(3, seed=5, prefix="t"))
    return index


def unchanged(index, change, words):
    """The change is refused, nothing is different, and the index still works, in this process and another."""
    before = content(index.folder)
    with pytest.raises(UserError, match=words) as caught:
        CHANGES[change](index)
    assert "\n" not in str(caught.value)
    assert content(index.folder) == before
    assert len(index.search(QUERY, 100)) == 33
    return before


def works_again(index, change):
    CHANGES[change](index)
    index.add(naive.some_sequences(2, seed=8, prefix="more"))
    ids = [row["id"] for row in content(index.folder)[0]]
    assert {hit.id for hit in index.search(QUERY, 100)} == set(ids)
    assert len(ids) == len(set(ids))


@pytest.mark.parametrize("restorable", [True, False])
@pytest.mark.parametrize(
    ("change", "kind"),
    [("add", "data"), ("upsert", "data"), ("upsert", "_deletions"), ("remove", "_deletions"), ("compact", "data")],
)
def test_a_file_whose_last_write_was_lost(made, monkeypatch, change, kind, restorable):
    """The store commits without noticing; the file is found when it is read back."""
    there, sync = set(made.folder.rglob("*")), lance_files.LanceFiles.sync

    def short(self, version):
        for path in set(made.folder.rglob("*")) - there:
            if path.parent.name == kind:
                os.truncate(path, path.stat().st_size * 2 // 3)
        sync(self, version)

    def full(*_):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(lance_files.LanceFiles, "sync", short)
        if not restorable:
            patch.setattr(type(made._store._dataset), "restore", full)
        unchanged(made, change, "what was written cannot be read back; the index is unchanged, check the disk")
    works_again(made, change)


@pytest.mark.parametrize("change", list(CHANGES))
def test_a_sync_that_fails(made, monkeypatch, change):
    def failing(_):
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", failing)
        unchanged(made, change, "the store cannot be written to: .*Input/output error")
    works_again(made, change)


def test_a_create_that_fails_leaves_nothing(tiny, tmp_path, monkeypatch):
    def failing(*_):
        raise OSError(28, "No space left on device")

    corpus, target = naive.some_sequences(10), tmp_path / "index"
    with monkeypatch.context() as patch:
        patch.setattr(lance_files.LanceFiles, "begin", failing)  # of the first commit
        with pytest.raises(UserError, match=f"^{target}/store: no space left") as caught:
            Index.create(tiny, target, corpus)
    assert "\n" not in str(caught.value)
    with pytest.raises(UserError, match="mark '9' is unknown"):
        Index.create(tiny, target, [([0.0, 1.0], [0, 9])])
    assert list(tmp_path.iterdir()) == []
    assert len(Index.create(tiny, target, corpus)) == 10


def test_a_create_that_fails_later_keeps_the_batches_before(tiny, tmp_path):
    good, bad = naive.some_sequences(10), EventSequences.from_lists([([0.0, 1.0], [0, 9])])
    with pytest.raises(UserError, match="mark '9' is unknown"):
        Index.create(tiny, tmp_path / "index", iter([good, bad]))
    assert len(Index.open(tmp_path / "index", tiny)) == 10
