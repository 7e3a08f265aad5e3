"""Two dialects of Milvus: the real server 2.3.5 from its wheel, and Milvus Lite, which speaks the newer one."""

from __future__ import annotations

import itertools

import pytest

from milvus_server import TOKEN, MilvusServer

_number = itertools.count()


@pytest.fixture(scope="session")
def server(tmp_path_factory):
    """One server for all tests: starting it takes most of their time."""
    pytest.importorskip("milvus", reason="the server's wheel is for Linux on x86-64")
    made = MilvusServer(tmp_path_factory.mktemp("milvus")).start()
    yield made
    made.close()


@pytest.fixture(scope="session")
def lite_file(tmp_path_factory):
    return tmp_path_factory.mktemp("lite") / "milvus.db"


@pytest.fixture
def token(monkeypatch):
    monkeypatch.setenv("NEUROSEQRET_MILVUS_TOKEN", TOKEN)


@pytest.fixture(params=["server", "lite"])
def address(request, token):
    """The address of a collection that does not exist yet."""
    name = f"c{next(_number)}"
    if request.param == "server":
        return request.getfixturevalue("server").address(name)
    return f"milvus://{request.getfixturevalue('lite_file')}/{name}"


@pytest.fixture
def server_address(server, token):
    return server.address(f"c{next(_number)}")
