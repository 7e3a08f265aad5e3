"""The store in an object store: the Lance dataset of `lance_store`, shared by writers on several machines.

A commit is one conditional put of a manifest, so the object store decides which of two writers comes first; the other
one gets a `Conflict`, reads again and repeats its change. If the answer to a put is lost, nobody knows at first whether
it was made. So every commit carries a random name, and the writer looks for it in the bucket.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from neuroseqret.errors import UserError
from neuroseqret.index.lance_errors import explained
from neuroseqret.index.lance_recovery import FAILURES, INDEXES_KEPT, METADATA_KEPT
from neuroseqret.index.lance_store import TABLE, Check, LanceStore
from neuroseqret.index.store import Conflict
from neuroseqret.storage.bucket import Bucket

if TYPE_CHECKING:
    from lance import LanceDataset


class BucketStore(LanceStore):
    """A `Store` in a bucket. Only `refresh` and what reads rows or writes use the network."""

    read_ahead = None  # as many as Lance likes, since every part is waited for

    def __init__(self, bucket: Bucket, dataset: LanceDataset) -> None:
        self.bucket, self.folder, self._dataset = bucket, bucket.url, dataset
        self._refreshing = threading.Lock()
        self._stamp = self._seen = -1

    @classmethod
    def make(cls, bucket: Bucket, schema: pa.Schema) -> BucketStore:
        """Make an empty store."""
        import lance

        with explained(bucket.url, "created"):
            table = schema.empty_table()
            return cls(bucket, lance.write_dataset(table, _uri(bucket), mode="create", storage_options=bucket.options))

    @classmethod
    def at(cls, bucket: Bucket) -> BucketStore:
        """Open the store in a folder of a bucket."""
        with explained(bucket.url, "opened"):
            return cls(bucket, _opened(bucket))

    def changed(self, version: int) -> bool:
        """Return whether the last `refresh` saw another version: no search waits for the network."""
        return version != self._seen

    def _now(self) -> int:
        return 0

    def _at(self, dataset: LanceDataset) -> BucketStore:
        return BucketStore(self.bucket, dataset)

    def turn(self) -> AbstractContextManager[object]:
        return nullcontext()  # the object store decides

    def compact(self, grace: float) -> None:
        """Merge files as on a disk. Files of no version stay: they may be of a writer that is about to commit.

        Lance deletes such files when they are a week old.
        """
        with explained(self.folder, "written to"):
            with self._commit(None) as dataset:
                self._merge_files(dataset)
            with self._commit(None) as dataset:
                dataset.cleanup_old_versions(timedelta(seconds=max(grace, 1e-6)), delete_unverified=False)
            self._exchange(_opened(self.bucket))

    def _apply(self, dataset: LanceDataset, operation: Any) -> LanceDataset:
        from lance import LanceDataset
        from lance.dataset import Transaction

        change = Transaction(dataset.version, operation)
        try:
            LanceDataset.commit(dataset, change, max_retries=0)
        except FAILURES:
            if (done := self._find(dataset.version, change.uuid)) is None:
                raise
            return done
        if (done := self._find(dataset.version, change.uuid)) is None:
            raise OSError("the object store acknowledged a change and does not have it; try again")
        return done

    def _find(self, after: int, name: str) -> LanceDataset | None:
        """Return the version that the named commit made, as it is in the bucket now; None if there is none."""
        newest = _opened(self.bucket)
        for version in range(after + 1, newest.version + 1):
            found = newest.read_transaction(version)
            if found is not None and found.uuid == name:
                return newest.checkout_version(version)
        return None

    @contextmanager
    def _commit(self, version: int | None, *checks: Check) -> Iterator[LanceDataset]:
        """Give the newest version, which must be the given one; a writer that came first is a `Conflict`.

        Nothing is read back, as it is on a disk: an object is acknowledged when the store has all of it.
        """
        dataset = self._newest()
        if version is not None and dataset.version != version:
            raise Conflict(f"version {dataset.version} is there, the change is based on {version}")
        try:
            yield dataset
        except FAILURES as error:
            if not isinstance(error, UserError) and "commit conflict" in str(error).lower():
                raise Conflict(str(error)) from error
            raise


def _opened(bucket: Bucket) -> LanceDataset:
    import lance

    return lance.dataset(
        _uri(bucket),
        storage_options=bucket.options,
        metadata_cache_size_bytes=METADATA_KEPT,
        index_cache_size_bytes=INDEXES_KEPT,
    )


def _uri(bucket: Bucket) -> str:
    return f"{bucket.url}/{TABLE}.lance"
