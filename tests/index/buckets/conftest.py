from __future__ import annotations

import itertools
import socket
import subprocess
import sys
import time

import pytest

from index.buckets.faulty_proxy import FaultyProxy

SECRET = "a-secret-that-nobody-may-see"
_NUMBERS = itertools.count()


@pytest.fixture(scope="session")
def moto_port():
    """An object store of its own process."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    for _ in range(600):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                break
        assert process.poll() is None, "moto_server did not start"
        time.sleep(0.05)
    yield port
    process.terminate()
    process.wait()


@pytest.fixture
def proxy(moto_port, monkeypatch, tmp_path):
    """The environment of one machine whose way to the store can fail."""
    made = FaultyProxy(moto_port)
    for name, value in {
        "AWS_ACCESS_KEY_ID": "tester",
        "AWS_SECRET_ACCESS_KEY": SECRET,
        "AWS_REGION": "us-east-1",
        "AWS_ENDPOINT_URL": made.url,
        "AWS_EC2_METADATA_DISABLED": "true",
        "NEUROSEQRET_CACHE": str(tmp_path / "cache"),
        "NEUROSEQRET_POLL_SECONDS": "0.1",
    }.items():
        monkeypatch.setenv(name, value)
    yield made
    made.close()


@pytest.fixture
def place(proxy):
    """The address of an index that is not there yet, in a bucket of its own."""
    import boto3

    name = f"tests-{next(_NUMBERS)}"
    boto3.client("s3", endpoint_url=proxy.url).create_bucket(Bucket=name)
    return f"s3://{name}/some/index"
