"""Batches are equal by value, whatever Arrow encodes them in, and any change is seen."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from neuroseqret.data.sequences import EventSequences
from strategies import event_sequences


def small(**options) -> EventSequences:
    return EventSequences.from_lists([([0, 1.5], [0, 1]), ([2], [1]), ([3, 3, 4], [2, 0, 0])], **options)


@given(event_sequences(min_sequences=1, views=False), st.data())
def test_any_change_makes_a_batch_unequal(batch, data):
    assert batch == EventSequences(batch.table, batch.mark_names, batch.time_unit)
    assert batch != batch[:-1]
    assert batch != EventSequences(batch.table, [*(batch.mark_names or []), "more"], batch.time_unit)
    assert batch != EventSequences(batch.table, batch.mark_names, f"{batch.time_unit}s")
    row = data.draw(st.integers(0, len(batch) - 1))
    times = batch.to_lists()
    times[row][0][-1] = np.nextafter(times[row][0][-1], np.inf)
    changed = batch.with_column("times", [t for t, _ in times])
    assert changed != batch
    assert changed.fingerprint() != batch.fingerprint()
    marks = batch.to_lists()
    marks[row][1][0] += 1
    assert batch.with_column("marks", [x for _, x in marks]) != batch
    assert batch.with_column("extra", list(range(len(batch)))) != batch


def test_equality_looks_into_nested_columns_and_not_at_their_encoding():
    def batch(values, type_):
        return small(metadata={"extra": pa.array(values, type_)})

    reals = pa.list_(pa.float64())
    holes = [[1, float("nan")], None, []]
    assert batch(holes, reals) == batch(holes, pa.large_list(pa.float64()))
    assert batch([[1.0], None, []], reals) != batch([[1.0], [], []], reals)
    assert batch([[1.0], [2.0], []], reals) != batch([[1.0, 2.0], [], []], reals)
    colours = pa.dictionary(pa.int8(), pa.string())
    assert batch(["red", None, "blue"], colours) == batch(["red", None, "blue"], pa.string())
    assert batch([1, 2, 3], pa.int32()) != batch([1, 2, 3], pa.int64())
    record = pa.struct([("a", pa.float64())])
    assert batch([{"a": float("nan")}, None, {"a": 1}], record) == batch([{"a": float("nan")}, None, {"a": 1}], record)
    assert batch([{"a": 1}, None, {"a": 1}], record) != batch([{"a": 1}, {"a": None}, {"a": 1}], record)
