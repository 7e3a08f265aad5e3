"""The command line and two servers over one bucket."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import neuroseqret as nsr
from cli.calling import call
from index.buckets.conftest import SECRET
from neuroseqret.methods.registry import make
from serving.running_server import RunningServer

DATA = nsr.simulate(3, 8, 3, seed=1)


@pytest.fixture
def files(tmp_path):
    """A model folder that every process can load, and the corpus in two files."""
    make("histogram", "default").fit(DATA.queries, DATA.corpus, DATA.relevance).save(tmp_path / "model")
    pq.write_table(DATA.corpus[:20].table, tmp_path / "first.parquet")
    pq.write_table(DATA.corpus[20:].table, tmp_path / "second.parquet")
    return tmp_path


def test_commands(files, place, proxy, monkeypatch):
    told = []

    def done(*arguments: object, code: int = 0) -> str:
        found = call(*map(str, arguments))
        told.append(found.stdout + found.stderr)
        assert found.returncode == code, told[-1]
        return found.stdout

    done("index", "create", files / "model", files / "first.parquet", "--out", place)
    assert json.loads(done("index", "add", place, files / "second.parquet", "--json"))["added"] == 4
    info = json.loads(done("index", "info", place, "--json"))
    assert info["sequences"] == 24
    assert info["folder"] == place
    assert info["bytes_in_bucket"] > 0
    last = DATA.corpus.ids.to_pylist()[-1]
    assert last in done("search", place, files / "second.parquet", "--query", last, "-k", "3")
    done("index", "remove", place, last)
    done("index", "compact", place)
    done("index", "check", place)
    assert json.loads(done("index", "info", place, "--json"))["sequences"] == 23

    done("index", "create", files / "model", files / "first.parquet", "--out", place, code=2)
    assert "there is an index already" in told[-1]
    done("index", "info", "s3://no-such-bucket/index", code=2)
    assert proxy.url in told[-1]
    proxy.fault = lambda asked: "500"
    done("index", "info", place, code=2)
    assert f"cannot be read at {proxy.url}" in told[-1]
    assert len(told[-1].strip().splitlines()) == 1
    assert not any(SECRET in text for text in told)


def until_seen(reader, part, there: bool) -> float:
    """Wait until another machine's sequences are found, or no longer; return the seconds."""
    begin, wanted = time.monotonic(), part.ids.to_pylist()[-1]
    while (wanted in [hit.id for hit in reader.search(part[-1:], k=24)[0]]) != there:
        assert time.monotonic() - begin < 60
        time.sleep(0.05)
    return time.monotonic() - begin


def test_two_servers_see_each_others_commits(files, place, tmp_path, monkeypatch):
    created = call("index", "create", str(files / "model"), str(files / "first.parquet"), "--out", place)
    assert created.returncode == 0, created.stderr
    monkeypatch.delenv("NEUROSEQRET_POLL_SECONDS")  # every second, as the page says
    logs = [tmp_path / "first.log", tmp_path / "second.log"]
    servers = []
    try:
        for number, log in enumerate(logs):  # as on two machines: nothing in common but the bucket
            monkeypatch.setenv("NEUROSEQRET_CACHE", str(tmp_path / f"machine-{number}"))
            servers.append(RunningServer(place, log=log))
        remote = [nsr.connect(server.url) for server in servers]
        extra = DATA.corpus[20:]
        for writer, reader, part in ((remote[0], remote[1], extra[:2]), (remote[1], remote[0], extra[2:])):
            for _ in range(5):  # the machine may be busy with other tests, so the best of some
                assert writer.add(part).added == 2
                if (seconds := until_seen(reader, part, there=True)) < 2.0:
                    break
                writer.remove(part.ids.to_pylist())
                until_seen(reader, part, there=False)
            assert seconds < 2.0, "docs/object-store.md states 2 seconds"
        assert [len(one.search(extra[:1], k=100)[0]) for one in remote] == [24, 24]
    finally:
        for server in servers:
            server.stop()
    assert not any(SECRET in log.read_text() for log in logs)
    folders = [file for file in Path(tmp_path).rglob("*") if file.is_file()]
    assert not any(SECRET.encode() in file.read_bytes() for file in folders)
