"""Read what somebody else may have written or damaged: one line that names the path, whatever is wrong with it."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from neuroseqret.errors import UserError

_ADDRESS = re.compile(r"(s3|gs|az|abfss?|hdfs|ftp|ftps|sftp|https?):/")  # a `Path` has lost the second slash
MAX_DEPTH = 100  # levels of a JSON file
P = ParamSpec("P")
R = TypeVar("R")


def naming_path(function: Callable[P, R]) -> Callable[P, R]:
    """Turn system errors of a function, whose first argument is a path, into a `UserError` that names the path."""

    @wraps(function)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
        given: Any = args[0] if args else next(iter(kwargs.values()), None)
        check_path(given)
        try:
            return function(*args, **kwargs)
        except OSError as error:
            path = error.filename or given
            raise UserError(f"{path}: cannot be used ({error.strerror or error}); check the path") from error
        except RuntimeError as error:  # `Path.resolve`, before Python 3.13
            if not str(error).startswith("Symlink loop"):
                raise
            raise UserError(f"{given}: cannot be used (a circle of symbolic links); check the path") from error

    return wrapped


def check_path(path: object) -> None:
    """Raise a `UserError` if no file can have this name, which Python reports as an error of values, not of files."""
    if not isinstance(path, (str, os.PathLike)):
        return
    if found := _ADDRESS.match(os.fsdecode(path)):  # not repeated in the message: it may hold a password
        raise UserError(
            f"an address ({found[1]}://...) cannot be read as a file or folder of this machine; copy it here first. "
            "Only an index can be at an address: s3://bucket/path, or http://... and https://... of a server"
        )
    try:
        impossible = b"\0" in os.fsencode(path)
    except UnicodeEncodeError:
        impossible = True
    if impossible:
        raise UserError(f"{os.fspath(path)!r}: not the name of a file; check the path")


def read_json(path: Path, remedy: str) -> Any:
    """Read a JSON file; raise a `UserError` if it is no JSON, or nested deeper or with longer numbers than we write."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except RecursionError as error:
        raise UserError(f"{path}: damaged (nested too deep); {remedy}") from error
    except ValueError as error:  # no JSON, no UTF-8, or a number of thousands of digits
        raise UserError(f"{path}: damaged ({error}); {remedy}") from error
    level, depth = [found], 0
    while level:  # not recursive, since Python's own functions fail on deep values
        level = [inner for value in level for inner in _inside(value)]
        depth += 1
        if depth > MAX_DEPTH:
            raise UserError(f"{path}: damaged (nested too deep); {remedy}")
    return found


def _inside(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []
