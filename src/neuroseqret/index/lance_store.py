"""The embedded store: one LanceDB table in a folder.

Lance first writes data files and then one manifest that makes them a version, so that a commit is complete or not
there. A method that writes returns when its files are safe from a power cut (see `lance_files`). Writers of one machine
take turns (see `storage.lock`); readers never wait.
"""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import lancedb
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neuroseqret.errors import UserError
from neuroseqret.index.lance_files import LanceFiles, is_whole
from neuroseqret.index.store import KEY, PARENT, SERIAL
from neuroseqret.storage import lock

TABLE = "sequences"
_FAILURES = (RuntimeError, ValueError, OSError)  # what Lance raises
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
            if not _usable(files):
                with lock.held(folder.parent / "write.lock"):
                    _fall_back(files)
            return cls(folder, _fresh(folder))

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

    def put(self, rows: pa.Table) -> None:
        with _explained(self.folder, "written to"), self._commit(), self._with_columns_of(rows) as fitted:
            self._table.add(fitted)

    def replace(self, rows: pa.Table, keys: Sequence[int]) -> None:
        with _explained(self.folder, "written to"), self._commit(), self._with_columns_of(rows) as fitted:
            if PARENT in rows.column_names:
                # A sequence may have more or fewer windows than before: delete all with its key in the same commit.
                merge = self._table.merge_insert(SERIAL).when_not_matched_insert_all()
                merge = merge.when_not_matched_by_source_delete(_one_of(KEY, keys))
            else:
                # A whole sequence is one row, which can be updated. Only keys are read: a fifth of the time.
                merge = self._table.merge_insert(KEY).when_matched_update_all().when_not_matched_insert_all()
            merge.execute(fitted)

    def delete(self, keys: Sequence[int]) -> None:
        with _explained(self.folder, "written to"), self._commit():
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
            with self._commit():
                have = {column for index in self._table.list_indices() for column in index.columns}
                for column in (SERIAL, KEY):
                    if self._table.count_rows() and column not in have:
                        self._table.create_index(column, config=lancedb.index.BTree())
                self._table.optimize(cleanup_older_than=_NEVER)
            with self._commit():  # old versions are removed only when the new one is safe
                self._table.optimize()

    @contextmanager
    def _commit(self) -> Iterator[None]:
        """Make what the block writes safe from a power cut."""
        self._table.checkout_latest()
        self._files.begin(int(self._table.version))
        yield
        self._files.sync(int(self._table.version))
        self._files.mark()

    @contextmanager
    def _with_columns_of(self, rows: pa.Table) -> Iterator[pa.Table]:
        """Give the rows in the table's columns; add missing columns first, and remove them again if the block fails.

        Lance adds columns in a commit of their own, and accepts some that it then cannot write to or read.
        """
        have = self._table.schema
        # A column without any value has no type yet: it is added when a value comes.
        new = [field for field in rows.schema if field.name not in have.names and not pa.types.is_null(field.type)]
        fitted = _fitted(rows, pa.schema([*have, *(pa.field(field.name, field.type) for field in new)]))
        before = self._table.version
        try:
            if new:
                self._table.add_columns(pa.schema([fitted.schema.field(field.name) for field in new]))
            yield fitted
        except BaseException:  # a panic in Lance is not an `Exception`
            if new:
                with suppress(*_FAILURES):  # on a full disk the empty columns stay
                    self._table.restore(before)
                    self._table.checkout_latest()
            raise


def _fresh(folder: Path) -> Any:
    """Open the table anew, without anything that an open one keeps in memory."""
    return lancedb.connect(str(folder)).open_table(TABLE)


def _usable(files: LanceFiles) -> bool:
    """Return whether the newest version can be read.

    A version that was acknowledged is not checked beyond its manifest. One that was not may lack some of its content
    after a power cut.
    """
    version, manifest = files.newest()
    if not version or not is_whole(manifest):
        return False
    safe = files.synced_version()
    if safe is None or version <= safe:  # None: by an earlier version of the library
        return True
    try:
        _read_through(_fresh(files.folder), (safe or version - 1) << 32)
    except _FAILURES:
        return False
    return True


def _read_through(table: Any, first: int) -> None:
    """Read all columns of the rows from serial `first` on, and the serials of the others; raise if that fails."""
    rows = sum(batch.num_rows for batch in table.search().select([SERIAL]).to_batches())
    if rows != table.count_rows():
        raise OSError(f"{table.count_rows()} rows are expected, {rows} are there")
    for _ in table.search().where(f"{SERIAL} >= {first}").to_batches():
        pass


def _fall_back(files: LanceFiles) -> None:
    """Go back to the newest version that can be read. The caller holds the write lock.

    Manifests of later versions are renamed. Their numbers are used up, since serials are made of them.
    """
    aside: list[tuple[Path, Path]] = []
    newest, _ = files.newest()
    try:
        while not _usable(files):
            version, manifest = files.newest()
            if version <= 1:
                raise OSError("no version can be read; restore a copy or make the index again")
            aside.append((manifest, files.set_aside(manifest)))
        table = _fresh(files.folder)
        back = int(table.version)
        while table.version < newest:
            table.restore(int(table.version))
    except BaseException:
        for manifest, renamed in aside:
            os.replace(renamed, manifest)
        raise
    files.sync(newest)
    files.mark()
    if aside:
        warnings.warn(
            f"{files.folder}: version {newest} cannot be read, probably after a power cut; the index went back to "
            f"version {back}, check what was added last ({aside[-1][1]} is kept)",
            stacklevel=5,
        )


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
    except _FAILURES as error:
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
