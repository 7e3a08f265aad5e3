"""A CSV file as a table of events: its delimiter, the roles and types of its columns, and its rows part by part.

Columns whose type is decided by all of their values stay text here (see `formats.long_csv`).
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterator, Mapping
from os import PathLike
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv

from neuroseqret.errors import DataError
from neuroseqret.readers.engines.damage import first_line
from neuroseqret.readers.engines.formulas import restored, restored_name
from neuroseqret.readers.engines.long_table import check_ids, find_roles
from neuroseqret.readers.engines.quotes import DELIMITERS, line_of_row, unclosed_quote, unquoted_header
from neuroseqret.readers.engines.text import head_text, open_bytes
from neuroseqret.readers.engines.times import (
    LARGEST_EXACT,
    WRITE_DATES,
    as_formatted_dates,
    check_unit,
    first_rounded,
    is_datetime,
    time_type,
)
from neuroseqret.readers.engines.values import is_number
from neuroseqret.readers.limits import check_columns
from neuroseqret.readers.options import Options

_TEXT = pa.dictionary(pa.int32(), pa.string())
#: Bytes that are parsed at once.
BLOCK = 1 << 22
_ALWAYS_TEXT = ("source", "split")


class CsvTable:
    """The file, its delimiter, and the roles and types of its columns."""

    def __init__(self, path: str | PathLike[str], options: Options) -> None:
        self.path, self.missing_ok = path, not options.validate
        head = head_text(path)
        if not head.strip():
            raise DataError("the file is empty", remedy="write a header line and one line per event")
        self.delimiter, self.names = _header(head)
        check_columns(len(self.names))
        try:
            self.roles = find_roles(self.names, options.roles)
        except DataError:
            self._check_quotes()
            if any(is_number(name) for name in self.names):
                raise DataError("the first line is not a header", remedy="name the columns in the first line") from None
            raise
        self.types = dict.fromkeys(self.names, _TEXT)
        for name in (self.roles.get("id"), self.roles.get("group"), *_ALWAYS_TEXT):
            if name in self.types:
                self.types[name] = pa.string()
        self.time_format = options.time_format
        times = self._time_types() if self.time_format is None else self._formatted_types()
        check_unit(times[self.roles["times"]], options.time_unit)
        self.dates = [name for name, kind in times.items() if self.time_format and is_datetime(kind)]
        self.types.update(times | dict.fromkeys(self.dates, pa.string()))
        self._seen_exact = False

    def _time_types(self) -> dict[str, pa.DataType]:
        """Return the type of the times and, if these are datetimes, of `start` and `end` unless they are numbers."""
        times = self.roles["times"]
        kind = time_type(self._first_values([times]).get(times, ""))
        if not is_datetime(kind):
            return {times: kind}
        bounds = self._first_values([self.roles[role] for role in ("start", "end") if role in self.roles])
        return {times: kind} | {name: time_type(text) for name, text in bounds.items() if not is_number(text)}

    def _formatted_types(self) -> dict[str, pa.DataType]:
        """Return the types if times are dates in a given format: `start` and `end` too, unless they are numbers."""
        bounds = self._first_values([self.roles[role] for role in ("start", "end") if role in self.roles])
        names = [self.roles["times"], *(name for name, text in bounds.items() if not is_number(text))]
        return dict.fromkeys(names, pa.timestamp("us"))

    def _first_values(self, names: list[str]) -> dict[str, str]:
        """Return the first value of each of these columns that is not empty, as text."""
        found: dict[str, str] = {}
        for table in self._parsed(dict.fromkeys(names, pa.string()), names) if names else ():
            for name in set(names) - set(found):
                if table.column(name).null_count < table.num_rows:
                    found[name] = table.column(name).drop_null()[0].as_py()
            if len(found) == len(names):
                break
        return found

    def tables(self) -> Iterator[pa.Table]:
        """Yield all rows; an error names the line."""
        rows, last = 0, None
        for table in self._parsed(self.types):
            if not self.missing_ok:
                check_ids(table, self.roles, rows, self._name_row)
            for name in self.dates:
                dates = as_formatted_dates(
                    table.column(name), str(self.time_format), f"column {name!r}", _shifted(self._name_row, rows)
                )
                table = table.set_column(table.column_names.index(name), name, dates)
            self._check_times(table.column(self.roles["times"]))
            rows += table.num_rows
            last = table.column(-1)[-1].as_py() if table.num_rows else last
            yield table
        if isinstance(last, str) and last.endswith("\n"):
            self._check_quotes()

    def _parsed(self, types: Mapping[str, pa.DataType], only: list[str] | None = None) -> Iterator[pa.Table]:
        """Yield the rows with these types, all columns or only some."""
        convert = pa_csv.ConvertOptions(
            column_types=types,
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
            include_columns=only,
        )
        parse = pa_csv.ParseOptions(delimiter=self.delimiter, newlines_in_values=True)
        with open_bytes(self.path) as stream:
            try:
                # With one thread only, errors name the row.
                reader = pa_csv.open_csv(
                    _WithNewline(stream),
                    read_options=pa_csv.ReadOptions(use_threads=False, block_size=BLOCK),
                    parse_options=parse,
                    convert_options=convert,
                )
                for batch in reader:
                    yield _restored(pa.Table.from_batches([batch]))
            except pa.ArrowInvalid as error:
                self._check_quotes()
                raise self._explained(first_line(error)) from error

    def _check_quotes(self) -> None:
        """Raise a `DataError` if a quote is never closed, so that the rest of the file is one field."""
        line = unclosed_quote(self.path, self.delimiter)
        if line is not None:
            raise DataError(f"line {line}: a quote opens here and is never closed", remedy="close or remove it")

    def _check_times(self, times: pa.ChunkedArray) -> None:
        """Raise a `DataError` if a time was written as a whole number that a float64 cannot hold."""
        if self._seen_exact or not pa.types.is_floating(times.type):
            return
        if not pc.any(pc.greater_equal(pc.abs(times), LARGEST_EXACT), min_count=0).as_py():
            return
        rows, name = 0, self.roles["times"]
        for table in self._parsed({name: pa.string()}, [name]):
            written = pc.utf8_trim_whitespace(table.column(name).fill_null("nan")).combine_chunks()
            row = first_rounded(written.cast(pa.float64()).to_numpy(zero_copy_only=False), written)
            if row is not None:
                raise DataError(
                    f"{self._name_row(rows + row)}: time ({name}) does not fit a float64 ({written[row]})",
                    remedy="convert it to seconds",
                )
            rows += table.num_rows
        self._seen_exact = True

    def _name_row(self, row: int) -> str:
        line = line_of_row(self.path, self.delimiter, row + 1)
        return f"row {row}" if line is None else f"line {line}"

    def _explained(self, problem: str) -> DataError:
        """Return Arrow's message with the name of the column and the line of the row in place of their numbers."""
        named = re.sub(r"In CSV column #(\d+)", lambda found: f"column {self.names[int(found[1])]!r}", problem)
        placed = re.sub(r"Row #(\d+)", lambda found: self._name_row(int(found[1]) - 2), named)
        remedy = "save it as UTF-8" if "UTF8" in problem else "correct the line"
        if "to timestamp" in problem:
            placed = re.sub(r"CSV conversion error to timestamp\S*: invalid value ('.*')", r"\1 is not a date", placed)
            remedy = WRITE_DATES
        return DataError(f"not readable as CSV ({placed})", remedy=remedy)

    @property
    def restored_roles(self) -> dict[str, str]:
        """The columns of the roles, by the names that they had before `write` made formulas harmless."""
        return {role: restored_name(name) for role, name in self.roles.items()}

    def text_columns(self) -> list[str]:
        """Return the columns whose type follows from all of their values."""
        return [name for name in self.names if self.types[name] == _TEXT]


def _header(head: str) -> tuple[str, list[str]]:
    """Return the delimiter and the names of the columns."""
    delimiter = find_delimiter(head)
    rows = csv.reader(io.StringIO(head, newline=""), delimiter=delimiter)
    return delimiter, next(row for row in rows if row)


def column_names(path: str | PathLike[str]) -> list[str]:
    """Return the names of the columns of a file that is not empty."""
    return _header(head_text(path))[1]


def _shifted(name_row: Callable[[int], str], rows: int) -> Callable[[int], str]:
    """Return a function that names rows of a part that begins after so many rows."""
    return lambda row: name_row(rows + row)


class _WithNewline:
    """A stream with a newline appended: if a quote is open at the end, the last value ends in a newline."""

    closed = False

    def __init__(self, stream: Any) -> None:
        self._stream, self._ended = stream, False

    def read(self, size: int = -1) -> bytes:
        block = bytes(self._stream.read(size))
        if block or self._ended:
            return block
        self._ended = True
        return b"\n"

    def close(self) -> None:
        self._stream.close()


def _restored(table: pa.Table) -> pa.Table:
    """Return the table without the apostrophes that `write` puts before formulas."""
    for at, field in enumerate(table.schema):
        if pa.types.is_dictionary(field.type):
            chunks = [
                pa.DictionaryArray.from_arrays(chunk.indices, restored(chunk.dictionary))
                for chunk in table.column(at).chunks
            ]
            table = table.set_column(at, field.name, pa.chunked_array(chunks, field.type))
        elif pa.types.is_string(field.type):
            table = table.set_column(at, field.name, restored(table.column(at)))
    return table


def find_delimiter(text: str) -> str:
    """Return the delimiter: comma, semicolon, tab or bar, whichever is most frequent in the header outside quotes."""
    header = unquoted_header(text)
    best = max(DELIMITERS, key=header.count)
    if best not in header:
        raise DataError("the first line names only one column", remedy="write a header with id, time and mark")
    return best
