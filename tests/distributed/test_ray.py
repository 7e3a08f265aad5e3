"""Bulk work on a Ray cluster of two nodes, one of which is killed in the middle: nothing lost, nothing twice."""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

import neuroseqret as nsr
from cli.calling import call
from naive import index as naive
from neuroseqret import Index, UserError, methods
from neuroseqret.distributed import Cluster, RemoteAnswers, RemoteEmbedder, embed_file, embedding, evaluating
from neuroseqret.errors import MissingExtraError
from neuroseqret.evaluation.protocol import make_task
from neuroseqret.evaluation.scoring import answer
from neuroseqret.methods.registry import make
from neuroseqret.readers import write_folder

CORPUS = naive.some_sequences(600, seed=1)
TESTS = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def ray_cluster():
    """Two nodes of one slot each; the nodes know the tests' own model."""
    pytest.importorskip("ray")
    from ray.cluster_utils import Cluster as Nodes

    os.environ["PYTHONPATH"] = f"{TESTS}:{os.environ.get('PYTHONPATH', '')}"
    os.environ["RAY_ENABLE_UV_RUN_RUNTIME_ENV"] = "0"
    os.environ["RAY_worker_niceness"] = "0"  # noqa: SIM112  # otherwise other tests here come first
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
    monkeypatch.setattr(embedding, "embed_batch", _slowly)

    def watched():
        for number, batch in enumerate(batches()):
            if number == 8:  # at this point the second node has batches under way
                threading.Thread(target=nodes.remove_node, args=(second,), kwargs={"allow_graceful": False}).start()
            yield batch

    with Cluster(nodes.address) as cluster:
        assert cluster.slots == 2
        embedder = RemoteEmbedder(cluster, folder, model)
        assert embed_file(embedder, watched(), out, "corpus", {}) == 600
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
            embed_file(embedder, cut_off(), again, "corpus", {})
        parts = sorted(again.with_name("again.parquet.parts").glob("*-*.parquet"))
        assert parts
        sent = []
        begin = embedder.begin
        monkeypatch.setattr(embedder, "begin", lambda batch, role: sent.append(len(batch)) or begin(batch, role))
        assert embed_file(embedder, batches(100), again, "corpus", {}) == 600
        assert len(sent) == 6 - len(parts)
        assert pq.read_table(again).equals(table)

        # The same through an index: every sequence once.
        index = Index.create(model, tmp_path / "index")
        added = index.add(batches(100), embedder=embedder, at_once=cluster.slots)
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


def test_evaluation_goes_on_after_a_node_dies_and_after_it_was_cut_off(ray_cluster, tmp_path, monkeypatch):
    nodes, _ = ray_cluster
    third = nodes.add_node(num_cpus=1, object_store_memory=100 << 20)
    nodes.wait_for_nodes()
    data = nsr.simulate(4, 12, 8, seed=3)
    tasks = [make_task(data.queries, data.corpus, data.relevance, protocol=p, negatives=9) for p in ("full", "sampled")]
    cosine, pairs = (
        make(name, "default").fit(data.queries, data.corpus, data.relevance) for name in ("histogram", "mass")
    )
    monkeypatch.setattr(evaluating, "answer_part", _answer_slowly)
    with Cluster(nodes.address) as cluster:
        begun, begin = [], cluster.begin

        def counted(job, *arguments):
            begun.append(job)
            if len(begun) == 3 and third in nodes.worker_nodes:  # the node that dies has jobs under way
                kill = {"args": (third,), "kwargs": {"allow_graceful": False}}
                threading.Thread(target=nodes.remove_node, **kill).start()
            return begin(job, *arguments)

        monkeypatch.setattr(cluster, "begin", counted)
        remote = RemoteAnswers(cluster, tmp_path)
        for model, task in ((pairs, tasks[0]), (pairs, tasks[1]), (cosine, tasks[0])):
            _same(remote(model, task), answer(model, task))
        assert not list(tmp_path.iterdir())

        def cut_off(parts, what, total):
            for number, part in enumerate(parts):
                if number == 3:
                    raise KeyboardInterrupt
                yield part

        with pytest.raises(KeyboardInterrupt):
            remote(pairs, tasks[0], cut_off)
        begun.clear()
        _same(remote(pairs, tasks[0]), answer(pairs, tasks[0]))
        jobs = -(-len(tasks[0].queries) // -(-len(tasks[0].queries) // evaluating.JOBS))
        assert len(begun) == jobs - 3

    monkeypatch.setenv("NEUROSEQRET_CACHE", str(tmp_path / "cache"))
    folder = write_folder(tmp_path / "data", data.corpus, data.queries).path
    told = call("evaluate", str(folder), "--method", "mass", "--no-cache", "--json", "-", "--ray", nodes.address)
    assert told.returncode == 0, told.stderr
    found = {name: row["AP"] for name, row in json.loads(told.stdout)["methods"].items()}
    here = nsr.evaluate(folder, "mass", cache=False)
    assert found == pytest.approx({result.name: result.mean("AP") for result in here.results}, abs=1e-6)


def _same(found, expected):
    np.testing.assert_array_equal(found.top_rows, expected.top_rows)
    np.testing.assert_allclose(found.top_scores, expected.top_scores, atol=1e-6)
    for name, values in expected.measures.items():
        np.testing.assert_allclose(found.measures[name], values, atol=1e-9)


def _answer_slowly(sent, rows, what):
    from neuroseqret.distributed.evaluating import answer_part

    time.sleep(0.2)
    return answer_part(sent, rows, what)


def test_no_cluster():
    pytest.importorskip("ray")
    with pytest.raises(UserError, match=r"127\.0\.0\.1:1: no Ray cluster answers.*ray start --head"):
        Cluster("127.0.0.1:1")


def test_a_missing_extra_gives_the_install_line(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'neuroseqret\[ray\]'"):
        Cluster("127.0.0.1:1")


def _slowly(model, sequences, role):
    from neuroseqret import methods
    from neuroseqret.distributed.embedding import embed_batch

    time.sleep(0.05)
    methods.MODELS["tiny"] = "naive.index:TinyEmbedder"
    return embed_batch(model, sequences, role)
