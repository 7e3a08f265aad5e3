"""Refuse to use an index in a process that was forked from one that had an index open.

The threads of the embedded store do not survive a fork. A child that uses the store, even a store that it opened
itself, hangs or crashes now and then.
"""

from __future__ import annotations

import os

from neuroseqret.errors import UserError

_user: int | None = None  # the process that opened an index first; a child inherits it


def check_not_forked() -> None:
    """Raise a `UserError` if an index was opened before this process was forked; call it before the store is used."""
    global _user
    if _user is None:
        _user = os.getpid()
    elif _user != os.getpid():
        raise UserError(
            "an index cannot be used in a process that was forked after an index was opened; start the process with "
            "multiprocessing's 'spawn' method and open the index there"
        )
