"""Builds the hot structure in a process of its own, so that searches in this one do not feel it.

Building computes on a whole core for seconds and needs memory. In a thread it takes turns with searches for Python's
lock; in a process of low priority it takes what searches leave, and gives all its memory back.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path

from neuroseqret.errors import UserError
from neuroseqret.index import hot, hot_builder
from neuroseqret.index.config import IndexConfig, read_config
from neuroseqret.index.lance_store import LanceStore
from neuroseqret.index.store import Store

_NICE = 10  # how far the priority goes down


def build(folder: Path, store: Store, config: IndexConfig) -> hot.HotStructure:
    """Do what `hot_builder.build` does; the store is that of the index's folder."""
    command = [sys.executable, "-m", "neuroseqret.index.building_apart", str(folder.parent), str(store.version)]
    # A session of its own: Ctrl-C ends the process that searches, which waits for this one.
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True
    ) as child:
        said = child.stderr.read().decode(errors="replace").strip() if child.stderr is not None else ""
    if child.returncode:
        raise UserError(said.splitlines()[-1] if said else f"the process that builds ended by {child.returncode}")
    opened = hot.open_current(folder, config.dimension)
    if opened is None:
        raise UserError(f"{folder}: the structure that was just built cannot be opened; check the disk")
    return opened


def _main() -> None:
    threading.Thread(target=_end_with_parent, daemon=True).start()
    with suppress(AttributeError, OSError):  # Windows has no such priorities
        os.nice(_NICE)
    folder, version = Path(sys.argv[1]), int(sys.argv[2])
    hot_builder.build(folder / "hot", LanceStore.open(folder / "store").at_version(version), read_config(folder))


def _end_with_parent() -> None:
    """End this process if the one that asked for it is killed: then its lock on the structure is free too."""
    os.read(sys.stdin.fileno(), 1)  # nobody writes, so this returns when the other end is closed
    os._exit(1)


if __name__ == "__main__":
    try:
        _main()
    except (OSError, UserError) as error:
        sys.exit(str(error))
