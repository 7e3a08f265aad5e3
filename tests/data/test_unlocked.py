"""Threads do not wait for one another to compute cached properties of objects of their own."""

from __future__ import annotations

import threading

import pytest

from naive.index import some_sequences
from neuroseqret.data.event_columns import EventColumns
from neuroseqret.data.sequences import EventSequences
from neuroseqret.index.hot import HotStructure
from neuroseqret.index.search import Search
from neuroseqret.index.snapshot import Snapshot
from neuroseqret.serving.searching import SearchJob


def test_one_thread_computes_times_while_another_one_is_at_it(monkeypatch):
    first, second = (EventSequences(some_sequences(3, seed=seed).table) for seed in (1, 2))  # nothing is computed yet
    begun, go_on, flat = threading.Event(), threading.Event(), EventColumns._flat

    def slow(self, name):
        if self is first:
            begun.set()
            assert go_on.wait(60)
        return flat(self, name)

    monkeypatch.setattr(EventColumns, "_flat", slow)
    waiting = threading.Thread(target=lambda: first.times)
    waiting.start()
    assert begun.wait(60)
    other = threading.Thread(target=lambda: second.times)
    other.start()
    other.join(60)
    assert not other.is_alive()
    go_on.set()
    waiting.join(60)
    assert "times" in vars(first)
    assert "times" in vars(second)


@pytest.mark.parametrize("owner", [EventColumns, HotStructure, Search, SearchJob, Snapshot])
def test_what_a_search_computes_has_no_lock(owner):
    for value in vars(owner).values():
        assert not hasattr(getattr(value, "lock", None), "acquire")
