"""Give numba a place for its compiled functions where it has none: an install that is read-only, and no home folder.

Numba keeps them next to the source files, else in the user's cache folder, and refuses to import a function if it can
write to neither. This module imports nothing large, because it runs at `import neuroseqret`.
"""

from __future__ import annotations

import os
import stat
import sys
import tempfile
from pathlib import Path

VARIABLE = "NUMBA_CACHE_DIR"


def ensure_numba_cache(package: Path) -> None:
    """Point numba to a private temporary folder if it can write neither to the package nor to its own cache folder."""
    if os.environ.get(VARIABLE) and _can_write(Path(os.environ[VARIABLE])):
        return
    rooms = (entry for entry in package.iterdir() if entry.is_dir() and entry.name != "__pycache__")
    if all(_can_write(room / "__pycache__") for room in rooms) or _can_write(_users_folder()):
        return
    try:
        folder = private_folder()
    except OSError:  # nothing can be written anywhere; numba says so when it is needed
        return
    os.environ[VARIABLE] = str(folder)
    if "numba" in sys.modules:  # it has read the variable already
        sys.modules["numba"].config.CACHE_DIR = str(folder)


def private_folder() -> Path:
    """Return a temporary folder that only this user can write to, the same one every time if that is possible.

    Numba unpickles what it finds there, so a folder that somebody else made under this name is not taken.
    """
    user = os.getuid() if hasattr(os, "getuid") else "user"
    folder = Path(tempfile.gettempdir(), f"neuroseqret-numba-{user}")
    try:
        folder.mkdir(mode=0o700)
    except FileExistsError:
        found = folder.lstat()
        mine = not hasattr(os, "getuid") or (found.st_uid == os.getuid() and not stat.S_IMODE(found.st_mode) & 0o077)
        if not (stat.S_ISDIR(found.st_mode) and mine):
            return Path(tempfile.mkdtemp(prefix="neuroseqret-numba-"))
    return folder


def _users_folder() -> Path:
    """Return numba's cache folder of this user."""
    if sys.platform == "darwin":
        return Path(os.path.expanduser("~/Library/Caches/numba"))
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or os.path.expanduser("~/AppData/Local"), "numba")
    return Path(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "numba")


def _can_write(folder: Path) -> bool:
    """Return whether files can be made in a folder, or the folder itself can be made."""
    while not os.path.lexists(folder) and folder != folder.parent:
        folder = folder.parent
    return folder.is_dir() and os.access(folder, os.W_OK | os.X_OK)
