"""An index whose candidates a real Milvus 2.3.5 finds, beside bare calls of pymilvus with the same collection.

The server is that of the tests: from its wheel, with users and TLS. It runs in a process of its own, as its relay does.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any

import psutil
import pyarrow as pa

from milvus_server import TOKEN, MilvusServer
from neuroseqret.index import Index
from neuroseqret.index.engines.milvus_filter import to_expression
from neuroseqret.index.filters import Filter
from scale_room import Room, batches, in_turn, singles

DIMENSION = 128
NAME, BARE = "scale", "bare"
LONGEST_WAIT = 60.0  # seconds for the server to index what was added
MESSAGE = 16_384  # rows of a bare insert: fewer than in one message of 64 MB, which the server takes
CONDITION = "role = 'r3'"  # a tenth of the rows


def cells(room: Room) -> dict[str, Any]:
    return {"milvus-load": lambda: loading(room), "milvus-search": lambda: searching(room)}


def prepare(room: Room) -> None:
    room.vectors(room.rows, DIMENSION)


@contextmanager
def server(room: Room) -> Iterator[tuple[str, Any, Callable[[], int]]]:
    """Give the address of a collection, a client, and what tells the server's memory; its data stay in the room."""
    os.environ["NEUROSEQRET_MILVUS_TOKEN"] = TOKEN
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_host, args=(room.folder / "milvus", theirs))
    process.start()
    theirs.close()
    port = ours.recv()
    authority = room.folder / "milvus" / "authority.pem"
    try:
        from pymilvus import MilvusClient

        client = MilvusClient(f"https://localhost:{port}", token=TOKEN, server_pem_path=str(authority), timeout=60)
        yield f"milvus://localhost:{port}/{NAME}?tls={authority}", client, lambda: _memory(process.pid)
    finally:
        ours.close()
        process.join()


def _host(folder: Path, pipe: Any) -> None:
    """Keep a server until the other side of the pipe is closed."""
    made = MilvusServer(folder)
    try:
        made.start()
        pipe.send(made.port)
        pipe.recv()
    except EOFError:
        pass
    finally:
        made.close()


def loading(room: Room) -> dict[str, Any]:
    """Add batches to an index and, in turn, insert the same rows into a second collection with bare calls.

    The bare calls have no more to do than to send rows that were made ready before.
    """
    place = room.folder / "index-milvus"
    for old in (place, room.folder / "milvus"):
        shutil.rmtree(old, ignore_errors=True)
    with server(room) as (address, client, memory):
        empty = memory()
        index = Index.create(room.given(room.rows, DIMENSION), place, engine=address)
        engine = index._mirror.engine  # type: ignore[union-attr]
        _second_collection(client)
        ours = bare = 0.0
        for batch in batches(room.rows):
            begun = time.perf_counter()
            index.add(batch)
            ours += time.perf_counter() - begun
            prepared = list(chain.from_iterable(engine.prepare(_rows_of(index, len(batch)))))
            begun = time.perf_counter()
            for first in range(0, len(prepared), MESSAGE):
                client.insert(BARE, prepared[first : first + MESSAGE], timeout=60)
            bare += time.perf_counter() - begun
        client.drop_collection(BARE)
        client.flush(NAME, timeout=600)
        waited = _until_indexed(client)
    return {
        "sequences": room.rows,
        "dimension": DIMENSION,
        "ours_rows_per_s": round(room.rows / ours),
        "bare_rows_per_s": round(room.rows / bare),
        "ours_to_bare": round(bare / ours, 3),
        "until_indexed_s": waited,
        "empty_server_bytes": empty,
    }


def searching(room: Room) -> dict[str, Any]:
    """Search after embedding beside the bare call, without and with a condition."""
    place = room.folder / "index-milvus"
    with server(room) as (address, client, memory):
        config = json.loads((place / "index.json").read_text())
        (place / "index.json").write_text(json.dumps({**config, "engine": address}))  # the port is another one
        client.load_collection(NAME)
        given, asked = room.given(room.rows, DIMENSION), singles()
        index = Index.open(place, given)
        assert len(index) == room.rows
        expression = Filter.of(CONDITION).for_columns(index._store.schema, to_expression)

        def bare(condition: str, query: int) -> Any:
            return client.search(
                NAME,
                [given.queries[query]],
                filter=condition,
                limit=10,
                output_fields=["nsr_id"],
                search_params={"params": {"ef": 128}},
                anns_field="nsr_embedding",
                consistency_level="Session",
                timeout=60,
            )

        found = in_turn(
            {
                "ours_ms": lambda q: index.search(asked[q], 10),
                "bare_ms": lambda q: bare("", q),
                "ours_filtered_ms": lambda q: index.search(asked[q], 10, where=CONDITION),
                "bare_filtered_ms": lambda q: bare(expression, q),
            },
            rounds=1,
        )
        hits = [index.search(query, 10, where=CONDITION) for query in asked[:20]]
        assert all(hit.metadata["role"] == "r3" for some in hits for hit in some)
        exact = Index.open(room.index(room.rows, DIMENSION), given)
        best = [{hit.id for hit in exact.search(query, 10, exhaustive=True)} for query in asked[:50]]
        recall = [len({hit.id for hit in index.search(asked[row], 10)} & best[row]) / 10 for row in range(50)]
        server_bytes = memory()
    return {
        "sequences": room.rows,
        "dimension": DIMENSION,
        **found,
        "ours_to_bare": round(found["ours_ms"] / found["bare_ms"], 3),
        "ours_to_bare_filtered": round(found["ours_filtered_ms"] / found["bare_filtered_ms"], 3),
        "most_rows_that_came": max(some.report.comparisons for some in hits),
        "recall@10": round(sum(recall) / len(recall), 4),
        "server_bytes": server_bytes,
        "folder_bytes": sum(file.stat().st_size for file in place.rglob("*") if file.is_file()),
    }


def _second_collection(client: Any) -> None:
    """Make a collection with the fields and the index of the first one."""
    from pymilvus import MilvusClient

    told = client.describe_collection(NAME)
    schema = MilvusClient.create_schema(auto_id=False, enable_dynamic_field=False)
    for field in told["fields"]:
        schema.add_field(field["name"], field["type"], is_primary=bool(field.get("is_primary")), **field["params"])
    indexes = client.prepare_index_params()
    indexes.add_index("nsr_embedding", index_type="HNSW", metric_type="IP", params={"M": 16, "efConstruction": 128})
    client.create_collection(BARE, schema=schema, index_params=indexes)


def _rows_of(index: Index, number: int) -> pa.Table:
    """Return the rows that were added last."""
    index._store.refresh()
    store = index._store.pinned()
    last = pa.Table.from_batches(list(store.scan(store.schema.names, after=int(_rows_of.last))))
    assert last.num_rows == number
    _rows_of.last = last.column("nsr_serial").to_numpy().max()
    return last


_rows_of.last = -1


def _until_indexed(client: Any) -> float | None:
    """Return the seconds until the server has indexed everything; None if it takes longer than we wait."""
    [name], begun = client.list_indexes(NAME), time.perf_counter()
    while int(client.describe_index(NAME, name).get("pending_index_rows", 0)):
        if time.perf_counter() - begun > LONGEST_WAIT:
            return None
        time.sleep(1)
    return round(time.perf_counter() - begun, 1)


def _memory(process: int) -> int:
    """Return the memory of the server, below the process that keeps it."""
    below = psutil.Process(process).children(recursive=True)
    return sum(one.memory_info().rss for one in below if "milvus" in one.name())
