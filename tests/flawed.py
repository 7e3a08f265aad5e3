"""Flawed sequences: one of each kind of flaw, and any mixture of them."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import strategies as st

from neuroseqret.data.sequences import EventSequences
from strategies import event_sequences

NAN, INF = float("nan"), float("inf")

EVENTS = [([0.0, 1.0], [0, 1]), ([2.0, 3.0, 4.0], [1, 0, 1])]

#: kind of flaw -> (what to change in a good batch, sequence, position, words of the problem, repair that mends it)
FLAWS = {
    "time not finite": ({"events": [EVENTS[0], ([2, INF, 4], [1, 0, 1])]}, "b", 1, "time is inf", "drop"),
    "time decreases": ({"events": [EVENTS[0], ([2, 4, 3.5], [1, 0, 1])]}, "b", 2, "time 3.5 is before.* 4", "sort"),
    "negative mark": ({"events": [EVENTS[0], ([2, 3, 4], [1, 0, -2])]}, "b", 2, "mark is -2", "drop"),
    "mark out of range": ({"events": [([0, 1], [0, 2]), EVENTS[1]]}, "a", 1, "mark 2 has no name.* 2 ", "drop"),
    "missing id": ({"ids": ["a", None]}, "in row 1", None, "id is missing", "drop"),
    "empty sequence": ({"events": [EVENTS[0], ([], [])]}, "b", None, "no events", "drop"),
    "duplicate id": ({"ids": ["a", "a"]}, "a", None, "more than once", "deduplicate"),
    "window starts late": ({"starts": [0, 2.5]}, "b", 0, "starts at 2.5.* at 2", "clip"),
    "window ends early": ({"ends": [1, 3]}, "b", 2, "ends at 3.* at 4", "clip"),
}


def batch(events=EVENTS, ids=("a", "b"), starts=(0, 0), ends=(1, 4), **columns) -> EventSequences:
    return EventSequences.from_lists(
        events,
        **{"ids": ids, "starts": starts, "ends": ends, "mark_names": ["x", "y"], "time_unit": "days", **columns},
        validate=False,
    )


@st.composite
def damaged(draw):
    """A batch to which anything may have been done."""
    made = draw(event_sequences(min_sequences=1, min_events=0, metadata=False))
    number, events = len(made), len(made.times)
    times, marks = made.times.copy(), made.marks.copy()
    ids, bounds = made.ids.to_pylist(), {"starts": made.starts, "ends": made.ends}
    for _ in range(draw(st.integers(0, 4))):
        kind = draw(st.sampled_from(["time", "mark", "id", "window"]))
        row = draw(st.integers(0, number - 1))
        if kind in ("time", "mark") and events:
            event = draw(st.integers(0, events - 1))
            if kind == "time":
                times[event] = draw(st.sampled_from([NAN, INF, -INF, 0.0, -5.0]))
            else:
                marks[event] = draw(st.sampled_from([-1, 99, 0, 2**31 - 1]))
        elif kind == "id":
            ids[row] = draw(st.sampled_from([None, "", ids[0]]))
        elif kind == "window" and made.starts is not None:
            name = draw(st.sampled_from(["starts", "ends"]))
            values = [None if b is None else float(b) for b in bounds[name]]
            values[row] = draw(st.sampled_from([None, INF, -INF, NAN, 0.0]))
            bounds[name] = values
    return EventSequences.from_arrays(
        times,
        marks,
        made.offsets,
        ids=pa.array(ids, pa.large_string()),
        **{name: b if b is None else pa.array(b, pa.float64()) for name, b in bounds.items()},
        groups=made.groups,
        mark_names=made.mark_names,
        time_unit=made.time_unit,
        validate=False,
    )
