"""kill -9 past one machine: on writers, on servers and on Milvus, in turn; it continues where it stopped.

    python tests/torture/machines.py [--rounds 100] [--minutes 30]

    bucket-writer   a process that adds to an index in an object store
    bucket-server   `neuroseqret serve` over an index in an object store, while a client adds
    milvus-writer   a process that adds to an index whose engine is Milvus
    milvus-server   `neuroseqret serve` over such an index, while a client adds
    milvus          the Milvus server, while a process adds

After each round the index is opened again: what was acknowledged is there, every batch completely or not at all,
nothing twice, in the engine as in the store, and `index check` finds nothing. Results are in
results/machines/KIND.json; a round is not played if the server does not start on a busy machine.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import suppress
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np

import neuroseqret as nsr
import reliability_page
from milvus_server import TOKEN, MilvusServer
from naive.index import some_sequences
from neuroseqret.errors import UserError
from neuroseqret.index import Index
from neuroseqret.methods.registry import make
from serving.running_server import START_SECONDS, RunningServer
from torture.adding_batches import ROWS, batch

HERE = Path(__file__).resolve().parent
RESULTS = HERE.parents[1] / "results" / "machines"
KINDS = ("bucket-writer", "bucket-server", "milvus-writer", "milvus-server", "milvus")


class NotPlayed(Exception):
    """Nothing was killed and nothing was acknowledged, so the round says nothing."""


class Machines:
    """An object store, a Milvus server, and an index for each kind of harm."""

    def __init__(self, room: Path, kinds: tuple[str, ...] = KINDS) -> None:
        self.room, self.acknowledged = room, dict.fromkeys(kinds, 0)
        os.environ["PYTHONPATH"] = os.pathsep.join([str(HERE.parent), *filter(None, sys.path)])
        os.environ["NEUROSEQRET_CACHE"] = str(room / "cache")
        self.store, self.milvus = None, None
        corpus = some_sequences(60, seed=999, prefix="c")
        self.model = make("histogram", "default").fit(corpus[:10], corpus[10:])
        self.places: dict[str, str] = {}
        if any(kind.startswith("bucket") for kind in kinds):
            self.store = self._object_store()
        if any(kind.startswith("milvus") for kind in kinds):
            os.environ["NEUROSEQRET_MILVUS_TOKEN"] = TOKEN
            self.milvus = MilvusServer(room / "milvus").start()
        for kind in kinds:
            in_bucket = kind.startswith("bucket")
            self.places[kind] = f"s3://torture/{kind}" if in_bucket else str(room / f"index-{kind}")
            engine = None if in_bucket else self.milvus.address(kind.replace("-", "_"))
            Index.create(self.model, self.places[kind], engine=engine)

    def _object_store(self) -> subprocess.Popen:
        import boto3

        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        os.environ |= {
            "AWS_ACCESS_KEY_ID": "tester",
            "AWS_SECRET_ACCESS_KEY": "secret",
            "AWS_REGION": "us-east-1",
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
            "AWS_EC2_METADATA_DISABLED": "true",
        }
        command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for _ in range(600):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.1)
        boto3.client("s3", endpoint_url=os.environ["AWS_ENDPOINT_URL"]).create_bucket(Bucket="torture")
        return process

    def close(self) -> None:
        if self.store is not None:
            self.store.kill()
            self.store.wait()
        if self.milvus is not None:
            self.milvus.close()

    def round(self, kind: str, number: int) -> int:
        """Play a round and return how many batches it acknowledged; an `AssertionError` says what went wrong."""
        rng = np.random.default_rng(number)
        acks, pause = int(rng.integers(1, 4)), float(rng.uniform(0, 0.3))
        first = self.acknowledged[kind]
        done = self._serve(kind, first, acks, pause) if "server" in kind else self._write(kind, first, acks, pause)
        self.acknowledged[kind] = self._look(kind, first + done)
        return done

    def _write(self, kind: str, first: int, acks: int, pause: float) -> int:
        """Let a process add batches; kill it, or Milvus."""
        command = [sys.executable, HERE / "adding_batches.py", self.places[kind], str(first)]
        writer = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        done = 0
        for _ in range(acks):
            assert writer.stdout.readline().strip() == str(first + done), writer.stderr.read()[-500:]
            done += 1
        time.sleep(pause)
        if kind == "milvus":
            self.milvus.kill()
            left, told = writer.communicate(timeout=300)
            assert "milvus://" in told.splitlines()[-1], told[-500:]  # one line that names the engine
            self.milvus.start()
        else:
            writer.kill()
            left, _ = writer.communicate()
        return done + len(left.split())

    def _serve(self, kind: str, first: int, acks: int, pause: float) -> int:
        """Let a client add batches through a server, and kill the server."""
        try:
            server = RunningServer(self.places[kind], log=self.room / "server.log")
        except AssertionError as error:  # on a machine that is too busy
            raise NotPlayed(f"the server did not start in {START_SECONDS:.0f} s") from error
        done = []

        def add() -> None:
            with suppress(UserError, OSError):
                client = nsr.connect(server.url)
                for number in range(first, first + 1000):
                    client.add(batch(number))
                    done.append(number)

        client = threading.Thread(target=add)
        client.start()
        end = time.monotonic() + 120
        while len(done) < acks and time.monotonic() < end and client.is_alive():
            time.sleep(0.01)
        time.sleep(pause)
        server.stop(signal.SIGKILL)
        client.join(120)
        assert len(done) >= acks, (self.room / "server.log").read_text()[-500:]
        return len(done)

    def _look(self, kind: str, acknowledged: int) -> int:
        """Compare what is left with what was acknowledged; return the number of the first batch that is not there."""
        index = Index.open(self.places[kind])
        assert (told := index.check()) == [], told
        index._store.refresh()
        ids = [name for found in index._store.scan(["id"]) for name in found.column("id").to_pylist()]
        assert len(ids) == len(set(ids)) == len(index), (len(ids), len(set(ids)), len(index))
        batches = len(ids) // ROWS
        assert batches in (acknowledged, acknowledged + 1), (batches, acknowledged)  # the last one may lack its answer
        assert set(ids) == {name for number in range(batches) for name in batch(number).ids.to_pylist()}
        if index._mirror is not None:
            assert index._mirror.engine.count() == len(ids)
        return batches


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=100, help="stop after this many rounds in all")
    parser.add_argument("--minutes", type=float, default=30.0, help="stop after this long")
    given = parser.parse_args()
    found = {kind: _read(kind) for kind in KINDS}
    end = time.monotonic() + 60 * given.minutes
    with tempfile.TemporaryDirectory() as folder:
        machines = Machines(Path(folder))
        try:
            while sum(cell["rounds"] for cell in found.values()) < given.rounds and time.monotonic() < end:
                kind = min(KINDS, key=lambda name: found[name]["rounds"])
                cell = found[kind]
                try:
                    cell["acknowledged"] += ROWS * machines.round(kind, cell["rounds"])
                except AssertionError as error:
                    cell["failures"].append(f"round {cell['rounds']}: {str(error)[:500]}")
                    print(f"{kind}: {cell['failures'][-1]}", flush=True)
                    cell["rounds"] += 1
                    break  # what is acknowledged is not known any more
                except NotPlayed as error:
                    cell["not_played"].append(f"round {cell['rounds']}: {error}")
                else:
                    cell["rounds"] += 1
                finally:
                    cell["last"] = f"{datetime.now(timezone.utc):%Y-%m-%d}"
                    RESULTS.mkdir(parents=True, exist_ok=True)
                    (RESULTS / f"{kind}.json").write_text(json.dumps(cell, indent=1) + "\n")
                print(f"{kind}: round {cell['rounds']}", flush=True)
        finally:
            machines.close()
    reliability_page.write()
    failures = sum(len(cell["failures"]) for cell in found.values())
    print(f"{sum(cell['rounds'] for cell in found.values())} rounds in all, {failures} failures")
    return 1 if failures else 0


def _read(kind: str) -> dict[str, Any]:
    file = RESULTS / f"{kind}.json"
    empty = {"rounds": 0, "acknowledged": 0, "failures": [], "not_played": [], "last": ""}
    return empty | (json.loads(file.read_text()) if file.exists() else {})


if __name__ == "__main__":
    sys.exit(main())
