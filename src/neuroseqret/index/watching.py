"""Follow the commits of others in the background, so that no search reads them itself or waits for the network."""

from __future__ import annotations

import threading
import time
import warnings
import weakref
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from neuroseqret.index.reader import Reader


def watch(reader: Reader) -> None:
    """Start a thread that follows the newest commit every `reader.every` seconds, as long as the reader is in use."""
    thread = threading.Thread(
        target=_watch, args=(weakref.ref(reader), reader.every or 1.0), name="neuroseqret-watch", daemon=True
    )
    thread.start()


def _watch(found: weakref.ref[Reader], every: float) -> None:
    told = False
    while True:
        time.sleep(every)
        if (reader := found()) is None:
            return
        try:
            reader.look()
            told = False
        except Exception as error:  # the network may come back; searches go on with what was seen last
            if not told:
                warnings.warn(f"new commits cannot be seen; searches use the last one that was ({error})", stacklevel=2)
            told = True
        del reader  # so that it can go while this thread sleeps
