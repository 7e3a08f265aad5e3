"""Hypothesis strategies for valid batches of event sequences, for the property tests of every room.

    from strategies import event_sequences

    @given(event_sequences(max_sequences=4))
    def test_something(batch): ...

Each option that may be None is then chosen by hypothesis, so that a test meets batches with and without it.
"""

from __future__ import annotations

import os
from datetime import datetime
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import settings
from hypothesis import strategies as st

from neuroseqret.data.sequences import EventSequences

# A busy machine is no failure: no deadline. NEUROSEQRET_EXAMPLES=1000 makes a thorough run.
settings.register_profile("project", deadline=None, max_examples=int(os.environ.get("NEUROSEQRET_EXAMPLES", "30")))
settings.load_profile("project")

#: Printable text of any script, without control characters and lone surrogates.
TEXT = st.text(st.characters(exclude_categories=("Cs", "Cc", "Zl", "Zp", "Cn", "Co")), max_size=6)
IDS = TEXT.filter(lambda text: text.strip() == text and text != "")
#: Ids that whitespace-separated files such as TREC runs can hold.
PLAIN_IDS = st.text("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.:", min_size=1, max_size=6)

#: Metadata columns of many Arrow types, with the values that they may hold.
METADATA: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "whole": (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    "small": (pa.uint8(), st.integers(0, 255)),
    "real": (pa.float64(), st.floats(width=64)),
    "flag": (pa.bool_(), st.booleans()),
    "source": (pa.large_string(), IDS),
    "text": (pa.string(), TEXT),
    "day": (pa.timestamp("us"), st.datetimes(datetime(1900, 1, 1), datetime(2100, 1, 1))),
    "label": (pa.dictionary(pa.int32(), pa.string()), st.sampled_from(["red", "green", "blue"])),
    "list": (pa.list_(pa.int32()), st.lists(st.integers(-5, 5), max_size=3)),
    "reals": (pa.large_list(pa.float64()), st.lists(st.floats(width=64), max_size=3)),
    "record": (
        pa.struct([("a", pa.int32()), ("b", pa.string())]),
        st.fixed_dictionaries({"a": st.integers(0, 9), "b": TEXT}),
    ),
    "bytes": (pa.binary(), st.binary(max_size=4)),
}


def times(length: int, limit: float = 1e9) -> st.SearchStrategy[list[float]]:
    """Non-decreasing finite times; ties are frequent, so are negative ones."""
    coarse = st.integers(-8, 8).map(lambda step: step / 4)
    fine = st.floats(-limit, limit, allow_nan=False, allow_infinity=False)
    one = st.lists(st.one_of(coarse, fine), min_size=length, max_size=length)
    return one.map(sorted)


def _chosen(draw: st.DrawFn, option: bool | None) -> bool:
    return draw(st.booleans()) if option is None else option


@st.composite
def event_sequences(
    draw: st.DrawFn,
    *,
    min_sequences: int = 0,
    max_sequences: int = 5,
    min_events: int = 1,
    max_events: int = 8,
    max_marks: int = 4,
    ids: st.SearchStrategy[str] = IDS,
    limit: float = 1e9,
    windows: bool | None = None,
    groups: bool | None = None,
    named: bool | None = None,
    metadata: bool | tuple[str, ...] | None = None,
    nulls: bool = True,
    views: bool | None = None,
) -> EventSequences:
    """A valid batch.

    `windows`: with start and end columns; `groups`: with a group column, few different ones; `named`: with mark
    names and a time unit; `metadata`: with some of `METADATA`, or with just those named; `nulls`: groups and
    metadata may be null; `views`: the batch is a slice out of the middle of a larger one.
    """
    ahead, behind = (draw(st.tuples(st.integers(0, 2), st.integers(0, 2)))) if _chosen(draw, views) else (0, 0)
    wanted = draw(st.integers(min_sequences, max_sequences))
    number = ahead + wanted + behind
    lengths = draw(st.lists(st.integers(min_events, max_events), min_size=number, max_size=number))
    vocabulary = draw(st.integers(1, max_marks))
    rows = [draw(times(length, limit)) for length in lengths]
    marks = draw(st.lists(st.integers(0, vocabulary - 1), min_size=sum(lengths), max_size=sum(lengths)))
    columns: dict[str, Any] = {
        "ids": draw(st.lists(ids, min_size=number, max_size=number, unique=True)),
        "mark_names": None,
        "time_unit": None,
    }

    def maybe_null(values: st.SearchStrategy[Any]) -> list[Any]:
        one = st.one_of(st.none(), values) if nulls else values
        return draw(st.lists(one, min_size=number, max_size=number))

    if _chosen(draw, windows):
        slack = st.sampled_from([0.0, 0.5, 3.0])
        columns["starts"] = [(row[0] if row else 0.0) - draw(slack) for row in rows]
        columns["ends"] = [(row[-1] if row else 0.0) + draw(slack) for row in rows]
    if _chosen(draw, groups):
        columns["groups"] = maybe_null(st.sampled_from(["g0", "g1", "g2"]))
    if _chosen(draw, named):
        columns["mark_names"] = [f"mark {i}" for i in range(vocabulary)]
        columns["time_unit"] = draw(st.sampled_from(["seconds", "days"]))
    if isinstance(metadata, tuple):
        chosen = list(metadata)
    elif _chosen(draw, metadata):
        chosen = draw(st.lists(st.sampled_from(sorted(METADATA)), max_size=3, unique=True))
    else:
        chosen = []
    columns["metadata"] = {name: pa.array(maybe_null(METADATA[name][1]), METADATA[name][0]) for name in chosen}
    made = EventSequences.from_arrays(
        np.array([t for row in rows for t in row], np.float64),
        np.array(marks, np.int32),
        np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)]).astype(np.int64),
        validate=min_events > 0,
        **columns,
    )
    return made[ahead : ahead + wanted]
