"""Nothing acknowledged is lost, nothing is there twice, and a damaged index says so in one line."""

from __future__ import annotations

import json
import shutil
import subprocess
import threading
import time
from pathlib import Path

import pytest

from commanded_process import commanded
from naive import index as naive
from neuroseqret.candidates.finders import EXHAUSTIVE_BELOW, choose_finder
from neuroseqret.errors import UserError
from neuroseqret.index import Index, keys, reader

HERE = Path(__file__).resolve().parent
KILLS = 8


@pytest.fixture(scope="module")
def send():
    """Sends a command to the adding process and gives its answer."""
    with commanded(HERE / "adding_process.py") as send:
        yield send


def present(index):
    """All ids in the index, by a search for everything."""
    ids = [hit.id for hit in index.search(naive.some_sequences(1)[0], 100_000)]
    assert len(ids) == len(set(ids)), "a sequence is there twice"
    return set(ids)


def answers(index, queries):
    """Hits of every query; those that tie with the last one are left out, any of them may be it."""
    return [[(h.id, h.score) for h in hits if h.score > hits[-1].score] for hits in index.search(queries)]


def test_no_acknowledged_sequence_is_lost_to_kill_9(tiny, tmp_path, send):
    folder, acknowledged = tmp_path / "index", tmp_path / "acknowledged"
    Index.create(tiny, folder, naive.some_sequences(60))
    acknowledged.write_text("".join(f"s{i}\n" for i in range(60)))
    queries = naive.some_sequences(5, seed=3)
    for turn in range(KILLS):
        assert send("kill", folder, turn, acknowledged) == "killed"
        index = Index.open(folder)
        missing = set(acknowledged.read_text().split()) - present(index)
        assert not missing
        found = answers(index, queries)
        shutil.rmtree(folder / "hot", ignore_errors=True)
        rebuilt = Index.open(folder)
        assert answers(rebuilt, queries) == found
    assert len(present(index)) > 60 + KILLS * 7 - 1


def test_two_processes_that_add_at_once_lose_nothing(tiny, tmp_path, send):
    folder = tmp_path / "index"
    Index.create(tiny, folder, naive.some_sequences(60))
    assert send("pair", folder) == "done"
    expected = {f"s{i}" for i in range(60)} | {f"{name}{i}" for name in ("a", "b", "both") for i in range(60)}
    assert present(Index.open(folder)) == expected


def test_two_threads_of_one_index_add_a_sequence_once(tiny, tmp_path, monkeypatch):
    corpus, more = naive.some_sequences(60), naive.some_sequences(40, seed=1, prefix="more")
    index = Index.create(tiny, tmp_path / "index", corpus)
    Index.open(tmp_path / "index").add(more)  # so that both threads have keys to read
    merge, merging = keys._first_of_each, threading.Event()

    def slowly(merged, values):
        if len(merged) == 100:  # the keys that were known with those that came
            merging.set()
            time.sleep(0.3)
        return merge(merged, values)

    monkeypatch.setattr(keys, "_first_of_each", slowly)
    other = threading.Thread(target=index.add, args=(more,))
    other.start()
    merging.wait()
    assert index.add(corpus).already_there == 60
    other.join()
    assert len(Index.open(tmp_path / "index")) == 100


def test_searching_goes_on_while_another_thread_adds(tiny, tmp_path, monkeypatch):
    monkeypatch.setattr(reader, "REBUILD_ROWS", 30)
    corpus = naive.some_sequences(200)
    index, writer = Index.create(tiny, tmp_path / "index", corpus[:20]), Index.open(tmp_path / "index")
    adding = threading.Thread(target=lambda: [writer.add(corpus[i : i + 20]) for i in range(20, 200, 20)])
    adding.start()
    sizes = [len(present(index))]
    while adding.is_alive():
        sizes.append(len(present(index)))
    adding.join()
    sizes.append(len(present(index)))
    assert sizes == sorted(sizes)
    assert set(sizes) <= set(range(20, 201, 20))
    assert sizes[-1] == 200


def test_a_full_disk_is_one_clear_error_and_changes_nothing(tiny, tmp_path):
    small = tmp_path / "small"
    small.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(small)]
    if shutil.which("mount") is None or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("mounting a small tmpfs is not permitted here")
    try:
        index = Index.create(tiny, small / "index", naive.some_sequences(50))
        expected = present(index)
        with pytest.raises(UserError, match="no space left on the device; the index is unchanged, free some space"):
            index.add(naive.some_sequences(5000, seed=4, prefix="more", longest=60))
        assert present(index) == expected
        assert present(Index.open(small / "index")) == expected
        index.remove("s0")
        index.add(naive.some_sequences(1, seed=5, prefix="one"))
        assert len(Index.open(small / "index")) == 50
    finally:
        subprocess.run(["umount", "-l", str(small)], check=True)


def test_a_search_structure_that_cannot_be_written_is_a_warning(tiny, tmp_path, monkeypatch):
    monkeypatch.setattr(reader, "REBUILD_ROWS", 10)

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("neuroseqret.index.hot_builder._write", full)
    index = Index.create(tiny, tmp_path / "index", naive.some_sequences(50))
    with pytest.warns(UserWarning, match=r"cannot be written \(No space left on device\); searching is slower"):
        assert len(present(index)) == 50


@pytest.fixture
def made(tiny, tmp_path):
    Index.create(tiny, tmp_path / "index", naive.some_sequences(30))
    return tmp_path / "index"


def refused(folder, words):
    with pytest.raises(UserError, match=words) as caught:
        Index.open(folder).search(naive.some_sequences(1)[0])
    assert "\n" not in str(caught.value)


def test_what_is_no_index_is_refused(tmp_path):
    refused(tmp_path / "nothing", r"not an index \(there is no such folder\)")
    (tmp_path / "foreign").mkdir()
    (tmp_path / "foreign" / "index.json").write_text('{"a": 1}')
    refused(tmp_path / "foreign", "not written by neuroseqret")
    (tmp_path / "foreign" / "index.json").write_text('{"form')
    refused(tmp_path / "foreign", "damaged")


def test_a_newer_format_is_refused(made):
    config = json.loads((made / "index.json").read_text())
    (made / "index.json").write_text(json.dumps({**config, "format_version": 99}))
    refused(made, "format version 99, this library reads 1")


def test_a_truncated_index_is_refused(made):
    data = next((made / "store").rglob("*.lance/data/*"))
    data.write_bytes(data.read_bytes()[:100])
    refused(made, "the store cannot be read")


def test_an_index_without_store_or_model_is_refused(made):
    shutil.move(made / "store", made / "elsewhere")
    refused(made, "store: missing, so the index is damaged")
    shutil.move(made / "elsewhere", made / "store")
    (made / "model" / "model.safetensors").write_bytes(b"")
    refused(made, "truncated or changed")
    shutil.rmtree(made / "model")
    refused(made, "not a model folder")


def test_an_exchanged_model_is_refused(made, tmp_path):
    naive.TinyEmbedder(dimension=8).save(made / "model")
    refused(made, "not the model that the index was made with")
    config = json.loads((made / "index.json").read_text())
    naive.TinyEmbedder().save(made / "model")
    del config["tensors_blake2b"]  # as the first folders were
    (made / "index.json").write_text(json.dumps(config))
    assert Index.open(made).search(naive.some_sequences(1)[0])


def test_an_index_of_an_earlier_format_says_what_to_do(made):
    file = made / "model" / "config.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "format_version": 2, "library_version": "0.1.0"}))
    refused(made, r"has format version 2 \(library 0.1.0\).* fit the model again.* then make the index again")


def test_creating_over_something_is_refused(tiny, made, tmp_path):
    with pytest.raises(UserError, match=r"there is an index already; add to it .* or choose another folder"):
        Index.create(tiny, made)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter.txt").write_text("dear")
    with pytest.raises(UserError, match="exists and is not empty"):
        Index.create(tiny, tmp_path / "mine")
    with pytest.raises(UserError, match="cannot be indexed"):
        Index.create(naive.LengthReranker(), tmp_path / "new")
    with pytest.raises(UserError, match="index option candidates"):
        Index.create(tiny, tmp_path / "new", candidates="magic")
    with pytest.raises(UserError, match="index option colour"):
        Index.create(tiny, tmp_path / "new", colour="red")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["index", "mine"]


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"window_events": 0}, "positive size"),
        ({"window_events": 5, "window_step": 2.5}, "whole numbers"),
        ({"window_events": 5, "window_step": -1}, "positive size"),
        ({"window_duration": float("nan")}, "finite number"),
        ({"window_step": 5}, "window_step needs window_events or window_duration"),
        ({"bits": 5000}, "1 to 1024 bits"),
        ({"tables": 0}, "number of bucket tables must be 1 to 255"),
        ({"table_bits": 99}, "must take 1 to 24 of the 64 bits"),
        ({"bits": 8, "table_bits": 9}, "must take 1 to 8 of the 8 bits"),
        ({"hash_preset": "foo"}, "no hash preset is called 'foo'"),
        ({"fraction": float("nan")}, "finite number"),
    ],
)
def test_settings_that_cannot_be_are_refused_before_anything_is_made(tiny, tmp_path, settings, words):
    with pytest.raises(UserError, match=words):
        Index.create(tiny, tmp_path / "index", **settings)
    assert not list(tmp_path.iterdir())


def test_auto_is_settled_by_size():
    assert choose_finder("auto", 100).method == "exhaustive"
    assert choose_finder("auto", EXHAUSTIVE_BELOW).method == "cells"
    assert choose_finder("buckets", 100).method == "buckets"
    assert choose_finder("buckets", 0).method == "exhaustive"
