"""An index whose candidates Milvus finds: the same hits as without it, in line with the store after any crash."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from cli.calling import call
from naive import index as naive
from neuroseqret import Index, UserError
from neuroseqret.errors import MissingExtraError
from neuroseqret.index.engines import milvus
from neuroseqret.index.engines.milvus import MilvusEngine

CORPUS = naive.some_sequences(300, seed=1)
QUERIES = naive.some_sequences(5, seed=2, prefix="q")


@pytest.fixture
def messages(monkeypatch):
    """Rows go to Milvus in messages of 34."""
    monkeypatch.setattr(milvus, "_INSERT_BYTES", 34 * (4 * 16 + 512))


@pytest.fixture
def both(tmp_path, tiny, address, messages):
    """The same corpus in an index with Milvus and in one without."""
    pushed = Index.create(tiny, tmp_path / "pushed", CORPUS, engine=address)
    return pushed, Index.create(tiny, tmp_path / "local", CORPUS)


def same(found, wanted):
    for mine, theirs in zip(found, wanted, strict=True):
        assert [hit.id for hit in mine] == [hit.id for hit in theirs]
        np.testing.assert_allclose([hit.score for hit in mine], [hit.score for hit in theirs], atol=1e-5)
        assert [hit.as_dict() | {"score": 0} for hit in mine] == [hit.as_dict() | {"score": 0} for hit in theirs]


def test_the_same_hits_as_without_an_engine(both):
    pushed, local = both
    same(pushed.search(QUERIES), local.search(QUERIES, exhaustive=True))
    same(pushed.search(QUERIES, k=50, expand=True), local.search(QUERIES, k=50, expand=True, exhaustive=True))
    reranker = naive.LengthReranker()
    same(pushed.search(QUERIES, k=5, rerank=reranker), local.search(QUERIES, k=5, rerank=reranker, exhaustive=True))
    for where in ("role = 'GK' and year between 2003 and 2009", {"group": {"in": ["g1", "g2"]}}, "role like 'D%'"):
        same(pushed.search(QUERIES, where=where), local.search(QUERIES, where=where, exhaustive=True))
    same([pushed.search(id="s7")], [local.search(id="s7", exhaustive=True)])
    assert len(pushed) == 300
    report = pushed.search(QUERIES[0]).report
    assert (report.method, report.corpus, report.comparisons) == ("milvus", 300, 11)
    assert not (pushed.folder / "hot").exists()  # nothing is built that Milvus has


def test_changes_reach_the_engine(both, address):
    pushed, local = both
    other = naive.some_sequences(40, seed=9)  # ids s0 to s39 with other events
    for index in both:
        index.upsert(other)
        assert index.remove(["s50", "s51", "nobody"]) == 2
        index.add(naive.some_sequences(10, seed=5, prefix="new", ends=[1e6] * 10))
    opened = Index.open(pushed.folder)
    for index in (pushed, opened):
        same(index.search(QUERIES, k=30), local.search(QUERIES, k=30, exhaustive=True))
        assert index.check() == []
        index.compact()


def test_windows(tmp_path, tiny, address):
    settings = {"window_events": 8, "window_step": 4}
    pushed = Index.create(tiny, tmp_path / "pushed", CORPUS[:60], engine=address, **settings)
    local = Index.create(tiny, tmp_path / "local", CORPUS[:60], **settings)
    same(pushed.search(QUERIES), local.search(QUERIES, exhaustive=True))
    same([pushed.search(id="s7", events=(0, 8))], [local.search(id="s7", events=(0, 8), exhaustive=True)])


def test_differences_are_told_and_healed(both):
    pushed, local = both
    engine = pushed._mirror.engine
    serials = engine.serials()
    engine.delete(serials[:7])
    engine.insert([[entity | {"nsr_serial": 5} for entity in engine.prepare(_rows(pushed))[0][:1]]])
    assert len(pushed.check()) == 2
    checked = call("index", "check", str(pushed.folder))
    assert checked.returncode == 1
    assert "7 of 300 rows are missing" in checked.stdout
    assert "1 rows are there that should not be; 'neuroseqret index sync'" in " ".join(checked.stdout.split())
    healed = call("index", "sync", str(pushed.folder))
    assert healed.returncode == 0
    assert "7 added, 1 removed" in healed.stderr
    assert pushed.check() == []
    same(pushed.search(QUERIES), local.search(QUERIES, exhaustive=True))


def test_a_row_that_is_there_twice(tmp_path, tiny, server_address):
    """Milvus stores a row twice if a client repeats a call that had succeeded; `check` tells, `sync` repairs."""
    index = Index.create(tiny, tmp_path / "index", CORPUS[:50], engine=server_address)
    engine = index._mirror.engine
    engine.insert(engine.prepare(_rows(index).slice(0, 2)))
    assert engine.count() == 52
    assert index.check()
    index.sync()
    assert index.check() == []
    assert engine.count() == 50


def test_a_crash_between_store_and_engine_is_healed(tmp_path, tiny, address, monkeypatch):
    index = Index.create(tiny, tmp_path / "index", CORPUS[:50], engine=address)
    with monkeypatch.context() as patched:
        patched.setattr(MilvusEngine, "insert", _interrupted)
        with pytest.raises(KeyboardInterrupt):
            index.add(CORPUS[50:80])
    assert index._mirror.engine.count() == 50
    opened = Index.open(index.folder)
    assert opened._mirror.engine.count() == len(opened) == 80
    assert opened.check() == []
    opened._mirror.engine.clear()  # somebody dropped the collection
    again = Index.open(index.folder)
    assert again.check() == []
    assert again.search(CORPUS[60])[0].id == "s60"


def test_an_engine_that_fails_leaves_the_change_for_later(tmp_path, tiny, address, monkeypatch):
    index = Index.create(tiny, tmp_path / "index", CORPUS[:50], engine=address)
    with monkeypatch.context() as patched:
        patched.setattr(MilvusEngine, "insert", _refused)
        with pytest.raises(UserError, match=r"no answer; the change is stored in the index and reaches the engine"):
            index.add(CORPUS[50:80])
    index.add(CORPUS[80:90])  # the next change brings the earlier one along
    assert index.check() == []
    assert len(index) == index._mirror.engine.count() == 90


def test_one_of_several_messages_is_lost(tmp_path, tiny, server_address, monkeypatch, messages):
    from pymilvus.exceptions import MilvusException

    index = Index.create(tiny, tmp_path / "index", CORPUS[:10], engine=server_address)
    client, sent = index._mirror.engine._client, []

    def insert(collection, entities, insert=client.insert, **options):
        sent.append(len(entities))
        if len(sent) == 2:
            raise MilvusException(message="lost on the way")
        return insert(collection, entities, **options)

    with monkeypatch.context() as patched:
        patched.setattr(client, "insert", insert)
        with pytest.raises(UserError, match=r"lost on the way; the change is stored in the index and reaches"):
            index.add(CORPUS[10:150])
    assert sorted(sent) == [4, 34, 34, 34, 34]
    index.add(CORPUS[150:160])
    assert index.check() == []
    assert len(index) == index._mirror.engine.count() == 160


def test_writers_and_the_server_are_killed(tmp_path, tiny, server, server_address):
    """kill -9 on the writer, several times, and on the server: what was acknowledged is in both, nothing twice."""
    index = Index.create(tiny, tmp_path / "index", engine=server_address)
    environment = os.environ | {"PYTHONPATH": f"{Path(__file__).parents[2]}:{os.environ.get('PYTHONPATH', '')}"}
    acknowledged = 0
    for kill_server, number in ((False, 3), (True, 3)):
        command = [sys.executable, Path(__file__).parent / "adding.py", index.folder, str(acknowledged)]
        writer = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)
        for _ in range(number):
            assert int(writer.stdout.readline()) == acknowledged, writer.stderr.read()
            acknowledged += 1
        if kill_server:
            server.kill()
            last, told = writer.communicate(timeout=200)
            acknowledged += len(last.split())
            assert f"milvus://localhost:{server.port}/" in told.splitlines()[-1]
            server.start()
        else:
            writer.kill()
            acknowledged += len(writer.communicate()[0].split())
        opened = Index.open(index.folder)
        assert opened.check() == []
        assert len(opened) == opened._mirror.engine.count() >= 20 * acknowledged
        assert len(opened) % 20 == 0


def test_with_strong_consistency_all_see_a_change_at_once(tmp_path, tiny, server, token):
    address = server.address("strong", consistency="strong")
    index = Index.create(tiny, tmp_path / "index", CORPUS[:50], engine=address)
    other = Index.open(index.folder)
    for row in range(50, 55):
        index.add(CORPUS[row : row + 1])
        assert other.search(CORPUS[row], k=1)[0].id == f"s{row}"
        index.remove(f"s{row}")
        assert other.search(CORPUS[row], k=1)[0].id != f"s{row}"


def test_binary_codes(tmp_path, tiny, server_address):
    many = naive.some_sequences(1500, seed=3)
    index = Index.create(tiny, tmp_path / "index", many, engine=server_address, candidates="hamming", hash="rotation")
    local = Index.create(tiny, tmp_path / "local", many)
    wanted = local.search(QUERIES, exhaustive=True)
    found = index.search(QUERIES, at_least=400)
    shared = [len({h.id for h in mine} & {h.id for h in theirs}) for mine, theirs in zip(found, wanted, strict=True)]
    assert np.mean(shared) >= 9  # of 10, with 400 of 1,500 compared
    exact = {hit.id: hit.score for hit in local.search(QUERIES[0], k=1500, exhaustive=True)}
    np.testing.assert_allclose([h.score for h in found[0]], [exact[h.id] for h in found[0]], atol=1e-5)
    assert found[0].report.method == "milvus-hamming"
    assert found[0].report.comparisons == 400
    index.add(naive.some_sequences(5, seed=4, prefix="late"))
    index.compact()  # learns the codes again
    assert index.check() == []
    assert len(index.search(QUERIES, where="role = 'GK'", k=3)[0]) == 3


@pytest.mark.parametrize(
    ("engine", "told"),
    [
        ("milvus://root:geheim@localhost:1/c", "set the environment variable NEUROSEQRET_MILVUS_TOKEN"),
        ("milvus://localhost:1/c", "milvus://localhost:1/c: no Milvus server answers"),
        ("milvus://localhost:1/bad-name", "name of the collection"),
        ("milvus://localhost:port/c", "cannot be read"),
        ("redis://localhost/c", "no engine is called 'redis'; engines are milvus"),
        ("milvus://localhost/c?speed=high", "no option is called 'speed'; options are consistency, tls, database"),
        ("milvus://localhost/c?consistency=high", "choose one of session, bounded, eventually, strong"),
        ("milvus://localhost/c?tls=nofile.pem", "tls must be on, off or the file"),
        ("milvus:///nowhere/c", "ends with .db"),
    ],
)
def test_addresses_that_cannot_be_used(tmp_path, tiny, monkeypatch, engine, told):
    monkeypatch.setattr("neuroseqret.index.engines.milvus._CONNECT", 1.0)
    with pytest.raises(UserError) as refused:
        Index.create(tiny, tmp_path / "index", engine=engine)
    assert told in str(refused.value)
    assert "geheim" not in str(refused.value)
    assert "\n" not in str(refused.value)
    assert not (tmp_path / "index").exists()


def test_a_missing_extra_gives_the_install_line(tmp_path, tiny, monkeypatch):
    monkeypatch.setitem(sys.modules, "pymilvus", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'neuroseqret\[milvus\]'"):
        Index.create(tiny, tmp_path / "index", engine="milvus://localhost:1/c")
    assert not (tmp_path / "index").exists()


def test_credentials_stay_in_the_environment(tmp_path, tiny, server_address, monkeypatch, capfd):
    index = Index.create(tiny, tmp_path / "index", CORPUS[:5], engine=server_address)
    monkeypatch.setenv("NEUROSEQRET_MILVUS_TOKEN", "root:wrong-secret")
    with pytest.raises(UserError, match="does not accept it; set the environment variable") as refused:
        Index.open(index.folder)
    monkeypatch.delenv("NEUROSEQRET_MILVUS_TOKEN")
    with pytest.raises(UserError, match="asks for user and password"):
        Index.open(index.folder)
    written = b"".join(file.read_bytes() for file in index.folder.rglob("*") if file.is_file())
    assert b"root:Milvus" not in written
    assert "wrong-secret" not in str(refused.value) + "".join(capfd.readouterr())


def test_collections_of_others_are_left_alone(tmp_path, tiny, server_address):
    first = Index.create(tiny, tmp_path / "first", CORPUS[:5], engine=server_address)
    with pytest.raises(UserError, match="there is such a collection already; choose another name or drop it"):
        Index.create(tiny, tmp_path / "second", engine=server_address)
    assert not (tmp_path / "second").exists()
    file = first.folder / "index.json"
    file.write_text(file.read_text().replace(first.config.identity, "0" * 32))
    with pytest.raises(UserError, match="does not belong to this index"):
        Index.open(first.folder)


def test_what_milvus_does_not_have_is_refused(both, tmp_path, tiny, address):
    with pytest.raises(UserError, match="leave out exhaustive"):
        both[0].search(QUERIES, exhaustive=True)
    with pytest.raises(UserError, match="choose 'hamming' for binary codes"):
        Index.create(tiny, tmp_path / "other", engine=address, candidates="cells")
    long = CORPUS[:1].with_column("text", pa.array(["x" * 70_000]))
    with pytest.raises(UserError, match=r"sequence s0: its metadata take 70,\d\d\d bytes, Milvus takes 65,535 per row"):
        both[0].upsert(long)
    assert both[0].check() == []
    with pytest.raises(UserError, match="has no engine"):
        both[1].sync()


def _rows(index):
    index._store.refresh()
    return pa.Table.from_batches(list(index._store.scan(index._store.schema.names)))


def _interrupted(*_, **__):
    raise KeyboardInterrupt


def _refused(*_, **__):
    raise UserError("no answer")
