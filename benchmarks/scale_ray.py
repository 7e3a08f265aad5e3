"""Embedding a file on two nodes of Ray on this machine, beside one worker without Ray.

Real sequences, repeated with jitter, in a Parquet file; the trained model. One worker reads, embeds and writes as
`neuroseqret embed` does, on one core. The nodes have a core each, which they share with the process that reads, sends
and writes. Start-up ends when both nodes have embedded a few sequences.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil
import pyarrow.parquet as pq

import search_index as whole
from neuroseqret import methods
from neuroseqret.distributed import Cluster, RemoteEmbedder, embed_file
from neuroseqret.models.base import Embedder
from neuroseqret.readers import read_folder, scan_or_read
from neuroseqret.storage.vectors import LAYOUT, vector_table
from scale_room import Room, peak_bytes

ALONE = 50_000  # sequences of the worker without Ray: its rate does not depend on them


def cells(room: Room) -> dict[str, Any]:
    return {"ray-embed": lambda: embedding(room)}


def prepare(room: Room) -> None:
    corpus_file(room)


def corpus_file(room: Room) -> Path:
    """Return the Parquet file with the sequences, in the model's marks and unit."""
    file = room.folder / f"corpus-{room.rows}.parquet"
    if not file.exists():
        folder = read_folder(Path(os.environ["NEUROSEQRET_DATA"]) / "audio")
        none = whole.np.empty((0, 1), "f4")
        real = whole.Real(methods.load(room.folder / "model"), folder.corpus, folder.corpus[:0], none, none, None, None)
        writer, temporary = None, file.with_suffix(".new")
        for batch in whole.batches(room.rows, real):
            table = batch.with_meaning(folder.corpus.mark_names, folder.corpus.time_unit).table
            writer = writer or pq.ParquetWriter(temporary, table.schema)
            writer.write_table(table)
        writer.close()
        temporary.rename(file)
    return file


def embedding(room: Room) -> dict[str, Any]:
    """Embed with one worker, then on the cluster."""
    file, model = corpus_file(room), room.folder / "model"
    begun = time.perf_counter()
    loaded = methods.load(model)
    assert isinstance(loaded, Embedder)
    loaded.embed(next(iter(scan_or_read(file)))[:10], "corpus")
    alone_starts = time.perf_counter() - begun
    working = time.process_time()
    count, alone = by_one_worker(loaded, file, room.folder / "vectors-alone.parquet")
    alone_works = (time.process_time() - working) / count
    begun = time.perf_counter()
    with two_nodes() as address, Cluster(address) as cluster, watched() as memory:
        embedder = RemoteEmbedder(cluster, model)
        few = next(iter(scan_or_read(file)))[:10]
        for job in [embedder.begin(few, "corpus") for _ in range(4 * cluster.slots)]:
            cluster.result(job)
        starts = time.perf_counter() - begun
        begun, working, nodes_work = time.perf_counter(), time.process_time(), below()
        out = room.folder / "vectors.parquet"
        count = embed_file(embedder, scan_or_read(file), out, "corpus", {"run": begun})
        seconds = time.perf_counter() - begun
        driver_works, nodes_work = time.process_time() - working, below() - nodes_work
    assert count == room.rows == pq.read_metadata(out).num_rows
    return {
        "sequences": count,
        "cores": os.cpu_count(),
        "alone_per_s": round(alone),
        "alone_start_s": round(alone_starts, 1),
        "ray_per_s": round(count / seconds),
        "ray_start_s": round(starts, 1),
        "ray_to_alone": round(count / seconds / alone, 3),
        "alone_cpu_us": round(1e6 * alone_works, 1),
        "driver_cpu_us": round(1e6 * driver_works / count, 1),
        "nodes_cpu_us": round(1e6 * nodes_work / count, 1),
        "worker_peak_bytes": max(memory.values()),
        "driver_peak_bytes": peak_bytes(),
        "file_bytes": file.stat().st_size,
    }


def below() -> float:
    """Return the processor time of all processes below this one: the nodes and their workers."""
    spent = 0.0
    for one in psutil.Process().children(recursive=True):
        with suppress(psutil.Error):
            times = one.cpu_times()
            spent += times.user + times.system
    return spent


def by_one_worker(model: Embedder, file: Path, out: Path) -> tuple[int, float]:
    """Read, embed and write as `neuroseqret embed` does; return the number of sequences, and how many per second."""
    begun, done, writer = time.perf_counter(), 0, None
    for batch in scan_or_read(file):
        table = vector_table(batch.ids, model.embed(batch, "corpus", unknown_marks="keep", strict=None))
        writer = writer or pq.ParquetWriter(out, table.schema, **LAYOUT)
        writer.write_table(table)
        done += len(batch)
        if done >= ALONE:
            break
    assert writer is not None
    writer.close()
    return done, done / (time.perf_counter() - begun)


@contextmanager
def two_nodes() -> Iterator[str]:
    """Give the address of a cluster of two nodes with a core each."""
    from ray.cluster_utils import Cluster as Nodes

    os.environ["RAY_ENABLE_UV_RUN_RUNTIME_ENV"] = "0"
    os.environ["RAY_worker_niceness"] = "0"  # noqa: SIM112
    small = {"num_cpus": 1, "object_store_memory": 200 << 20}
    nodes = Nodes(initialize_head=True, head_node_args={**small, "include_dashboard": False})
    try:
        nodes.add_node(**small)
        nodes.wait_for_nodes()
        yield nodes.address
    finally:
        nodes.shutdown()


@contextmanager
def watched() -> Iterator[dict[int, int]]:
    """Note the most memory of every worker during the block, by its process."""
    found: dict[int, int] = {}
    end = threading.Event()

    def watch() -> None:
        while not end.wait(0.5):
            for process in psutil.process_iter(["pid", "name", "memory_info"]):
                if process.info["name"].startswith("ray::") and process.info["memory_info"]:
                    found[process.pid] = max(found.get(process.pid, 0), process.info["memory_info"].rss)

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield found
    finally:
        end.set()
        thread.join()
