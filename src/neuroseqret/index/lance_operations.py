"""What a change does to the Lance dataset, before it is committed: rows in the dataset's columns, and operations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from neuroseqret.errors import UserError
from neuroseqret.index.store import KEY, SERIAL

if TYPE_CHECKING:
    from lance import LanceDataset


def added(dataset: LanceDataset, rows: pa.Table) -> Any:
    """Write rows to new files; return the operation that adds them.

    Lance would let two appends to the same version pass, one after the other. So the operation claims to change the
    first fragment too: then only one of two such operations passes. An empty dataset is overwritten, with the same
    effect.
    """
    from lance import LanceOperation
    from lance.fragment import write_fragments

    new, there = write_fragments(rows, dataset), dataset.get_fragments()
    if not there:
        return LanceOperation.Overwrite(dataset.lance_schema, new)
    return LanceOperation.Update(updated_fragments=[there[0].metadata], new_fragments=new)


def merged(dataset: LanceDataset, rows: pa.Table, keys: Sequence[int], windowed: bool) -> Any:
    """Write rows to new files; return the operation that puts them in the place of the rows with the keys."""
    if windowed:
        # A sequence may have more or fewer windows than before: delete all with its key in the same commit.
        merge = dataset.merge_insert(SERIAL).when_not_matched_insert_all()
        merge = merge.when_not_matched_by_source_delete(one_of(KEY, keys))
    else:
        # A whole sequence is one row, which can be updated. Only keys are read: a fifth of the time.
        merge = dataset.merge_insert(KEY).when_matched_update_all().when_not_matched_insert_all()
    operation: Any = merge.execute_uncommitted(rows)[0].operation
    first = dataset.get_fragments()[0].metadata  # changed in any case, as in `added`
    if first.id not in [*operation.removed_fragment_ids, *(one.id for one in operation.updated_fragments)]:
        operation.updated_fragments.append(first)
    return operation


def fitted(rows: pa.Table, schema: pa.Schema) -> pa.Table:
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


def one_of(column: str, values: Sequence[int]) -> str:
    """Return the SQL condition that a column has one of the values."""
    return f"{column} IN ({', '.join(str(v) for v in values)})" if len(values) else "false"
