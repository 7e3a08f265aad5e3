"""Files of a store that somebody has forged, hashes included: one line of error, and never the end of the process."""

from __future__ import annotations

import struct
from types import SimpleNamespace

import numpy as np
import pytest

from naive import index as naive
from neuroseqret.data.sequences import EventSequences
from neuroseqret.errors import UserError
from neuroseqret.index import Index, hot

QUERY = naive.some_sequences(1, seed=9, prefix="q")


@pytest.fixture
def folder(tiny, tmp_path):
    """An index from whose store a row was removed."""
    index = Index.create(tiny, tmp_path / "index", naive.some_sequences(20))
    index.remove("s3")
    return tmp_path / "index"


def forge(folder, pattern, old, new):
    """Replace some bytes in the newest file of a pattern."""
    file = sorted((folder / "store").rglob(pattern))[0]
    content = file.read_bytes()
    assert old in content
    file.write_bytes(content.replace(old, new))
    return file


def refused(ask, message):
    with pytest.raises(UserError, match=message) as caught:
        ask()
    assert "\n" not in str(caught.value)


def test_a_list_of_removed_rows_that_lies_about_its_size_is_refused(folder):
    block = struct.Struct("<qqq")  # of an Arrow file: where a batch begins, how long its head is, and its body
    forge(folder, "_deletions/*.arrow", block.pack(192, 192, 128), block.pack(192, 192, 2**57 - 1))
    refused(lambda: Index.open(folder), r"cannot be opened: _deletions/.*\.arrow is damaged")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (b"nsr_digest", b"nsr_digesT", "its column 'nsr_digest' is missing"),
        (b"large_string", b"largE_string", "cannot be read: .*Unsupported logical type"),  # a panic in Lance
    ],
)
def test_a_forged_manifest_is_refused(folder, old, new, message):
    forge(folder, "*.manifest", old, new)
    refused(lambda: Index.open(folder), message)


def test_a_note_of_what_was_synced_may_say_anything(folder):
    (folder / "store" / "synced.json").write_text('{"version": 1e999}')
    assert len(Index.open(folder)) == 19


@pytest.mark.parametrize(
    ("times", "marks", "problem"),
    [([0.0, 1.0], [0, -7], "mark is -7"), ([0.0, np.nan], [0, 1], "time is nan"), ([1.0, 0.0], [0, 1], "is before")],
)
def test_stored_events_are_checked_before_a_model_sees_them(folder, times, marks, problem):
    """Kernels rely on what `validate` promises; the hashes are right, as of an attacker who hashes again."""
    index = Index.open(folder)
    bad = EventSequences.from_arrays(times, marks, [0, 2], ids=["bad"], validate=False)
    index._writer.add(SimpleNamespace(embed=lambda *_, **__: np.eye(1, 16, dtype=np.float32)), bad)
    assert any(problem in flaw and "sequence bad" in flaw for flaw in index.check())
    refused(lambda: index.get(["bad"]), problem)
    refused(lambda: index.search(QUERY, 20, rerank=naive.LengthReranker()), problem)


def test_a_changed_mark_in_a_large_search_structure_does_not_reach_a_model(tiny, folder, monkeypatch):
    """Checksums of large files are not compared at opening."""
    index = Index.open(folder)
    index.compact()
    monkeypatch.setattr(hot, "_CHECKED_SIZE", -1)
    current = folder / "hot" / (folder / "hot" / hot.CURRENT).read_text()
    marks = np.fromfile(current / hot.MARKS, np.int32)
    marks[3] ^= -(2**31)
    marks.tofile(current / hot.MARKS)
    opened = Index.open(folder)
    assert len(opened.search(QUERY[0], 20)) == 19
    refused(lambda: opened.search(QUERY, 20, rerank=naive.LengthReranker()), "its stored events are damaged: mark is -")
