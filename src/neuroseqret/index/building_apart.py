"""Builds the hot structure in a process of its own, so that searches in this one do not feel it.

Building computes on a whole core for seconds and needs memory. In a thread it takes turns with searches for Python's
lock; in a process of low priority it takes what searches leave, and gives all its memory back.
"""

from __future__ import annotations

import errno
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
from neuroseqret.storage.files import system_error_of

_NICE = 10  # how far the priority goes down
_SYSTEM_ERROR = 3  # exit status if the system refused something, such as room on the disk
#: What the process runs. It finds modules where this process does; `python -m` would also look in the working folder,
#: which may be a stranger's. Ctrl-C ends the process that searches, which waits for this one.
_PROGRAM = """
import sys
sys.path[:] = sys.argv[3:]
import signal
signal.signal(signal.SIGINT, signal.SIG_IGN)
from neuroseqret.index import building_apart
building_apart.main()
"""


def build(folder: Path, store: Store, config: IndexConfig) -> hot.HotStructure:
    """Do what `hot_builder.build` does; the store is that of the index's folder.

    It is built here if no process can be started. A process that is killed is an `OSError`.
    """
    command = [sys.executable or "", "-c", _PROGRAM, str(folder.parent), str(store.version), *sys.path]
    try:
        child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    except OSError:  # such as too many processes, or a program that holds Python and has no file of it
        return hot_builder.build(folder, store, config)
    with child:  # closes its input, so that it ends if this thread cannot go on
        assert child.stderr is not None
        said = child.stderr.read().decode(errors="replace").strip()
    _check(child.returncode, said)
    opened = hot.open_current(folder, config.dimension)
    if opened is None:
        raise UserError(f"{folder}: the structure that was just built cannot be opened; check the disk")
    return opened


def _check(status: int, said: str) -> None:
    """Raise the error that the process ended with, if it did."""
    if not status:
        return
    if status < 0 or not said:  # it was killed; Windows has no signals
        how = f"by signal {-status}" if status < 0 else f"with status {status}"
        raise ChildProcessError(errno.ECHILD, f"the process that builds it ended {how}")
    last = said.splitlines()[-1]
    raise OSError(errno.EIO, last) if status == _SYSTEM_ERROR else UserError(last)


def main() -> None:
    """Build the structure of the index and of the version of its store that the command line names."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    with suppress(AttributeError, OSError):  # Windows has no such priorities
        os.nice(_NICE)
    folder, version = Path(sys.argv[1]), int(sys.argv[2])
    try:
        hot_builder.build(folder / "hot", LanceStore.open(folder / "store").at_version(version), read_config(folder))
    except (OSError, UserError) as error:
        if (system := system_error_of(error)) is None:
            sys.exit(str(error))
        print(system.strerror or system, file=sys.stderr)
        sys.exit(_SYSTEM_ERROR)


def _end_with_parent() -> None:
    """End this process if the one that asked for it is killed: then its lock on the structure is free too."""
    os.read(sys.stdin.fileno(), 1)  # nobody writes, so this returns when the other end is closed
    os._exit(1)
