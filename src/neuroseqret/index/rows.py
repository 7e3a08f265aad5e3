"""Sequences to rows of the store and back, and what a row must be."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neuroseqret.data.meaning import UNKNOWN
from neuroseqret.data.sequences import CANONICAL, STRING, EventSequences
from neuroseqret.data.validation import event_flaws
from neuroseqret.errors import DataError, UserError
from neuroseqret.index.as_written import check_as_written, columns_of_hashes, row_hashes
from neuroseqret.index.config import IndexConfig
from neuroseqret.index.store import (
    CHECK,
    DIGEST,
    EMBEDDING,
    INTERNAL,
    KEY,
    OFFSET,
    PARENT,
    RESERVED,
    SERIAL,
    UNFIT,
    Store,
)
from neuroseqret.models.model_folder import SavedModel

EVENTS = ("id", "times", "marks", "start", "end")


def base_schema(dimension: int) -> pa.Schema:
    """Return the columns that every index has; metadata columns are added when rows bring them."""
    return pa.schema(
        [
            (SERIAL, pa.int64()),
            (KEY, pa.int64()),
            (DIGEST, pa.int64()),
            (CHECK, pa.int64()),
            (PARENT, STRING),
            (OFFSET, pa.int64()),
            *CANONICAL.items(),
            (EMBEDDING, pa.list_(pa.float32(), dimension)),
        ]
    )


def check_columns(sequences: EventSequences) -> None:
    """Raise a `DataError` if a metadata column has a name that the store cannot hold."""
    for name in sequences.table.column_names:
        if name in INTERNAL or name in RESERVED:
            raise DataError(f"a metadata column is called {name!r}, a name that the index uses", remedy="rename it")
        if not name:
            raise DataError("a metadata column has no name", remedy="name it or leave it out")
        if set(name) & set(UNFIT):
            raise DataError(
                f"a metadata column is called {name!r}; names must not contain dots, backticks or zero bytes",
                remedy="rename it",
            )


def check_vectors(
    vectors: npt.NDArray[np.float32], sequences: EventSequences, config: IndexConfig
) -> npt.NDArray[np.float32]:
    """Return embeddings as the kernels read them; raise an error if the dimension is wrong or one is not finite."""
    if vectors.shape != (len(sequences), config.dimension):
        raise UserError(
            f"the model's embeddings have {vectors.shape[-1]} dimensions, the index has {config.dimension}; "
            "use the model that the index was made with"
        )
    if not (finite := np.isfinite(vectors).all(1)).all():
        raise DataError(
            "the model's embedding is not finite",
            sequence=sequences.ids[int(np.argmin(finite))].as_py(),
            remedy="look for extreme times in it, or fit the model again",
        )
    return np.ascontiguousarray(vectors, np.float32)


def check_model(saved: SavedModel, config: IndexConfig, folder: Path) -> None:
    """Raise a `UserError` if the model in the index's folder is not the one that made its embeddings."""
    if config.tensors_blake2b is not None and saved.tensors_blake2b != config.tensors_blake2b:
        raise UserError(
            f"{folder}: not the model that the index was made with; restore that model or make the index again"
        )


def check_layout(store: Store, config: IndexConfig, folder: Path) -> None:
    """Raise a `UserError` if `index.json` describes other rows than the store holds; its numbers size what is read."""
    schema = store.schema
    remedy = "restore index.json or make the index again"
    stored = schema.field(EMBEDDING).type if EMBEDDING in schema.names else None
    if stored is None or not pa.types.is_fixed_size_list(stored) or stored.list_size != config.dimension:
        raise UserError(f"{folder}: index.json says {config.dimension} dimensions, the store holds {stored}; {remedy}")
    for field in base_schema(config.dimension):
        kind = schema.field(field.name).type if field.name in schema.names else None
        if kind != field.type and not (kind is None and field.name == CHECK):  # early indexes have none
            raise UserError(
                f"{folder}: the store is damaged, its column {field.name!r} is {kind or 'missing'}; restore a copy"
            )
    if config.settings.windowed:
        first = next(store.scan([PARENT]), None)
        if first is not None and first.column(PARENT).null_count:
            raise UserError(f"{folder}: index.json says that rows are windows, but the store holds sequences; {remedy}")


def cut_windows(sequences: EventSequences, config: IndexConfig) -> tuple[EventSequences, npt.NDArray[np.int64]]:
    """Return the rows of sequences (their windows, or the sequences themselves), and the sequence of each row.

    A sequence without a window is an error: it could not be found, and would be taken as new each time it is added.
    """
    settings = config.settings
    if not settings.windowed:
        return sequences, np.arange(len(sequences))
    rows = sequences.without_columns("parent", "offset").windows(
        events=settings.window_events, duration=settings.window_duration, step=settings.window_step
    )
    order = pa.compute.index_in(rows.column("parent"), sequences.ids).to_numpy(zero_copy_only=False).astype(np.int64)
    number = np.bincount(order, minlength=len(sequences))
    if not number.all():
        raise DataError(
            "none of its windows holds an event",
            sequence=sequences.ids[int(np.argmin(number))].as_py(),
            remedy="leave it out, or make an index with a step that is not longer than its windows",
        )
    return rows, order


def to_rows(
    rows: EventSequences,
    embeddings: npt.NDArray[np.float32],
    keys: npt.NDArray[np.int64],
    events: npt.NDArray[np.int64],
    first_serial: int,
    windowed: bool,
) -> pa.Table:
    """Return the table for `Store.put`: one row per sequence or window."""
    n = len(rows)
    columns = {
        SERIAL: pa.array(np.arange(first_serial, first_serial + n)),
        KEY: pa.array(keys),
        DIGEST: pa.array(events),
        CHECK: pa.array(row_hashes(rows, embeddings)),
        EMBEDDING: pa.FixedSizeListArray.from_arrays(
            pa.array(np.ascontiguousarray(embeddings, np.float32).ravel()), embeddings.shape[1]
        ),
    }
    table = rows.table
    if windowed:
        columns |= {PARENT: rows.column("parent"), OFFSET: rows.column("offset")}
        table = table.drop_columns(["parent", "offset"])
    return pa.table({**columns, **{name: table.column(name) for name in table.column_names}})


def embeddings_of(column: pa.Array, dimension: int) -> npt.NDArray[np.float32]:
    """Return an embedding column as a matrix."""
    flat = column.values.to_numpy()[column.offset * dimension : (column.offset + len(column)) * dimension]
    return flat.reshape(-1, dimension)


def all_embeddings(batches: Sequence[pa.RecordBatch], dimension: int) -> npt.NDArray[np.float32]:
    """Return the embeddings of several batches as one matrix."""
    return np.concatenate([embeddings_of(batch.column(EMBEDDING), dimension) for batch in batches])


def list_lengths(column: pa.Array) -> npt.NDArray[np.int32]:
    """Return the lengths of the lists of a column."""
    return np.diff(column.offsets.to_numpy()).astype(np.int32)


def to_sequences(table: pa.Table, config: IndexConfig, validate: bool = True) -> EventSequences:
    """Return rows of the store as sequences; start, end and group are left out if no row has one.

    Events are checked again, since those of a damaged file could lead a kernel outside its arrays.
    """
    have = [name for name in ("start", "end", "group") if name in table.column_names]
    drop = [name for name in have if table.column(name).null_count == table.num_rows]
    found = EventSequences.from_arrow(table.drop_columns(drop), config.mark_names, config.time_unit, validate=False)
    kept_unknown = config.mark_names is not None and int(found.marks.max(initial=-1)) >= len(config.mark_names)
    found = found.with_meaning((*(config.mark_names or ()), UNKNOWN)) if kept_unknown else found
    if validate:
        check_events(found)
    return found


def check_events(stored: EventSequences) -> None:
    """Raise a `DataError` if stored events are not what kernels rely on."""
    flaw = next(event_flaws(stored), None)
    if flaw is None and stored.lengths.all():
        return
    problem = "there are none" if flaw is None else flaw.problem
    raise DataError(
        f"its stored events are damaged: {problem}",
        sequence=stored.ids[int(np.argmin(stored.lengths))].as_py() if flaw is None else flaw.sequence,
        position=None if flaw is None else flaw.position,
        remedy="upsert it from your source, and run 'neuroseqret index check'",
    )


def stored(store: Store, ids: Sequence[str], config: IndexConfig, folder: Path) -> EventSequences:
    """Return the sequences with these ids in their order, compared with the hashes that were written with them."""
    if not ids:
        return EventSequences.from_lists([])
    quoted = ", ".join("'" + name.replace("'", "''") + "'" for name in ids)
    columns = [name for name in store.schema.names if name not in INTERNAL]
    hashes = columns_of_hashes(store, config)
    batches = list(store.scan([*columns, *hashes], where=f"id IN ({quoted})"))
    row_of = {name: row for row, name in enumerate(name for b in batches for name in b.column("id").to_pylist())}
    if missing := [name for name in ids if name not in row_of]:
        raise UserError(f"{folder}: holds no sequence {missing[0]!r}; check the id")
    table = pa.Table.from_batches(batches)
    found = to_sequences(table.select(columns), config, validate=False)
    check_as_written(found, all_embeddings(batches, config.dimension), table.select(hashes), config)
    check_events(found)
    return found[np.array([row_of[name] for name in ids])]
