"""The embedded store: one LanceDB table in a folder.

Lance first writes data files and then one manifest that makes them a version, so that a commit is complete or not
there. A method that writes returns when its files are safe from a power cut (see `lance_files`). Writers of one machine
take turns (see `storage.lock`); readers never wait.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import lancedb
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neuroseqret.errors import UserError
from neuroseqret.index.lance_files import LanceFiles
from neuroseqret.index.lance_recovery import (
    FAILURES,
    TABLE,
    fall_back,
    is_usable,
    open_table,
    read_added,
    read_serials,
    read_through,
)
from neuroseqret.index.store import KEY, PARENT, SERIAL
from neuroseqret.storage import lock

_NEVER = timedelta(days=36500)
_UNSETTLED = 0.1  # seconds; two commits within them may get the same time stamp from the file system


class LanceStore:
    """A `Store` in a folder."""

    def __init__(self, folder: Path, table: Any) -> None:
        self.folder, self._table, self._files = folder, table, LanceFiles(folder, TABLE)
        self._stamp = self._seen = -1

    @classmethod
    def create(cls, folder: Path, schema: pa.Schema) -> LanceStore:
        with _explained(folder, "created"):
            made = cls(folder, lancedb.connect(str(folder)).create_table(TABLE, schema=schema))
            made._files.sync(int(made._table.version))
            made._files.mark()
            return made

    @classmethod
    def open(cls, folder: Path) -> LanceStore:
        files = LanceFiles(folder, TABLE)
        if not files.table.is_dir():
            raise UserError(f"{folder}: missing, so the index is damaged; restore a copy or make the index again")
        with _explained(folder, "opened"):
            if not is_usable(files):
                with lock.held(folder.parent / "write.lock"):
                    fall_back(files)
            return cls(folder, open_table(folder))

    @property
    def schema(self) -> pa.Schema:
        with _explained(self.folder, "read"):
            return self._table.schema

    def refresh(self) -> int:
        with _explained(self.folder, "read"):
            self._stamp = self._now()
            self._table.checkout_latest()
            self._seen = int(self._table.version)
            return self._seen

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
        pinned = LanceStore.open(self.folder)
        with _explained(self.folder, "read"):
            pinned._table.checkout(self._table.version)  # of this handle, so that it never lags behind the pinned one
        return pinned

    def put(self, rows: pa.Table) -> None:
        with _explained(self.folder, "written to"), self._commit(lambda table: read_added(table, rows)):
            self._table.add(self._with_columns_of(rows))

    def replace(self, rows: pa.Table, keys: Sequence[int]) -> None:
        with _explained(self.folder, "written to"), self._commit(lambda table: read_added(table, rows), read_serials):
            fitted = self._with_columns_of(rows)
            if PARENT in rows.column_names:
                # A sequence may have more or fewer windows than before: delete all with its key in the same commit.
                merge = self._table.merge_insert(SERIAL).when_not_matched_insert_all()
                merge = merge.when_not_matched_by_source_delete(_one_of(KEY, keys))
            else:
                # A whole sequence is one row, which can be updated. Only keys are read: a fifth of the time.
                merge = self._table.merge_insert(KEY).when_matched_update_all().when_not_matched_insert_all()
            merge.execute(fitted)

    def delete(self, keys: Sequence[int]) -> None:
        with _explained(self.folder, "written to"), self._commit(read_serials):
            self._table.delete(_one_of(KEY, keys))

    def get(self, serials: npt.NDArray[np.int64], columns: Sequence[str]) -> pa.Table:
        wanted = np.unique(serials)
        with _explained(self.folder, "read"):
            query = self._table.search().where(_one_of(SERIAL, wanted.tolist()))
            found = query.select(list(dict.fromkeys([SERIAL, *columns]))).to_arrow()
        at = found.column(SERIAL).to_numpy()
        if len(at) != len(wanted):
            raise UserError(f"{self.folder}: a sequence was removed during the search; search again")
        order = np.argsort(at)
        return found.take(pa.array(order[np.searchsorted(at[order], serials)])).select(list(columns))

    def scan(self, columns: Sequence[str], after: int = -1, where: str | None = None) -> Iterator[pa.RecordBatch]:
        conditions = [f"({where})"] if where else []
        if after >= 0:
            conditions.append(f"{SERIAL} > {after}")
        with _explained(self.folder, "read", where, self._table.schema.names):
            query = self._table.search().select(list(columns))
            if conditions:
                query = query.where(" AND ".join(conditions))
            yield from query.to_batches(batch_size=8192)

    def count(self) -> int:
        with _explained(self.folder, "read"):
            return int(self._table.count_rows())

    def compact(self) -> None:
        with _explained(self.folder, "written to"):
            with self._commit(lambda table: read_through(table, 0)):
                have = {column for index in self._table.list_indices() for column in index.columns}
                for column in (SERIAL, KEY):
                    if self._table.count_rows() and column not in have:
                        self._table.create_index(column, config=lancedb.index.BTree())
                self._table.optimize(cleanup_older_than=_NEVER)
            with self._commit(read_serials):  # old versions are removed only when the new one is safe
                self._table.optimize()

    @contextmanager
    def _commit(self, *checks: Callable[[Any], None]) -> Iterator[None]:
        """Make what the block writes safe from a power cut and read it back; go back to the version before on failure.

        Lance does not notice if the last write to a file fails. So `checks` read what was written; they are given the
        table, opened anew.
        """
        self._table.checkout_latest()
        before = int(self._table.version)
        self._files.begin(before)
        try:
            yield
            self._files.sync(int(self._table.version))
            try:
                table = open_table(self.folder)
                for check in checks:
                    check(table)
            except FAILURES as error:
                raise OSError(
                    f"what was written cannot be read back; the index is unchanged, check the disk ({error})"
                ) from error
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
            self._table.restore(before)
            self._files.sync(version + 1)
        except FAILURES:  # such as a full disk; renaming needs no space
            while (newest := self._files.newest())[0] > before:
                self._files.set_aside(newest[1])
            self._table = open_table(self.folder)  # an open table does not go back
        self._table.checkout_latest()

    def _with_columns_of(self, rows: pa.Table) -> pa.Table:
        """Return the rows in the table's columns; add missing columns first, in a commit of their own."""
        have = self._table.schema
        # A column without any value has no type yet: it is added when a value comes.
        new = [field for field in rows.schema if field.name not in have.names and not pa.types.is_null(field.type)]
        fitted = _fitted(rows, pa.schema([*have, *(pa.field(field.name, field.type) for field in new)]))
        if new:
            self._table.add_columns(pa.schema([fitted.schema.field(field.name) for field in new]))
        return fitted


def _fitted(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """Return rows in the columns of a schema, null where they have no value."""
    columns = []
    for field in schema:
        if field.name not in rows.column_names:
            columns.append(pa.nulls(rows.num_rows, field.type))
            continue
        try:
            columns.append(rows.column(field.name).cast(field.type))
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as error:
            raise UserError(
                f"column {field.name!r} is of type {rows.schema.field(field.name).type}, in the index it is of type "
                f"{field.type}; convert or rename it"
            ) from error
    return pa.table(columns, schema=schema)


def _one_of(column: str, values: Sequence[int]) -> str:
    """Return the SQL condition that a column has one of the values."""
    return f"{column} IN ({', '.join(str(v) for v in values)})" if len(values) else "false"


@contextmanager
def _explained(folder: Path, done: str, where: str | None = None, columns: Sequence[str] = ()) -> Iterator[None]:
    """Turn errors of Lance into one line that says what the user can do."""
    try:
        yield
    except UserError:
        raise
    except FAILURES as error:
        text = " ".join(str(error).split())
        if "No space left" in text or "StorageFull" in text:
            raise UserError(
                f"{folder}: no space left on the device; the index is unchanged, free some space and try again"
            ) from error
        if where is not None:
            usable = [name for name in columns if not name.startswith("nsr_") and name not in ("times", "marks")]
            text = text.partition(" Valid fields are")[0].rstrip(".")  # Lance lists internal columns too
            raise UserError(
                f"the condition {where!r} cannot be used: {text[:300]}; columns are {', '.join(usable)}"
            ) from error
        raise UserError(f"{folder}: the store cannot be {done}: {text[:300]}") from error
