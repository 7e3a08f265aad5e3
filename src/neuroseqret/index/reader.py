"""`Reader` follows the store: it gives the snapshot of the newest commit and rebuilds the hot structure when it is due.

Rows that were added after the hot structure was built are compared one by one, or filed in its cells if they are many.
When these rows, or the removed ones, become too many, a thread in the background builds a new structure. Searches go on
with the old one and the rows since, and change over when the new one is complete. Only the first structure of a large
index is waited for: there is no old one.
"""

from __future__ import annotations

import threading
import time
import warnings
from contextlib import suppress
from pathlib import Path

from neuroseqret.candidates.finder import Mask
from neuroseqret.errors import UserError
from neuroseqret.index import building_apart, hot, hot_builder
from neuroseqret.index.condition_masks import ConditionMasks
from neuroseqret.index.config import IndexConfig
from neuroseqret.index.filters import Where
from neuroseqret.index.following import Follower, without_tail
from neuroseqret.index.snapshot import Snapshot
from neuroseqret.index.store import Store
from neuroseqret.index.watching import watch
from neuroseqret.storage import lock
from neuroseqret.storage.files import system_error_of

#: A rebuild is due when more rows than these, and more than this share of the structure, were added or removed since.
REBUILD_ROWS, REBUILD_FRACTION = 5000, 0.1
_BUILD_TIMEOUT = 3600.0  # seconds to wait for the structure that another process is building
_RETRY = 60.0  # seconds after a failed rebuild
#: In a watched index, rows are filed when there are more than these, and more than this share of those added since.
FILED_ROWS, FILED_FRACTION = 4096, 0.125


class Reader:
    """The reading side of an index; its threads may share one.

    A snapshot never changes, so that searches need no lock. Threads take turns only to follow a new commit, which reads
    what was added or removed since.
    """

    def __init__(self, folder: Path, store: Store, config: IndexConfig, every: float | None = None) -> None:
        """`every`: seconds between two looks for new commits in the background; None: look before every search.

        Only a store in a network is given them here. Then nothing that a search needs is read from the store either.
        """
        self.folder, self.store, self.config, self.every = folder, store, config, every
        self._remote = every is not None
        self._follower = Follower(config.dimension, config.settings.windowed, with_events=self._remote)
        self._masks = ConditionMasks(self._remote)
        self._watched = False
        self.apart = False  # whether the hot structure is built in a process of its own
        self._following = threading.Lock()
        self._snapshot: Snapshot | None = None
        self._builder: threading.Thread | None = None
        self._not_before = 0.0  # of the monotonic clock: when a failed rebuild may be tried again

    def snapshot(self) -> Snapshot:
        """Return the snapshot of the newest commit; if nothing changed, this only reads a time stamp.

        With `every`, it is the newest commit that was seen in the background: nothing is waited for.
        """
        snapshot = self._snapshot
        if snapshot is not None and (self.every is not None or not self.store.changed(_version(snapshot))):
            return snapshot
        return self.follow()

    def watch(self, every: float, apart: bool = False) -> None:
        """Follow commits in the background from now on, unless that is done already."""
        self.apart = apart
        if self.every is None:
            self.every = every
            self.follow()

    def catch_up(self) -> None:
        """Follow a commit of this process, so that its next search sees it although others follow in the background."""
        if self.every is not None and self._snapshot is not None:
            with suppress(UserError):  # the commit was made; the background will see it
                self.follow()

    def follow(self) -> Snapshot:
        """Go to the newest commit and return its snapshot."""
        with self._following:
            snapshot = self._snapshot or self._first()
            if self.store.refresh() != _version(snapshot):
                snapshot = self._follower.follow(snapshot, self.store.pinned())
            self._snapshot = snapshot
            if _outgrown(snapshot):
                self._start_building()
            if self.every is not None and not self._watched:
                self._watched = True
                watch(self)
            return snapshot

    def look(self) -> None:
        """Follow in the background. Many new rows are filed in the cells before a search would compare all of them."""
        if (before := self._snapshot) is not None:
            if self.store.refresh() != _version(before):
                ahead = _filed(self._follower.follow(before, self.store.pinned()))
            else:
                ahead = _filed(before)  # its tail came by `catch_up`
            with self._following:
                now = self._snapshot
                if now is before:
                    self._snapshot = ahead
                elif now is not None and now.hot is ahead.hot:  # otherwise a new structure has most of these rows
                    self._snapshot = self._follower.follow(ahead, self.store.pinned())
        self.follow()

    def newest(self) -> tuple[Snapshot, int]:
        """Return the snapshot of the newest commit, and the commit's version."""
        snapshot = self.snapshot()
        return snapshot, _version(snapshot)

    def allowed(self, snapshot: Snapshot, where: Where | None) -> Mask:
        """Return a mask over the snapshot's rows that are there and meet the condition; empty if all of them do."""
        return self._masks.allowed(snapshot, where)

    def rebuild(self) -> None:
        """Rebuild the hot structure now, whether it is due or not; return when it is in use."""
        self.wait()
        self.follow()
        self._build(anew=True)

    def wait(self) -> None:
        """Return when no rebuild is running."""
        if (builder := self._builder) is not None:
            builder.join()

    def _first(self) -> Snapshot:
        """Return the first snapshot, of the structure that is there; build one if there is none and rows are many."""
        found = hot.open_current(self.folder / "hot", self.config.dimension)
        if found is None:
            self.store.refresh()
            found = self._built(in_use="") if self.store.count() > REBUILD_ROWS else None
        return without_tail(found or hot.empty(self.store.schema, self.config.dimension))

    def _start_building(self) -> None:
        """Start a rebuild in the background unless one is running; the caller holds `_following`."""
        if (self._builder is None or not self._builder.is_alive()) and time.monotonic() >= self._not_before:
            # Not a daemon: a process that ends waits for it, so that the next one finds the new structure.
            self._builder = threading.Thread(target=self._build, name="neuroseqret-rebuild", daemon=False)
            self._builder.start()

    def _build(self, anew: bool = False) -> None:
        """Build a structure and change over to it; searches go on meanwhile."""
        try:
            made = self._built(None if anew or self._snapshot is None else self._snapshot.hot.build)
            if made is None:
                return
            made.by_serial  # noqa: B018  (computed here, so that no search has to)
            made.by_hash(self._follower.key_column)
            self.store.refresh()  # another process may have built it from a newer commit
            ahead = self._follower.follow(without_tail(made), self.store.pinned())  # most of the way without the lock
            ahead = _filed(ahead) if self._watched else ahead
            with self._following:
                self.store.refresh()
                self._snapshot = self._follower.follow(ahead, self.store.pinned())
        except Exception as error:
            if anew:
                raise
            self._not_before = time.monotonic() + _RETRY
            warnings.warn(
                f"{self.folder}: the search structure cannot be rebuilt ({error}); searching is slower", stacklevel=2
            )

    def _built(self, in_use: str | None) -> hot.HotStructure | None:
        """Return a new hot structure; None, with a warning, if none can be written.

        If another process has built one in the meantime, other than the one `in_use`, that one is taken.
        """
        try:
            if self._remote:
                self.folder.mkdir(parents=True, exist_ok=True)  # a cache may be deleted at any time
            with lock.held(self.folder / "hot.lock", timeout=_BUILD_TIMEOUT):
                current = None if in_use is None else hot.open_current(self.folder / "hot", self.config.dimension)
                if current is not None and current.build != in_use:
                    self.store.refresh()  # it may be of a newer commit
                    followed = self._follower.follow(without_tail(current), self.store.pinned())
                    if not _outgrown(followed):
                        return current
                apart = self.apart and not self._remote
                build = building_apart.build if apart else hot_builder.build
                return build(self.folder / "hot", self.store.pinned(), self.config)
        except (OSError, UserError) as error:  # `storage` turns a system error into a user error
            if (system := system_error_of(error)) is None:
                raise
            self._not_before = time.monotonic() + _RETRY
            warnings.warn(
                f"{self.folder}: the search structure cannot be written ({system.strerror or system}); searching is "
                "slower",
                stacklevel=4,
            )
            return None


def _version(snapshot: Snapshot) -> int:
    return -1 if snapshot.store is None else snapshot.store.version


def _filed(snapshot: Snapshot) -> Snapshot:
    """Return the snapshot with its tail filed if that is long; this takes longer than a search should."""
    many = max(FILED_ROWS, FILED_FRACTION * snapshot.tail)
    return snapshot.with_tail_filed() if len(snapshot.tail_embeddings) > many else snapshot


def _outgrown(snapshot: Snapshot) -> bool:
    """Return whether so much changed since the hot structure was built that a new one is due."""
    changed = snapshot.tail + snapshot.dead
    return changed > max(REBUILD_ROWS, REBUILD_FRACTION * len(snapshot.hot))
