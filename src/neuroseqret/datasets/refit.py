"""The houses of REFIT: which appliance each column measures, and its readings.

The readme text that comes with the csv files lists the appliances as `House 1` and, below it,
`0.Aggregate, 1.Fridge, 2.Chest Freezer, ...`. Columns that name their appliance need no readme.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv

from neuroseqret.data.sequences import FloatArray
from neuroseqret.datasets.raw_files import Progress, find, number_column, text, track
from neuroseqret.errors import DataError
from neuroseqret.readers.engines.damage import first_line

NO_APPLIANCE = {"time", "unix", "aggregate", "issues"}
UNUSED = {"not used", "unknown"}


def devices(
    raw: Path, houses: list[Path], progress: Progress | None = None
) -> Iterator[tuple[FloatArray, FloatArray, dict[str, str]]]:
    """Yield times (seconds since 1970), watts and columns of every appliance of every house."""
    names = _appliances(raw)
    for path in track(houses, progress):
        table = _table(path)
        times = number_column(table, "Unix", path)
        order = np.argsort(times, kind="stable")
        house = _house(path)
        for column in table.column_names:
            if column.lower() in NO_APPLIANCE:
                continue
            watts = number_column(table, column, path)
            kind = _kind(_name(column, house, names, path))
            if kind.lower() in UNUSED:
                continue
            columns = {"group": kind, "device": f"House{house}:{column}", "house": str(house)}
            yield times[order], watts[order], columns


def _table(path: Path) -> pa.Table:
    try:
        table = pacsv.read_csv(path)
    except pa.ArrowInvalid as error:
        raise DataError(
            f"not a comma-separated table ({first_line(error)})", file=path, remedy="download it again"
        ) from error
    if "Unix" not in table.column_names:
        found = ", ".join(table.column_names[:5])
        raise DataError(f"no column 'Unix' (found {found}, ...)", file=path, remedy="use REFIT's cleaned files")
    if "Issues" in table.column_names:
        # The owners advise to discard rows in which the appliances use more than the whole house.
        table = table.filter(pa.array(number_column(table, "Issues", path) == 0))
    return table


def _house(path: Path) -> int:
    found = re.search(r"house\W*_?(\d+)", path.stem, re.IGNORECASE)
    if not found:
        raise DataError("the file name does not say which house it is", file=path, remedy="keep REFIT's names")
    return int(found[1])


def _appliances(raw: Path) -> dict[tuple[int, int], str]:
    """Read names by (house, column) from a readme text in the folder; empty if there is none."""
    names: dict[tuple[int, int], str] = {}
    for path in find(raw, "*.txt", "*.md"):
        content = text(path)
        blocks = re.split(r"^\s*House\s+(\d+)\s*$", content, flags=re.MULTILINE)
        for house, block in zip(blocks[1::2], blocks[2::2], strict=True):
            listed = block.split("!NOTES")[0]
            for number, name in re.findall(r"(?<!\w)(\d)\.\s*(.+?)\s*(?=,|\s\d\.|\n|$)", listed):
                names[int(house), int(number)] = name
    return names


def _name(column: str, house: int, names: dict[tuple[int, int], str], path: Path) -> str:
    numbered = re.fullmatch(r"appliance\s*(\d+)", column, re.IGNORECASE)
    if not numbered:
        return column
    key = (house, int(numbered[1]))
    if key not in names:
        raise DataError(
            f"nothing says which appliance {column} of house {house} is",
            file=path,
            remedy="put REFIT's readme text, which lists the appliances, next to the csv files",
        )
    return names[key]


def _kind(name: str) -> str:
    """Return the kind of appliance, without rooms, counts and owners."""
    plain = re.sub(r"\(.*?\)|\?", "", name).strip()
    if "computer" in plain.lower():
        return "Computer"
    if plain.lower().startswith("television"):
        return "Television"
    return {"Dryer": "Tumble Dryer", "Fridge & Freezer": "Fridge-Freezer"}.get(plain, plain)
