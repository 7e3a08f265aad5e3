"""Read data frames of pandas and polars and Arrow tables, like a Parquet file with the same columns.

Neither pandas nor polars is imported here: a caller with a frame has imported it already.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from neuroseqret.data.sequences import EventSequences
from neuroseqret.data.stored_meaning import with_meaning
from neuroseqret.errors import DataError
from neuroseqret.readers.engines.damage import damage_as_data_error
from neuroseqret.readers.engines.lists import ListLayout, one_batch
from neuroseqret.readers.engines.marks import sorted_names
from neuroseqret.readers.engines.parquet import meaning_of, own_meaning
from neuroseqret.readers.engines.times import check_unit
from neuroseqret.readers.formats import canonical, hotpp, lifestream, long_parquet
from neuroseqret.readers.options import Options
from neuroseqret.readers.sniffing import table_format

if TYPE_CHECKING:
    import pandas

#: Stands in errors where a file would be named.
FRAME = "the frame"


def as_table(data: object) -> pa.Table | None:
    """Return a frame or table as an Arrow table, None for anything else, such as a path."""
    if isinstance(data, pa.Table):
        return data
    if _is_frame_of("polars", data):
        return data.to_arrow()  # type: ignore[attr-defined]
    return _from_pandas(data) if _is_frame_of("pandas", data) else None


def column_names(data: object) -> list[str] | None:
    """Return the names of the columns of a frame or table, None for anything else."""
    if isinstance(data, pa.Table):
        return list(data.column_names)
    if _is_frame_of("polars", data):
        return list(data.columns)  # type: ignore[attr-defined]
    if not _is_frame_of("pandas", data):
        return None
    return [str(name) for name in (*data.columns, *data.index.names) if name is not None]  # type: ignore[attr-defined]


def _is_frame_of(library: str, data: object) -> bool:
    module = sys.modules.get(library)
    return module is not None and isinstance(data, module.DataFrame)


def _from_pandas(frame: pandas.DataFrame) -> pa.Table:
    """Return the columns and the named index levels, with the meaning that `to_pandas` stores in `attrs`."""
    levels = [name for name in frame.index.names if name is not None and name not in frame.columns]
    try:
        table = pa.Table.from_pandas(frame.reset_index(levels) if levels else frame, preserve_index=False)
        names, unit = frame.attrs.get("mark_names"), frame.attrs.get("time_unit")
        return table if names is None and unit is None else with_meaning(table, names, unit)
    except (pa.ArrowException, ValueError, TypeError) as error:
        problem = ", ".join(map(str, error.args))
        raise DataError(
            f"not readable as a table ({problem})", file=FRAME, remedy="give every column a name and one type"
        ) from error


class _Rows:
    """The rows of a table in memory, read like those of a file."""

    def __init__(self, table: pa.Table) -> None:
        self._table, self.schema = table, table.schema

    def batches(self, rows: int, columns: list[str] | None = None) -> Iterator[pa.RecordBatch]:
        table = self._table if columns is None else self._table.select(columns)
        yield from table.to_batches(rows)


def read(table: pa.Table, options: Options) -> EventSequences:
    """Read all sequences of a table with one row per event or one row per sequence."""
    with damage_as_data_error(FRAME, "a table", "convert the column"):
        format = table_format(table.schema, own_meaning(table.schema, FRAME), options.roles)
        if format == "long-parquet":
            return long_parquet.read_rows(_Rows(table), FRAME, options)
        return _read_lists(table, _list_roles(format, table.schema, options), options)


def _list_roles(format: str, schema: pa.Schema, options: Options) -> Mapping[str, str | None]:
    if format == "lifestream":
        return lifestream.find_roles(schema, options)
    own: dict[str, Any] = {"canonical": canonical.ROLES, "hotpp": hotpp.ROLES}[format]
    return {**own, **options.roles}


def _read_lists(table: pa.Table, roles: Mapping[str, str | None], options: Options) -> EventSequences:
    own_names, own_unit = meaning_of(table.schema, FRAME)
    names, missing_ok = options.mark_names or own_names, not options.validate
    layout, rows = ListLayout.of(table.schema, roles, names, missing_ok), one_batch(table)
    check_unit(layout.time_type, options.time_unit)
    if layout.needs_names:
        names = sorted_names([rows.column(layout.roles["marks"]).flatten()])
        layout = ListLayout.of(table.schema, roles, names, missing_ok)
    return layout.one(layout.part(rows, 0)).with_meaning(time_unit=own_unit)
