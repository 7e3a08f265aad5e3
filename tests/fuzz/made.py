"""Targets that know the structure: hypothesis makes tables, conditions and queries, odd but well-formed, from bytes.

Changed bytes of a Parquet file hardly ever get past its checksums. These reach what comes after.
"""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import csv, parquet

TIMES = st.one_of(
    st.floats(0, 1e6), st.sampled_from([0.0, -0.0, 5e-324, 1e300, -1e300, math.inf, math.nan, 2.0**53]), st.floats()
)
TEXTS = st.one_of(st.sampled_from(["a", "b", "x,y", '"', "", "\x1b[2J", "=1+1", "ü\u202e", "None", "1e999"]), st.text())
VALUES: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "float": (pa.float64(), TIMES),
    "int": (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    "small": (pa.int8(), st.integers(0, 4)),
    "text": (pa.string(), TEXTS.map(lambda text: text.encode("utf-8", "replace").decode())),
    "truth": (pa.bool_(), st.booleans()),
    "moment": (pa.timestamp("us"), st.integers(-(2**62), 2**62)),
    "list": (pa.list_(pa.float64()), st.lists(TIMES, max_size=3)),
    "nothing": (pa.null(), st.none()),
}
LONG = {"id": ["text", "small"], "time": ["float", "small", "moment"], "mark": ["small", "text"], "group": ["text"]}
JSON_NAMES = {"times": "time_since_start", "marks": "type_event"}  # as EasyTPP writes them


@st.composite
def long_tables(draw: st.DrawFn) -> pa.Table:
    """One row per event: usual columns, sometimes of another type or missing, and others."""
    rows, columns = draw(st.integers(0, 8)), {}
    for name, usual in [*LONG.items(), ("extra", [*VALUES])]:
        kinds = usual if draw(st.integers(0, 5)) else [*VALUES]
        kind, values = VALUES[draw(st.sampled_from(kinds))]
        if name not in ("group", "extra") or draw(st.booleans()):
            some = st.none() | values if draw(st.integers(0, 5)) == 0 else values
            columns[name] = pa.array(draw(st.lists(some, min_size=rows, max_size=rows)), kind)
    return pa.table(columns)


@st.composite
def list_tables(draw: st.DrawFn) -> pa.Table:
    """One row per sequence, with lists of times and marks that may differ in length or fall."""
    rows, ids = draw(st.integers(0, 4)), []
    times, marks = [], []
    for _ in range(rows):
        ids.append(draw(st.one_of(st.none(), TEXTS)) if draw(st.integers(0, 5)) == 0 else f"s{len(ids)}")
        found = draw(st.lists(TIMES, max_size=5))
        times.append(sorted(found) if draw(st.integers(0, 5)) else found)
        number = len(found) if draw(st.integers(0, 5)) else draw(st.integers(0, 6))
        marks.append(draw(st.lists(st.integers(-1, 2**31 - 1), min_size=number, max_size=number)))
    ids = [id if id is None else id.encode("utf-8", "replace").decode() for id in ids]
    kind = draw(st.sampled_from([pa.float64(), pa.float64(), pa.string()]))
    values = times if kind == pa.float64() else [[str(time) for time in row] for row in times]
    return pa.table(
        {"id": ids, "times": pa.array(values, pa.list_(kind)), "marks": pa.array(marks, pa.list_(pa.int64()))}
    )


NAMES = st.sampled_from(["age", "score", "role", "on", "id", '"age"', "nsr_serial", "agee", "start"])
LITERALS = st.one_of(
    st.integers(-(10**20), 10**20).map(str),
    st.floats().map(str),
    st.sampled_from(["true", "false", "null", "'2024-05-31'", "'a", "age"]),
    TEXTS.map(lambda text: "'" + text.replace("'", "''") + "'"),
)
SIGNS = st.sampled_from(["=", "<>", "!=", "<", "<=", ">", ">=", "==", "like", "not like"])


def _tests() -> st.SearchStrategy[str]:
    some = st.lists(LITERALS, max_size=4).map(", ".join)
    return st.one_of(
        st.builds("{} {} {}".format, NAMES, SIGNS, LITERALS),
        st.builds("{} {}in ({})".format, NAMES, st.sampled_from(["", "not "]), some),
        st.builds("{} between {} and {}".format, NAMES, LITERALS, LITERALS),
        st.builds("{} is {}null".format, NAMES, st.sampled_from(["", "not "])),
        NAMES,
    )


CONDITIONS = st.recursive(
    _tests(),
    lambda inner: st.one_of(
        st.builds("({} {} {})".format, inner, st.sampled_from(["and", "or", "AND"]), inner),
        st.builds("not {}".format, inner),
        st.builds(
            "{}{}{}".format, st.sampled_from(["", "(", "length(", "1 + "]), inner, st.sampled_from(["", ")", ";"])
        ),
    ),
    max_leaves=12,
)
PLAIN = st.one_of(st.integers(), st.floats(), st.booleans(), st.none(), TEXTS)
MAPPINGS = st.recursive(
    st.dictionaries(
        NAMES,
        PLAIN
        | st.lists(PLAIN, max_size=3)
        | st.dictionaries(SIGNS | st.sampled_from(["in", "is_null", "between"]), PLAIN | st.lists(PLAIN, max_size=3)),
        max_size=3,
    ),
    lambda inner: st.dictionaries(st.sampled_from(["or", "and", "not"]), inner | st.lists(inner, max_size=3)),
    max_leaves=6,
)
QUERIES = st.lists(st.tuples(TIMES, st.integers(-1, 5)), max_size=8).flatmap(
    lambda events: st.sampled_from([sorted(events, key=lambda event: event[0]), events])
)


def from_bytes(strategy: st.SearchStrategy[Any], use: Callable[[Any], None]) -> Callable[[bytes], None]:
    """Return a function that makes something by the strategy, with the bytes as its choices, and uses it."""

    @settings(database=None, deadline=None)
    @given(strategy)
    def test(made: Any) -> None:
        use(made)

    return test.hypothesis.fuzz_one_input


def seeds(accepted: Callable[[bytes], bool], number: int = 200) -> tuple[bytes, ...]:
    """Return random inputs; the first one is accepted."""
    rng = random.Random(1)
    made = [rng.randbytes(2048) for _ in range(number)]
    first = next(at for at, data in enumerate(made) if accepted(data))
    return tuple(made[first:] + made[:first])


def written(table: pa.Table, folder: Path, kind: str) -> Path:
    """Write a table to a file of a kind; what this library would not write is written all the same."""
    path = folder / f"made.{kind}"
    if kind == "parquet":
        parquet.write_table(table, path)
    elif kind == "csv":
        csv.write_csv(table.select([c for c in table.column_names if not pa.types.is_list(table[c].type)]), path)
    else:
        table = table.rename_columns([JSON_NAMES.get(name, name) for name in table.column_names])
        rows = [json.dumps(row, default=str) for row in table.to_pylist()]
        path.write_text("\n".join(rows), encoding="utf-8", errors="replace")
    return path
