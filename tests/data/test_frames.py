"""Batches as data frames of pandas and polars, and back."""

from __future__ import annotations

import pandas
import polars
import pyarrow as pa
from hypothesis import given

from neuroseqret.data.sequences import EventSequences
from strategies import event_sequences


@given(event_sequences(min_events=0))
def test_pandas_round_trip_keeps_data_and_meaning(batch):
    assert EventSequences.from_pandas(batch.to_pandas(), validate=False) == batch


@given(event_sequences(min_events=0))
def test_polars_round_trip_keeps_data(batch):
    frame = batch.to_polars()
    back = EventSequences.from_polars(frame, mark_names=batch.mark_names, time_unit=batch.time_unit, validate=False)
    assert back == batch


def test_plain_frames_of_users_are_understood():
    wanted = EventSequences.from_lists([([0, 1], [0, 1]), ([2], [1])], ids=["1", "2"], groups=["x", "y"])
    data = {"marks": [[0, 1], [1]], "group": ["x", "y"], "times": [[0, 1], [2]], "id": [1, 2]}
    assert EventSequences.from_pandas(pandas.DataFrame(data)) == wanted
    assert EventSequences.from_pandas(pandas.DataFrame(data).astype({"group": "category"})) == wanted
    assert EventSequences.from_polars(polars.DataFrame(data)) == wanted
    categories = polars.DataFrame(data).with_columns(polars.col("group").cast(polars.Categorical))
    assert EventSequences.from_polars(categories) == wanted
    arrow = pa.table({**data, "marks": pa.array([[0.0, 1.0], [1.0]])})
    assert EventSequences.from_arrow(arrow) == wanted
    assert EventSequences.from_arrow(pa.concat_tables([arrow.slice(0, 1), arrow.slice(1, 1)])) == wanted
