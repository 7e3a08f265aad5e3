"""The embedded store: one Lance dataset.

Lance first writes data files and then one manifest that makes them a version, so that a commit is complete or not
there. Nobody can make a version that another writer has made: the manifest is created only if it does not exist. On a
disk, a method that writes returns when its files are safe from a power cut (see `lance_files`), and writers of one
machine take turns (see `storage.lock`). Readers never wait.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neuroseqret.errors import UserError
from neuroseqret.index.lance_errors import explained
from neuroseqret.index.lance_files import LanceFiles
from neuroseqret.index.lance_operations import added, fitted, merged, one_of
from neuroseqret.index.lance_recovery import (
    FAILURES,
    check_deletions,
    fall_back,
    is_usable,
    open_dataset,
    read_added,
    read_serials,
    read_through,
)
from neuroseqret.index.store import KEY, PARENT, SERIAL, Conflict
from neuroseqret.storage import lock

if TYPE_CHECKING:
    from lance import LanceDataset, LanceFragment

TABLE = "sequences"
_UNSETTLED = 0.1  # seconds; two commits within them may get the same time stamp from the file system
Check = Callable[["LanceDataset"], None]


class LanceStore:
    """A `Store` in a folder. Its threads may share one: an open dataset is never changed, only exchanged."""

    read_ahead: int | None = 1  # parts at once; more take memory beside searches, and a disk is not faster for it
    _known: tuple[LanceDataset, dict[str, tuple[LanceFragment, int]]] | None = None  # the parts of a version

    def __init__(self, folder: Path, dataset: LanceDataset) -> None:
        self.folder: Path | str = folder  # what messages name
        self._dataset, self._files = dataset, LanceFiles(folder, TABLE)
        self._refreshing = threading.Lock()
        self._stamp = self._seen = -1

    @classmethod
    def create(cls, folder: Path, schema: pa.Schema) -> LanceStore:
        import lance

        with explained(folder, "created"):
            folder.mkdir(parents=True, exist_ok=True)
            made = cls(folder, lance.write_dataset(schema.empty_table(), folder / f"{TABLE}.lance", mode="create"))
            made._files.sync(made._dataset.version)
            made._files.mark()
            return made

    @classmethod
    def open(cls, folder: Path) -> LanceStore:
        files = LanceFiles(folder, TABLE)
        if not files.table.is_dir():
            raise UserError(f"{folder}: missing, so the index is damaged; restore a copy or make the index again")
        with explained(folder, "opened"):
            if not is_usable(files):
                with _turn(folder):
                    fall_back(files)
            dataset = open_dataset(str(files.table))
            check_deletions(dataset, files.table)
            return cls(folder, dataset)

    @property
    def schema(self) -> pa.Schema:
        with explained(self.folder, "read"):
            return self._dataset.schema

    @property
    def version(self) -> int:
        return int(self._dataset.version)

    def refresh(self) -> int:
        with explained(self.folder, "read"), self._refreshing:
            self._stamp = self._now()
            newest = self._dataset.latest_version
            if newest != self._dataset.version:
                self._dataset = self._dataset.checkout_version(newest)
            self._seen = newest
            return newest

    def _exchange(self, dataset: LanceDataset) -> None:
        """Go on with this dataset; a `refresh` in another thread, which began earlier, does not undo it."""
        with self._refreshing:
            self._dataset = dataset

    def changed(self, version: int) -> bool:
        """Compare the time stamp of the folder of manifests; a very recent stamp may hide a second commit."""
        now = self._now()
        return version != self._seen or now != self._stamp or now < 0 or time.time_ns() - now < _UNSETTLED * 1e9

    def _now(self) -> int:
        try:
            return os.stat(self._files.versions).st_mtime_ns
        except FileNotFoundError:
            return -1

    def pinned(self) -> LanceStore:
        return self._at(self._dataset)

    def at_version(self, version: int) -> LanceStore:
        """Return the store as of a version, which does not move on."""
        with explained(self.folder, "read"):
            return self._at(self._dataset.checkout_version(version))

    def _at(self, dataset: LanceDataset) -> LanceStore:
        return LanceStore(self._files.folder, dataset)

    def turn(self) -> AbstractContextManager[object]:
        return _turn(self._files.folder)

    def put(self, rows: pa.Table, version: int) -> LanceStore:
        return self._write(rows, version, None)

    def replace(self, rows: pa.Table, keys: Sequence[int], version: int) -> LanceStore:
        return self._write(rows, version, keys)

    def _write(self, rows: pa.Table, version: int, replaced: Sequence[int] | None) -> LanceStore:
        """Add rows in one commit; with `replaced`, in place of the rows with these keys."""
        known: list[int] = []
        checks: list[Check] = [lambda written: read_added(written, rows, known)]
        if replaced is not None:
            checks.append(read_serials)
        with explained(self.folder, "written to"), self._commit(version, *checks) as dataset:
            known += [fragment.fragment_id for fragment in dataset.get_fragments()]
            table = self._with_columns_of(dataset, rows)
            if replaced is None or not known:
                operation: Any = added(dataset, table)
            else:
                operation = merged(dataset, table, replaced, windowed=PARENT in rows.column_names)
            done = self._apply(dataset, operation)
        return self._at(done)

    def _apply(self, dataset: LanceDataset, operation: Any) -> LanceDataset:
        """Commit an operation on top of a version."""
        from lance import LanceDataset

        return LanceDataset.commit(dataset, operation, read_version=dataset.version, max_retries=0)

    def delete(self, keys: Sequence[int]) -> None:
        with explained(self.folder, "written to"), self._commit(None, read_serials) as dataset:
            dataset.delete(one_of(KEY, keys))

    def get(self, serials: npt.NDArray[np.int64], columns: Sequence[str]) -> pa.Table:
        wanted = np.unique(serials)
        with explained(self.folder, "read"):
            found = self._dataset.to_table(
                columns=list(dict.fromkeys([SERIAL, *columns])), filter=one_of(SERIAL, wanted.tolist())
            )
        at = found.column(SERIAL).to_numpy()
        if len(at) != len(wanted):
            raise UserError(f"{self.folder}: a sequence was removed during the search; search again")
        order = np.argsort(at)
        return found.take(pa.array(order[np.searchsorted(at[order], serials)])).select(list(columns))

    def scan(
        self,
        columns: Sequence[str],
        after: int = -1,
        where: str | None = None,
        parts: Collection[str] | None = None,
    ) -> Iterator[pa.RecordBatch]:
        conditions, dataset = [f"({where})"] if where else [], self._dataset
        if after >= 0:
            conditions.append(f"{SERIAL} > {after}")
        with explained(self.folder, "read", where, dataset.schema.names):
            chosen = None if parts is None else self._fragments(parts)
            if chosen == []:
                return
            yield from dataset.scanner(
                columns=list(columns),
                filter=" AND ".join(conditions) or None,
                batch_size=8192,
                fragment_readahead=self.read_ahead,
                fragments=chosen,
            ).to_batches()

    def parts(self) -> dict[str, int]:
        return {name: rows for name, (_, rows) in self._named().items()}

    def removed(self, parts: Collection[str]) -> npt.NDArray[np.int64]:
        fragments = self._fragments(parts)
        if not fragments:
            return np.empty(0, np.int64)
        with explained(self.folder, "read"):
            found = self._dataset.scanner(
                columns=[SERIAL], fragments=fragments, with_row_id=True, include_deleted_rows=True
            ).to_table()
        serials: npt.NDArray[np.int64] = found.filter(found.column("_rowid").is_null()).column(SERIAL).to_numpy()
        return serials

    def _fragments(self, parts: Collection[str]) -> list[LanceFragment]:
        return [fragment for name, (fragment, _) in self._named().items() if name in parts]

    def _named(self) -> dict[str, tuple[LanceFragment, int]]:
        """Return the fragments and their numbers of rows by name; made once per version, as each takes time.

        The name is the first file, since numbers of fragments can be used again.
        """
        dataset, known = self._dataset, self._known
        if known is None or known[0] is not dataset:
            with explained(self.folder, "read"):
                described = [(one, one.metadata) for one in dataset.get_fragments()]
            named = {str(about.files[0].path): (one, about.num_rows) for one, about in described}
            self._known = known = dataset, named
        return known[1]

    def count(self) -> int:
        with explained(self.folder, "read"):
            return int(self._dataset.count_rows())

    def compact(self, grace: float) -> None:
        with explained(self.folder, "written to"):
            with self._commit(None, lambda dataset: read_through(dataset, 0)) as dataset:
                self._merge_files(dataset)
            with self._commit(None, read_serials) as dataset:  # old versions are removed only when the new one is safe
                # Files of no version are of writers that were killed, since it is this writer's turn.
                keep = timedelta(seconds=max(grace, 1e-6))
                dataset.cleanup_old_versions(keep, delete_unverified=True)
            self._exchange(open_dataset(str(self._files.table)))  # forgets what was read of files that are gone

    def _merge_files(self, dataset: LanceDataset) -> None:
        dataset.optimize.compact_files(materialize_deletions_threshold=0.0)  # removed rows go
        have = {name for index in dataset.describe_indices() for name in index.field_names}
        for column in (SERIAL, KEY):
            if dataset.count_rows() and column not in have:
                dataset.create_scalar_index(column, "BTREE")
        dataset.optimize.optimize_indices()

    def _newest(self) -> LanceDataset:
        """Return the newest version as an object of its own, which changes may move on."""
        return self._dataset.checkout_version(self._dataset.latest_version)

    @contextmanager
    def _commit(self, version: int | None, *checks: Check) -> Iterator[LanceDataset]:
        """Make what the block writes safe from a power cut and read it back; go back to the version before on failure.

        The block gets the newest version, which must be the given one. Lance does not notice if the last write to a
        file fails. So `checks` read what was written; they are given the dataset, opened anew.
        """
        from lance.commit import CommitConflictError

        dataset = self._newest()
        before = dataset.version
        if version is not None and before != version:
            raise Conflict(f"version {before} is there, the change is based on {version}")
        self._files.begin(before)
        try:
            yield dataset
            self._files.sync(self._files.newest()[0])
            try:
                written = open_dataset(str(self._files.table))
                for check in checks:
                    check(written)
            except FAILURES as error:
                raise OSError(
                    f"what was written cannot be read back; the index is unchanged, check the disk ({error})"
                ) from error
        except CommitConflictError as error:
            raise Conflict(str(error)) from error
        except BaseException:  # a panic in Lance is not an `Exception`
            self._undo(before)
            raise
        self._files.mark()

    def _undo(self, before: int) -> None:
        """Make the version before a failed change the newest one."""
        version, _ = self._files.newest()
        if version == before:
            return
        try:
            self._dataset.checkout_version(before).restore()
            self._files.sync(version + 1)
        except FAILURES:  # such as a full disk; renaming needs no space
            while (newest := self._files.newest())[0] > before:
                self._files.set_aside(newest[1])
            self._exchange(open_dataset(str(self._files.table)))  # without what the session keeps of those versions
        self.refresh()

    def _with_columns_of(self, dataset: LanceDataset, rows: pa.Table) -> pa.Table:
        """Return the rows in the dataset's columns; add missing columns first, in a commit of their own."""
        have = dataset.schema
        # A column without any value has no type yet: it is added when a value comes.
        new = [field for field in rows.schema if field.name not in have.names and not pa.types.is_null(field.type)]
        table = fitted(rows, pa.schema([*have, *(pa.field(field.name, field.type) for field in new)]))
        if new:
            before = dataset.version
            dataset.add_columns(pa.schema([table.schema.field(field.name) for field in new]))
            if dataset.version != before + 1:
                raise Conflict(f"version {dataset.version - 1} is there, the change is based on {before}")
        return table


def _turn(folder: Path) -> AbstractContextManager[object]:
    return lock.held(folder.parent / "write.lock")
