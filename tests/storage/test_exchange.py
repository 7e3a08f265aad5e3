"""A folder that is replaced is the old one or the new one at every moment, and nothing hidden stays."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from neuroseqret.storage import exchange, files

KILLED_AT = """
import os, sys
from pathlib import Path
from neuroseqret.storage import exchange, files

folder, at, at_once, inside = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3] == "True", sys.argv[4] == "True"
calls = 0


def dying(function):
    def call(*arguments, **options):
        global calls
        calls += 1
        if calls == at:
            os._exit(9)
        result = function(*arguments, **options)
        calls += 1
        if calls == at:
            os._exit(9)
        return result

    return call


exchange._exchange_at_once = dying(exchange._exchange_at_once) if at_once else lambda *_: False
os.replace, os.rename, exchange.shutil.rmtree = dying(os.replace), dying(os.rename), dying(exchange.shutil.rmtree)
if inside:
    os.chdir(folder)
with files.new_folder("." if inside else folder, "marker", "more") as path:
    (path / "marker").write_text("new")
    (path / "more").write_text("new")
"""


def write(folder, text):
    with files.new_folder(folder, "marker", "more") as path:
        (path / "marker").write_text(text)
        (path / "more").write_text(text)


def content(folder):
    return {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}


def whole(text):
    return {"marker": text, "more": text}


@pytest.mark.parametrize(("at_once", "inside"), [(True, False), (False, False), (False, True)])
def test_a_process_killed_at_any_step_leaves_the_old_folder_or_the_new_one(tmp_path, at_once, inside):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    for at in range(1, 20):
        folder = tmp_path / str(at) / "folder"
        write(folder, "old")
        call = [sys.executable, "-c", KILLED_AT, str(folder), str(at), str(at_once), str(inside)]
        code = subprocess.run(call, env=environment, check=False).returncode
        if at_once:
            assert content(folder) in (whole("old"), whole("new"))
        exchange.recover(folder)
        assert content(folder) in (whole("old"), whole("new"))
        write(folder, "newer")
        assert content(folder) == whole("newer")
        assert [path.name for path in folder.parent.iterdir()] == ["folder"]
        if code == 0:
            break
    assert code == 0
    assert at > 2


def test_what_others_use_or_own_is_not_removed(tmp_path):
    mine = [".folder-backup_1", ".folder-old", ".folder-2-abcdefgh.nsr-new", ".other-abcdefgh.nsr-new"]
    for name in mine:
        (tmp_path / name).mkdir()
    (tmp_path / ".folder-abcdefgh.nsr-new").symlink_to(tmp_path / mine[0])
    (tmp_path / ".folder-hgfedcba.nsr-new").mkdir()  # left by a dead process
    with files.new_folder(tmp_path / "folder", "marker") as slow:
        (slow / "marker").write_text("slow")
        write(tmp_path / "folder", "fast")
        assert slow.is_dir()
        (tmp_path / "folder" / "more").unlink()
    assert content(tmp_path / "folder") == {"marker": "slow"}
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted([*mine, ".folder-abcdefgh.nsr-new", "folder"])


def test_folders_are_exchanged_in_one_step_on_linux(tmp_path, monkeypatch):
    if sys.platform != "linux":
        pytest.skip("other systems have no such call")
    write(tmp_path / "folder", "old")
    monkeypatch.setattr(exchange.os, "replace", None)  # not called
    write(tmp_path / "folder", "new")
    assert content(tmp_path) == {"folder/marker": "new", "folder/more": "new"}
    assert not exchange._exchange_at_once(tmp_path / "folder", Path("missing"))
