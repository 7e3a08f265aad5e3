"""An index in an object store, over a store that fails in the usual ways."""

from __future__ import annotations

import shutil
import threading
import time
import warnings
from pathlib import Path

import boto3
import numpy as np
import pytest

from index.buckets.conftest import SECRET
from index.buckets.faulty_proxy import is_commit, is_read
from naive.index import LengthReranker
from neuroseqret.data.sequences import EventSequences
from neuroseqret.errors import MissingExtraError, UserError
from neuroseqret.feedback.judgements import judgements_of
from neuroseqret.index import Index, reader
from neuroseqret.index.store import SERIAL


def corpus(first: int, number: int) -> EventSequences:
    rng = np.random.default_rng(first)
    lists = [(np.cumsum(rng.random(4 + row % 5)).tolist(), [row % 3] * (4 + row % 5)) for row in range(number)]
    ids = [f"s{first + row}" for row in range(number)]
    made = EventSequences.from_lists(lists, ids=ids)
    return made.with_column("role", [("GK", "FW", None)[row % 3] for row in range(number)])


def until(wanted, seconds=10.0):
    end = time.monotonic() + seconds
    while not wanted():
        assert time.monotonic() < end, "did not happen in time"
        time.sleep(0.02)


def same_hits(one: Index, other: Index, queries: EventSequences, **options) -> None:
    for mine, theirs in zip(one.search(queries, k=7, **options), other.search(queries, k=7, **options), strict=True):
        assert [hit.id for hit in mine] == [hit.id for hit in theirs]
        np.testing.assert_allclose([hit.score for hit in mine], [hit.score for hit in theirs], rtol=1e-5)


def test_same_verbs_as_in_a_folder(tiny, place, tmp_path, monkeypatch):
    monkeypatch.setattr(reader, "REBUILD_ROWS", 30)
    both = [Index.create(tiny, where, corpus(0, 40)) for where in (place, tmp_path / "folder")]
    there, here = both
    queries = corpus(500, 3)
    for step in (
        lambda index: index.upsert(corpus(10, 5)),
        lambda index: index.remove(["s3", "s20", "nobody"]),
        lambda index: index.add(corpus(40, 4)),
        lambda index: index.compact(),
    ):
        assert step(there) == step(here)
        same_hits(there, here, queries)
        same_hits(there, here, queries, where="role = 'GK' or role is null")
        same_hits(there, here, queries, rerank=LengthReranker())
        assert there.get(["s5", "s12"]) == here.get(["s5", "s12"])
    assert there.check() == []
    assert len(there) == len(here) == 42
    assert there.info()["folder"] == place
    assert place in repr(there)
    again = Index.open(place)  # the model comes from the bucket
    same_hits(again, here, queries)
    shutil.rmtree(again.folder)  # at any time, also while the index is in use
    same_hits(again, here, queries, where="role = 'FW'")
    again.add(corpus(100, 60))  # so much that the structure is built again
    again.refresh(wait=True)
    here.add(corpus(100, 60))
    same_hits(again, here, queries)
    same_hits(Index.open(place), here, queries)
    (again.folder / "model" / "model.safetensors").write_bytes(b"damaged")
    same_hits(Index.open(place), here, queries)


def test_searching_never_waits_for_the_network(tiny, place, proxy, monkeypatch):
    monkeypatch.setattr(reader, "REBUILD_ROWS", 30)
    index = Index.create(tiny, place, corpus(0, 40))
    index.refresh(wait=True)
    index.add(corpus(40, 5))  # these are not in the structure
    queries, before = corpus(500, 2), index.search(id="s42", k=5)
    asked = proxy.asked
    until(lambda: proxy.asked > asked)  # another thread looks for commits
    gate, answered = threading.Event(), []
    proxy.fault = lambda request: answered.append(gate.wait(60))  # no answer
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert [hit.id for hit in index.search(id="s42", k=5)] == [hit.id for hit in before]
        assert {hit.metadata["role"] for hits in index.search(queries, where={"role": "FW"}) for hit in hits} == {"FW"}
        assert len(index.search(queries, k=45, rerank=LengthReranker())[0]) == 45
    assert answered == []  # a search that waits would have ended after an answer
    gate.set()


def test_opening_again_reads_only_what_is_new(tiny, place, proxy, monkeypatch):
    monkeypatch.setattr(reader, "REBUILD_ROWS", 30)
    index = Index.create(tiny, place, corpus(0, 40))
    index.refresh(wait=True)
    expected, read = index.search(id="s4", k=5), []
    proxy.fault = lambda asked: read.append(asked.path) if "/data/" in asked.path else None
    again = Index.open(place)
    assert [hit.id for hit in again.search(id="s4", k=5)] == [hit.id for hit in expected]
    assert len(again) == 40
    assert read == []  # the structure in the cache says which parts of the store it was built of
    index.remove(["s4"])
    index.add(corpus(40, 5))
    read.clear()
    again = Index.open(place)
    assert len(again) == 44
    assert again.search(id="s44", k=1)
    assert read


def test_replicas_see_each_other_and_lose_nothing(tiny, place, tmp_path, monkeypatch):
    Index.create(tiny, place)
    writers = []
    for number in range(3):  # as on three machines: nothing in common but the bucket
        monkeypatch.setenv("NEUROSEQRET_CACHE", str(tmp_path / f"machine-{number}"))
        writers.append(Index.open(place))
        assert len(writers[-1]) == 0
    done = []

    def write(number: int) -> None:
        for batch in range(4):
            done.append(writers[number].add(corpus(1000 * number + 10 * batch, 10)).added)
            writers[number].add(corpus(9000, 3))  # the same by all of them
        writers[number].remove(f"s{1000 * number}")

    threads = [threading.Thread(target=write, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert done == [10] * 12
    for index in writers:
        until(lambda index=index: len(index) == 3 * 39 + 3, 3.0)  # the stated time is two seconds at a poll of one
    store = writers[0]._store
    store.refresh()
    serials = np.concatenate([batch.column(SERIAL).to_numpy() for batch in store.scan([SERIAL])])
    assert len(np.unique(serials)) == len(serials) == 3 * 39 + 3
    assert writers[1].check() == []


@pytest.mark.parametrize("fault", ["lost", "500", "slow"])
def test_commits_through_faults(tiny, place, proxy, fault):
    index = Index.create(tiny, place, corpus(0, 5))
    proxy.times(1, fault, is_commit)
    assert index.add(corpus(100, 5)).added == 5
    proxy.times(1, fault, is_commit)
    assert index.upsert(corpus(100, 5)).replaced == 5
    assert len(index) == 10
    proxy.times(1, fault, is_commit)
    assert index.remove(corpus(100, 5).ids.to_pylist()) == 5
    proxy.fault = lambda asked: None
    opened = Index.open(place)
    assert len(opened) == 5
    assert opened.check() == []


@pytest.mark.parametrize("fault", ["500", "truncated", "slow"])
def test_reads_through_faults(tiny, place, proxy, fault, tmp_path, monkeypatch):
    monkeypatch.setattr(reader, "REBUILD_ROWS", 20)
    whole = Index.create(tiny, place, corpus(0, 40))
    monkeypatch.setenv("NEUROSEQRET_CACHE", str(tmp_path / "another machine"))
    proxy.times(3, fault, is_read)
    same_hits(Index.open(place), whole, corpus(500, 3))


def test_a_put_that_the_store_only_claims_to_have_made(tiny, place, proxy):
    index = Index.create(tiny, place, corpus(0, 5))
    proxy.times(1, "swallowed", is_commit)
    with pytest.raises(UserError, match="does not have it"):
        index.add(corpus(100, 5))
    assert index.add(corpus(100, 5)).added == 5
    assert len(Index.open(place)) == 10


def test_a_store_without_conditional_puts_is_refused(tiny, place, proxy):
    proxy.fault = lambda asked: "unconditional"
    with pytest.raises(UserError, match=r"ignores conditional puts \(If-None-Match\)"):
        Index.create(tiny, place)
    proxy.fault = lambda asked: None
    assert contents(place, proxy) == {}


def contents(place: str, proxy) -> dict[str, bytes]:
    client, bucket = boto3.client("s3", endpoint_url=proxy.url), place.split("/")[2]
    listed = client.list_objects_v2(Bucket=bucket).get("Contents", [])
    return {one["Key"]: client.get_object(Bucket=bucket, Key=one["Key"])["Body"].read() for one in listed}


def test_compact_leaves_files_of_writers_that_are_about_to_commit(tiny, place, proxy):
    index = Index.create(tiny, place, corpus(0, 5))
    store = next(key for key in contents(place, proxy) if "/data/" in key).rpartition("/")[0]
    boto3.client("s3", endpoint_url=proxy.url).put_object(
        Bucket=place.split("/")[2], Key=f"{store}/somebodys.lance", Body=b"not committed yet"
    )
    index.add(corpus(10, 5))
    index.compact(grace=0)
    assert f"{store}/somebodys.lance" in contents(place, proxy)
    assert len(Index.open(place)) == 10


def test_errors_name_the_endpoint_and_no_credentials(tiny, place, proxy, monkeypatch, tmp_path):
    index = Index.create(tiny, place, corpus(0, 5))
    judgements_of(index).append({"id": "s1"}, [("s2", True), ("s3", False)], "me")
    judgements_of(index).append({"id": "s1"}, [("s2", None)], "me")
    assert [one.id for one in judgements_of(index).latest()] == ["s3"]
    positions = [position for position, _ in judgements_of(index).read()]
    assert [one.id for _, one in judgements_of(index).read(positions[1])] == ["s2"]
    with pytest.raises(UserError, match="there is an index already"):
        Index.create(tiny, place)
    with pytest.raises(UserError, match="finds its candidates itself"):
        Index.create(tiny, place + "2", engine="milvus://127.0.0.1:19530/some")
    with pytest.raises(UserError, match="not an index"):
        Index.open(place + "-nowhere")
    with pytest.raises(UserError, match=r"s3://bucket/path.*not from the address") as refused:
        Index.open(f"s3://me:{SECRET}@bucket/index")
    assert SECRET not in str(refused.value)
    with pytest.raises(UserError, match=f"no-such-bucket.*cannot be read at {proxy.url}.*AWS_"):
        Index.open("s3://no-such-bucket/index")
    everything = contents(place, proxy) | {str(p): p.read_bytes() for p in Path(tmp_path).rglob("*") if p.is_file()}
    assert everything
    assert not any(SECRET.encode() in content for content in everything.values())
    monkeypatch.setitem(__import__("sys").modules, "boto3", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'neuroseqret\[s3\]'"):
        Index.open(place)
