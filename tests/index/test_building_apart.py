"""The search structure built in a process of its own is the one that is built here, whatever happens to the process."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from naive import index as naive
from neuroseqret.errors import UserError
from neuroseqret.index import Index, building_apart, hot, reader


@pytest.fixture
def index(tiny, tmp_path):
    return Index.create(tiny, tmp_path / "index", naive.some_sequences(30))


def build(index):
    return building_apart.build(index.folder / "hot", index._store.pinned(), index.config)


def program(monkeypatch, first):
    """Let the process begin with other lines."""
    monkeypatch.setattr(building_apart, "_PROGRAM", f"{first}\n{building_apart._PROGRAM}")


def test_a_server_changes_over_to_a_structure_that_another_process_built(tiny, tmp_path, monkeypatch):
    monkeypatch.setattr(reader, "REBUILD_ROWS", 10)
    corpus, queries = naive.some_sequences(80), naive.some_sequences(5, seed=9)
    index = Index.create(tiny, tmp_path / "index", corpus[:60], candidates="cells")
    index.watch(60, apart=True)
    pinned, folder = index._store.pinned(), tmp_path / "index" / "hot"
    index.add(corpus[60:])
    monkeypatch.setattr(reader.hot_builder, "build", lambda *_: pytest.fail("built in this process"))
    index.refresh(wait=True)
    info = index.info()
    assert (info["sequences"], info["not_yet_in_structure"]) == (80, 0)
    assert hot.verify(folder, index.config.dimension) == []
    monkeypatch.undo()
    found = [[(hit.id, hit.score) for hit in hits] for hits in index.search(queries, 10)]
    index.compact()
    assert [[(hit.id, hit.score) for hit in hits] for hits in index.search(queries, 10)] == found
    assert len(building_apart.build(folder, pinned, index.config)) == 60  # of the version that it was told


def test_what_goes_wrong_in_the_other_process_is_one_line(index):
    (index.folder / "index.json").write_text("{")
    with pytest.raises(UserError, match=r"index\.json"):
        build(index)


@pytest.mark.parametrize(
    ("first", "said"),
    [
        (
            "import os, signal; os.kill(os.getpid(), signal.SIGKILL)",
            "ended by signal 9",
        ),  # as the system does where memory is short
        ("import os; os._exit(7)", "ended with status 7"),
        (
            "import errno\nfrom neuroseqret.index import hot_builder\n"
            "def full(*_): raise OSError(errno.ENOSPC, 'No space left on device')\n"
            "hot_builder.build = full",
            "cannot be written (No space left on device)",
        ),
        (
            "import errno\nfrom neuroseqret.errors import UserError\nfrom neuroseqret.index import hot_builder\n"
            "def full(*_): raise UserError('folder') from OSError(errno.ENOSPC, 'No space left on device')\n"
            "hot_builder.build = full",
            "cannot be written (No space left on device)",
        ),
    ],
)
def test_an_index_goes_on_without_a_structure_that_cannot_be_built(index, monkeypatch, first, said):
    monkeypatch.setattr(reader, "REBUILD_ROWS", 10)
    program(monkeypatch, first)
    served = Index.open(index.folder)
    query = naive.some_sequences(1, seed=9)[0]
    with pytest.warns(UserWarning, match=re.escape(said)):
        served.watch(60, apart=True)
    assert [hit.id for hit in served.search(query, 5)] == [hit.id for hit in index.search(query, 5)]
    monkeypatch.undo()
    served.compact()
    assert served.info()["not_yet_in_structure"] == 0


@pytest.mark.parametrize("python", [None, "", "/nowhere/python"])
def test_where_no_process_can_be_started_it_is_built_here(index, monkeypatch, python):
    monkeypatch.setattr(sys, "executable", python)
    assert len(build(index)) == 30


def test_modules_in_the_working_folder_are_not_run(index, tmp_path, monkeypatch):
    foreign = tmp_path / "foreign"
    foreign.mkdir()
    for name in ("numpy", "lance", "neuroseqret", "signal"):
        (foreign / f"{name}.py").write_text("raise SystemExit('a stranger ran')")
    monkeypatch.chdir(foreign)
    monkeypatch.setattr(sys, "path", [part for part in sys.path if part])
    assert len(build(index)) == 30


def test_the_process_ends_with_the_one_that_started_it(index):
    hangs = (
        "import time\nfrom neuroseqret.index import hot_builder\n"
        "def hang(*_):\n    print('began', flush=True)\n    time.sleep(600)\n"
        f"hot_builder.build = hang\n{building_apart._PROGRAM}"
    )
    command = [sys.executable, "-c", hangs, str(index.folder), str(index._store.version), *sys.path]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout.readline().strip() == b"began"
        assert child.poll() is None
        child.stdin.close()
        assert child.wait(30) == 1
