"""Bulk work on a Ray cluster of two nodes, one of which is killed in the middle: nothing lost, nothing twice."""

from __future__ import annotations

import os
import threading
import time
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from cli.calling import call
from naive import index as naive
from neuroseqret import Index, UserError, methods
from neuroseqret.distributed import Cluster, RemoteEmbedder, embed_file
from neuroseqret.distributed import cluster as cluster_module

CORPUS = naive.some_sequences(600, seed=1)
TESTS = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def ray_cluster():
    """Two nodes of one slot each; the nodes know the tests' own model."""
    pytest.importorskip("ray")
    from ray.cluster_utils import Cluster as Nodes

    os.environ["PYTHONPATH"] = f"{TESTS}:{os.environ.get('PYTHONPATH', '')}"
    os.environ["RAY_ENABLE_UV_RUN_RUNTIME_ENV"] = "0"
    small = {"num_cpus": 1, "object_store_memory": 100 << 20, "include_dashboard": False}
    nodes = Nodes(initialize_head=True, head_node_args=small)
    second = nodes.add_node(num_cpus=1, object_store_memory=100 << 20)
    nodes.wait_for_nodes()
    yield nodes, second
    nodes.shutdown()


def batches(size=20):
    return (CORPUS[begin : begin + size] for begin in range(0, len(CORPUS), size))


def test_a_node_dies_in_the_middle(ray_cluster, tmp_path, monkeypatch):
    nodes, second = ray_cluster
    model = naive.TinyEmbedder()
    monkeypatch.setitem(methods.MODELS, "tiny", "naive.index:TinyEmbedder")
    folder = model.save(tmp_path / "model")
    out = tmp_path / "vectors.parquet"
    monkeypatch.setattr(cluster_module, "_embed", _slowly)

    def watched():
        for number, batch in enumerate(batches()):
            if number == 8:  # at this point the second node has batches under way
                threading.Thread(target=nodes.remove_node, args=(second,), kwargs={"allow_graceful": False}).start()
            yield batch

    with Cluster(nodes.address, folder) as cluster:
        assert cluster.slots == 2
        assert embed_file(cluster, watched(), out, "corpus", {}) == 600
        table = pq.read_table(out)
        assert table.column("id").to_pylist() == CORPUS.ids.to_pylist()
        vectors = np.array(table.column("embedding").to_pylist(), np.float32)
        np.testing.assert_allclose(vectors, model.embed(CORPUS, "corpus"), atol=1e-6)
        assert not out.with_name("vectors.parquet.parts").exists()

        # A run that is cut off goes on: only what is missing is embedded again.
        again = tmp_path / "again.parquet"

        def cut_off():
            for number, batch in enumerate(batches(100)):
                if number == 5:
                    raise KeyboardInterrupt
                yield batch

        with pytest.raises(KeyboardInterrupt):
            embed_file(cluster, cut_off(), again, "corpus", {})
        parts = sorted(again.with_name("again.parquet.parts").glob("*-*.parquet"))
        assert parts
        sent = []
        begin = cluster.embed
        monkeypatch.setattr(cluster, "embed", lambda batch, role: sent.append(len(batch)) or begin(batch, role))
        assert embed_file(cluster, batches(100), again, "corpus", {}) == 600
        assert len(sent) == 6 - len(parts)
        assert pq.read_table(again).equals(table)

        # The same through an index: every sequence once.
        index = Index.create(model, tmp_path / "index")
        added = index.add(batches(100), embedder=RemoteEmbedder(cluster, model), at_once=cluster.slots)
        assert added.added == 600
        assert Counter(index.get(CORPUS.ids.to_pylist()).ids.to_pylist()).most_common(1)[0][1] == 1
        assert len(index) == 600
        assert index.check() == []

    pq.write_table(CORPUS.table, tmp_path / "corpus.parquet")
    on_ray = ("--ray", nodes.address)
    told = call("embed", str(folder), str(tmp_path / "corpus.parquet"), "--out", str(tmp_path / "cli.parquet"), *on_ray)
    assert told.returncode == 0, told.stderr
    assert pq.read_table(tmp_path / "cli.parquet").equals(table)
    told = call("index", "add", str(index.folder), str(tmp_path / "corpus.parquet"), *on_ray)
    assert "600 already there" in told.stderr


def test_no_cluster(tmp_path):
    pytest.importorskip("ray")
    folder = naive.TinyEmbedder().save(tmp_path / "model")
    with pytest.raises(UserError, match=r"127\.0\.0\.1:1: no Ray cluster answers.*ray start --head"):
        Cluster("127.0.0.1:1", folder)


def _slowly(model, sequences, role):
    from neuroseqret import methods
    from neuroseqret.distributed.cluster import _embed

    time.sleep(0.05)
    methods.MODELS["tiny"] = "naive.index:TinyEmbedder"
    return _embed(model, sequences, role)
