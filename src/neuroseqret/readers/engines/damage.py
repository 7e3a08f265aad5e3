"""Turn what libraries raise over damaged files into one line for the user."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike

import pyarrow as pa

from neuroseqret.errors import DataError


@contextmanager
def damage_as_data_error(path: str | PathLike[str], form: str, remedy: str, *also: type[Exception]) -> Iterator[None]:
    """Turn whatever a reader of `form` raises over a damaged file into one `DataError` that names the file."""
    try:
        yield
    except DataError as error:
        error.file = error.file or path
        raise
    except FileNotFoundError as error:
        raise DataError("no such file", file=path, remedy="check the path") from error
    except (pa.ArrowException, OSError, MemoryError, OverflowError, ValueError, *also) as error:
        raise DataError(f"not readable as {form} ({first_line(error)})", file=path, remedy=remedy) from error


def first_line(error: Exception) -> str:
    """Return the first line of an error's message, or its class if it has none."""
    return (str(error).splitlines() or [""])[0] or type(error).__name__
