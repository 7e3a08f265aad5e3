"""Find out which format a file has, by its content: magic bytes, column names and types, keys of objects."""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any

import pyarrow as pa

from neuroseqret.errors import DataError, UserError
from neuroseqret.readers.engines.lists import is_list
from neuroseqret.readers.engines.long_table import CONVENTIONS
from neuroseqret.readers.engines.parquet import damage_as_data_error, own_meaning, parquet_schema
from neuroseqret.readers.engines.quotes import DELIMITERS, unquoted_header
from neuroseqret.readers.engines.text import head_of
from neuroseqret.readers.formats import canonical, easytpp, hotpp, lifestream, paired_text
from neuroseqret.readers.pickles.torch_file import LEGACY_MAGIC, ZIP_MAGIC, is_torch_archive
from neuroseqret.storage.reading import check_path

_PICKLE = re.compile(rb"\x80[\x02-\x05]|\([dl]p|[}\]]q")
#: Bytes that do not occur in text in any single-byte encoding.
_CONTROL = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f]")
_SAY_FORMAT = "see docs/formats.md, or name it: 'neuroseqret data convert --format ...', in Python format=..."
_NUMBERS = re.compile(r"(?:[\s0-9.eE+\-]|nan|inf)*")


def sniff(path: str | PathLike[str], roles: Mapping[str, str | None] | None = None) -> str:
    """Return the name of the file's format, or raise an error that says what the file looks like."""
    check_path(path)
    file = Path(path)
    if file.is_dir():
        if canonical.is_data_folder(file):
            inside = next(file / name for name in reversed(canonical.FOLDER_FILES) if (file / name).exists())
            raise UserError(
                f"{path}: is a data folder; name a file in it, such as {inside}, or use read_folder in Python"
            )
        return _parquet_format(file, roles or {})
    if not file.exists() and paired_text.is_pair(path):
        return "paired-text"
    head = head_of(path)
    if not head.strip():
        raise DataError("the file is empty", file=path, remedy="write it again")
    if head.startswith(b"PAR1"):
        return _parquet_format(file, roles or {})
    if head.startswith(LEGACY_MAGIC) or (head.startswith(ZIP_MAGIC) and is_torch_archive(file)):
        return "ifl-tpp"
    if head.startswith(ZIP_MAGIC):
        raise DataError(
            "a zip archive, perhaps a spreadsheet", file=path, remedy="unpack it, or export the sheet as CSV or Parquet"
        )
    if _PICKLE.match(head):
        return "gatech"
    return _text_format(path, head)


def _parquet_format(file: Path, roles: Mapping[str, str | None]) -> str:
    with damage_as_data_error(file):
        schema = parquet_schema(file)
        return table_format(schema, own_meaning(schema, file), roles)


def table_format(schema: pa.Schema, own: Mapping[str, Any], roles: Mapping[str, str | None]) -> str:
    """Return the format of a table with these columns; `own` is the metadata that this library wrote into it."""
    lists = {field.name for field in schema if is_list(field.type)}
    times, marks = roles.get("times"), roles.get("marks")
    # Files of this library first, whatever other lists they have.
    if "layout" in own:
        return "long-parquet"
    unmapped = own and not (times or marks) and canonical.ROLES["times"] not in lists
    if unmapped and {lifestream.TIME, lifestream.MARK} <= lists:
        return "lifestream"
    for name, columns in (("canonical", canonical.ROLES), ("hotpp", hotpp.ROLES)):
        by_name = not (times and marks)  # with both mapped, no name is left to decide by
        if by_name and {times or columns["times"], marks or columns["marks"]} <= lists:
            return name
    if times:
        return "lifestream" if times in lists else "long-parquet"
    if lists.intersection(lifestream.TIMES):
        return "lifestream"
    scalars = set(schema.names) - lists
    if any(name in scalars for name in CONVENTIONS["times"]) or not lists:
        return "long-parquet"
    return "lifestream"


def _text_format(path: str | PathLike[str], head: bytes) -> str:
    text = head.decode("utf-8-sig", errors="replace").lstrip()
    first = text.split("\n", 1)[0].strip()
    readable = _is_utf8(head)
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) or not (readable or _CONTROL.search(head)):
        raise DataError("not UTF-8 text", file=path, remedy="save it as UTF-8")
    if "\0" in text or (not readable and "\ufffd" in text[:1024]):  # text may contain this character
        raise DataError("not a known format (binary content)", file=path, remedy="see docs/formats.md")
    if text.startswith("["):
        return "easytpp-json"
    if text.startswith("{"):
        return _json_lines(path, first)
    if _NUMBERS.fullmatch(first):
        if paired_text.is_pair(path):
            return "paired-text"
        raise DataError(
            "numbers without a header",
            file=path,
            remedy="paired text needs both NAME_ev.txt and NAME_ti.txt; a CSV needs a header line",
        )
    if any(delimiter in unquoted_header(text) for delimiter in DELIMITERS):
        return "long-csv"
    if paired_text.is_pair(path):
        return "paired-text"  # its reader says what is not a number
    raise DataError("not a known format", file=path, remedy=_SAY_FORMAT)


def _is_utf8(head: bytes) -> bool:
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head)  # the last character may be cut off
    except UnicodeDecodeError:
        return False
    return True


def _json_lines(path: str | PathLike[str], first: str) -> str:
    try:
        keys = set(json.loads(first))
    except (ValueError, RecursionError):
        # The first object is longer than the head, or damaged; the reader says where.
        keys = set(re.findall(r'"(\w+)"\s*:', first)) or {easytpp.ROLES["times"]}
    if easytpp.ROLES["times"] in keys or len(keys) > 1:
        return "easytpp-jsonl"
    raise DataError(f"JSON without {easytpp.ROLES['times']!r}", file=path, remedy=_SAY_FORMAT)
