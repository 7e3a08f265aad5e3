"""An index in an object store beside the same index in a folder: searching, and opening with and without a cache.

The object store is `moto_server` on this machine, which is slower than a real one and has no network between.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from neuroseqret.index import Index
from scale_growth import size_of
from scale_room import EVENTS, Room, apart, in_turn, object_store, singles

DIMENSION = 128


def cells(room: Room) -> dict[str, Any]:
    return {"bucket": lambda: measured(room)}


def prepare(room: Room) -> None:
    local(room)


@contextmanager
def in_bucket(room: Room) -> Iterator[str]:
    """Give the address of the index in an object store that lives as long as the block."""
    os.environ["NEUROSEQRET_CACHE"] = str(room.folder / "cache")
    shutil.rmtree(room.folder / "cache", ignore_errors=True)
    complete = room.folder / "bucket.complete"
    complete.unlink(missing_ok=True)
    store = object_store()
    try:
        room.fill("s3://scale/index", room.rows, DIMENSION, complete)
        yield "s3://scale/index"
    finally:
        store.kill()
        store.wait()


def measured(room: Room) -> dict[str, Any]:
    """Open the index as a machine does that has never seen it, once more, and search it."""
    prepare(room)
    with in_bucket(room) as place:
        shutil.rmtree(room.folder / "cache", ignore_errors=True)
        before = apart(nothing, room)
        cold, warm = (apart(opened, place, room) for _ in range(2))
        cached = size_of(room.folder / "cache")
        times = searching(room, place)
    # Events are copied as they come; the rest of the structure is made of what the store holds.
    structure = cached - room.rows * EVENTS * (8 + 4)
    return {
        "sequences": room.rows,
        "dimension": DIMENSION,
        "cold_s": cold["seconds"],
        "cold_cpu_s": cold["cpu_s"],
        "warm_s": warm["seconds"],
        "warm_cpu_s": warm["cpu_s"],
        "warm_first_search_ms": warm["first_search_ms"],
        "cold_peak_bytes": cold["peak_bytes"] - before["peak_bytes"],
        "structure_bytes": structure,
        "peak_over_structure": round((cold["peak_bytes"] - before["peak_bytes"]) / structure, 2),
        **times,
    }


def nothing(room: Room) -> dict[str, Any]:
    """Do what a process does before it opens an index."""
    room.given(room.rows, DIMENSION)
    return {}


def opened(place: str, room: Room) -> dict[str, Any]:
    """Open an index until it can be searched; runs in a process of its own."""
    given, query = room.given(room.rows, DIMENSION), singles(1)[0]
    begun, working = time.perf_counter(), time.process_time()
    index = Index.open(place, given)
    index.refresh(wait=True)
    seconds, worked = time.perf_counter() - begun, time.process_time() - working
    index.search(query, 10)
    searched = time.perf_counter() - begun - seconds
    return {"seconds": round(seconds, 3), "cpu_s": round(worked, 3), "first_search_ms": round(1e3 * searched, 2)}


def searching(room: Room, place: str) -> dict[str, Any]:
    """Search the index in the object store and the one in the folder, in turn."""
    here, there = (Index.open(one, room.given(room.rows, DIMENSION)) for one in (local(room), place))
    here.refresh(wait=True)
    there.refresh(wait=True)
    asked = singles()
    hits = [[[hit.id for hit in one.search(query, 10)] for query in asked] for one in (here, there)]
    found = in_turn(
        {"folder_ms": lambda q: here.search(asked[q], 10), "bucket_ms": lambda q: there.search(asked[q], 10)}
    )
    ratio = found["bucket_ms"] / found["folder_ms"]
    return {"same_hits": hits[0] == hits[1], **found, "bucket_to_folder": round(ratio, 3)}


def local(room: Room) -> Path:
    return room.index(room.rows, DIMENSION)
