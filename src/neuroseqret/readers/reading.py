"""`read` and `scan`: sequences from a file in any format, or from a data frame."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any

from neuroseqret.data.sequences import EventSequences
from neuroseqret.errors import DataError, UserError
from neuroseqret.readers import frame
from neuroseqret.readers.engines import csv_table
from neuroseqret.readers.engines.parquet import damage_as_data_error, parquet_schema
from neuroseqret.readers.options import Options
from neuroseqret.readers.registry import FORMATS, Format, format_named
from neuroseqret.readers.sniffing import sniff
from neuroseqret.storage.reading import naming_path

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow as pa


@naming_path
def read(
    source: str | PathLike[str] | pandas.DataFrame | polars.DataFrame | pa.Table,
    *,
    format: str | None = None,
    columns: Mapping[str, str | None] | None = None,
    mark_names: Sequence[str] | None = None,
    time_unit: str | None = None,
    time_format: str | None = None,
    allow_pickle: bool = False,
    validate: bool = True,
) -> EventSequences:
    """Read all sequences of a file, of a data frame (pandas, polars) or of an Arrow table.

    A frame has one row per event or, with lists of times and marks, one row per sequence.

    - `format`: one of `FORMATS`; by default the content of the file decides;
    - `columns`: maps `id`, `time`, `mark`, `start`, `end` and `group` to the column names of the source (`"mark": None`
      for events without marks);
    - `mark_names`: the names of the marks; marks that are text are numbered in this order, else in sorted order;
    - `time_unit`: the unit of the times; datetimes become seconds since 1970, with the unit `seconds`;
    - `time_format`: how dates are written that are text, such as `"%d.%m.%Y %H:%M:%S"`; not needed for ISO dates;
    - `allow_pickle`: open pickles; even then nothing in them is run;
    - `validate`: if False, flaws stay in, for `neuroseqret.data.repair.repair`.
    """
    options = Options.of(columns, mark_names, time_unit, allow_pickle, validate, time_format)
    if (table := frame.as_table(source)) is not None:
        if format is not None:
            raise UserError(f"{frame.FRAME}: {format!r} is a file format; leave out format for a data frame")
        return _finish(frame.read(table, options), options, frame.FRAME)
    if not isinstance(source, (str, PathLike)):
        raise UserError(
            f"read takes a path, a data frame of pandas or polars, or an Arrow table, not {type(source).__name__}; "
            "for lists and arrays use EventSequences.from_lists and from_arrays"
        )
    chosen = format_named(format or sniff(source, options.roles))
    if options.roles and not chosen.takes_column_map:
        raise UserError(f"{source}: {chosen.name} has fixed column names; leave out the column map")
    _check_time_format(chosen, options, source)
    try:
        return _finish(chosen.read(source, options), options, source)
    except DataError as error:
        error.file = error.file or source
        raise


@naming_path
def scan(
    path: str | PathLike[str],
    batch_rows: int = 8192,
    *,
    format: str | None = None,
    columns: Mapping[str, str | None] | None = None,
    mark_names: Sequence[str] | None = None,
    time_unit: str | None = None,
    time_format: str | None = None,
    validate: bool = True,
) -> Iterator[EventSequences]:
    """Yield the sequences of a file in batches of at most `batch_rows`, for files larger than memory.

    This works for Parquet, JSON lines and CSV. In long tables the rows of a sequence must be contiguous. Duplicate ids
    are found within a batch only (in long tables in the whole file).
    """
    if batch_rows < 1:
        raise UserError(f"batch_rows is {batch_rows}; it must be 1 or more")
    options = Options.of(columns, mark_names, time_unit, False, validate, time_format)
    chosen = format_named(format or sniff(path, options.roles))
    _check_time_format(chosen, options, path)
    if chosen.scan is None:
        able = ", ".join(f.name for f in FORMATS.values() if f.scan)
        raise UserError(f"{path}: {chosen.name} cannot be read in batches; convert it to one of {able}")
    return _scan(chosen.scan(path, options, batch_rows), options, path)


def scan_or_read(path: str | PathLike[str], batch_rows: int = 8192, **options: Any) -> Iterator[EventSequences]:
    """Yield batches as `scan` does, or one batch if the format cannot be read in batches; both take `options`."""
    format = sniff(path, Options.of(options.get("columns")).roles)
    if FORMATS[format].scan is None:
        return iter([read(path, format=format, **options)])
    return scan(path, batch_rows, format=format, **options)


def columns_of_long_table(path: str | PathLike[str]) -> list[str]:
    """Return the names of the columns of a table with one row per event; none if the file has another format."""
    format = sniff(path)
    if format == "long-csv":
        return csv_table.column_names(path)
    if format != "long-parquet":
        return []
    with damage_as_data_error(path):
        return list(parquet_schema(path).names)


def _check_time_format(chosen: Format, options: Options, path: str | PathLike[str]) -> None:
    if options.time_format is not None and chosen.name not in ("long-csv", "long-parquet"):
        raise UserError(f"{path}: times of the format {chosen.name} are numbers; leave out the time format")


def _scan(batches: Iterator[EventSequences], options: Options, path: str | PathLike[str]) -> Iterator[EventSequences]:
    try:
        for batch in batches:
            yield _finish(batch, options, path)
    except DataError as error:
        error.file = error.file or path
        raise


def _finish(sequences: EventSequences, options: Options, path: str | PathLike[str]) -> EventSequences:
    meant = sequences.with_meaning(options.mark_names, options.time_unit)
    return meant.validate(path) if options.validate else meant
