"""Read the files of the Amazon review data, in all published forms: product, user, rating, day, class."""

from __future__ import annotations

import gzip
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
import pyarrow.json as pajson

from neuroseqret.data.sequences import IntArray
from neuroseqret.datasets.raw_files import number_column
from neuroseqret.errors import DataError
from neuroseqret.readers.engines.damage import first_line

#: Names of the columns in the editions of 2014 and 2018, of 2023, and in the files with classes.
PRODUCT = ("asin", "parent_asin", "item_id")
USER = ("reviewerID", "user_id")
RATING = ("overall", "rating")
TIME = ("unixReviewTime", "timestamp", "reviewTime")
DAY_SECONDS = 86_400
#: Times above this are in milliseconds (1e11 seconds is the year 5138).
MILLISECONDS = 1e11


@dataclass(frozen=True)
class Reviews:
    """The reviews of one file, in the order of the file."""

    products: pa.Array
    users: pa.Array
    ratings: npt.NDArray[np.float64]
    days: IntArray
    classes: IntArray | None = None


def read_reviews(path: Path) -> Reviews:
    """Read the reviews of one file, JSON lines or csv, gzipped or not."""
    is_json = ".json" in path.name
    try:
        table = _json(path) if is_json else _csv(path)
    except (pa.ArrowInvalid, OSError, EOFError, zlib.error) as error:
        form = "JSON lines" if is_json else "a ratings csv"
        raise DataError(f"not {form} ({first_line(error)})", file=path, remedy="download it again") from error
    if not table.num_rows:
        raise DataError("holds no reviews", file=path, remedy="download it again")
    ratings = _numbers(table, RATING, path)
    if ratings.min() < 0 or ratings.max() > 5:
        raise DataError(
            f"ratings are {ratings.min():g} to {ratings.max():g}, not 1 to 5", file=path, remedy="convert them"
        )
    if ratings.max() > 1 and ratings.min() < 1:
        row = int(np.flatnonzero(ratings < 1)[0])
        raise DataError(f"line {row + 1}: rating is {ratings[row]:g}, not 1 to 5", file=path, remedy="remove the line")
    classes = _numbers(table, ("class",), path).astype(np.int64) if "class" in table.column_names else None
    if classes is not None and classes.min() < 0:
        raise DataError(f"a class is {classes.min()}", file=path, remedy="number them from 0")
    return Reviews(
        _column(table, PRODUCT, path).cast(pa.string()),
        _column(table, USER, path).cast(pa.string()),
        ratings,
        _days(table, path),
        classes,
    )


def _json(path: Path) -> pa.Table:
    wanted = pa.schema(
        [(name, pa.string()) for name in (*PRODUCT, *USER)] + [(name, pa.float64()) for name in (*RATING, *TIME[:2])]
    )
    parse = pajson.ParseOptions(explicit_schema=wanted, unexpected_field_behavior="ignore", newlines_in_values=False)
    read = pajson.ReadOptions(block_size=16 << 20)
    with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as stream:
        table = pajson.read_json(stream, read_options=read, parse_options=parse)
    # The columns of other editions are empty.
    return table.select([name for name in table.column_names if table.column(name).null_count < table.num_rows])


def _csv(path: Path) -> pa.Table:
    with gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open(encoding="utf-8") as stream:
        try:
            first = stream.readline().strip().split(",")
        except UnicodeDecodeError as error:
            raise DataError("not a text file", file=path, remedy="download it again") from error
    if set(first) & set(PRODUCT):
        return pacsv.read_csv(path)
    if len(first) != 4:
        raise DataError(
            f"{len(first)} columns without known names", file=path, remedy="expected item, user, rating and time"
        )
    types = {"a": pa.string(), "b": pa.string(), "rating": pa.float64(), "timestamp": pa.float64()}
    table = pacsv.read_csv(
        path,
        read_options=pacsv.ReadOptions(column_names=list(types)),
        convert_options=pacsv.ConvertOptions(column_types=types),
    )
    # The edition of 2014 has the user first, that of 2018 the product; product codes have ten characters.
    tens = [pc.mean(pc.equal(pc.utf8_length(table.column(c).slice(0, 10_000)), 10).cast(pa.int8())) for c in "ab"]
    names = ["asin", "user_id"] if tens[0].as_py() >= tens[1].as_py() else ["user_id", "asin"]
    return table.rename_columns([*names, "rating", "timestamp"])


def _column(table: pa.Table, names: tuple[str, ...], path: Path) -> Any:
    for name in names:
        if name in table.column_names:
            column = table.column(name).combine_chunks()
            if column.null_count:
                row = int(np.flatnonzero(column.is_null().to_numpy(zero_copy_only=False))[0])
                raise DataError(f"review {row + 1} has no {name}", file=path, remedy="download it again")
            return column
    raise DataError(f"no column {' or '.join(names)}", file=path, remedy="use the files as they are published")


def _numbers(table: pa.Table, names: tuple[str, ...], path: Path) -> npt.NDArray[np.float64]:
    return number_column(pa.table({names[0]: _column(table, names, path)}), names[0], path)


def _days(table: pa.Table, path: Path) -> IntArray:
    column = _column(table, TIME, path)
    if pa.types.is_date(column.type) or pa.types.is_timestamp(column.type):
        return column.cast(pa.date32()).cast(pa.int32()).to_numpy().astype(np.int64)
    seconds = _numbers(table, TIME, path)
    scale = 1000.0 if np.median(seconds) > MILLISECONDS else 1.0
    return np.floor_divide(seconds, scale * DAY_SECONDS).astype(np.int64)
