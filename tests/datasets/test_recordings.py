"""Recordings: windows against a loop, events in any order, quantile marks."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from naive import datasets as naive
from neuroseqret.datasets.recordings import Recordings, Windows, by_edges, edge_names, quantile_edges, thin
from neuroseqret.errors import UserError


@given(
    st.lists(st.integers(1, 90), min_size=1, max_size=8),
    st.integers(1, 30),
    st.sampled_from(["drop", "keep", "spread", "shrink"]),
    st.integers(1, 10),
    st.sampled_from([None, 1, 3]),
)
def test_windows_are_those_of_the_loop(lengths, events, rest, min_events, most):
    rule = Windows(events, rest, min_events, most)
    parent, position, begin, stop = rule.cuts(np.array(lengths))
    got = list(zip(parent.tolist(), position.tolist(), begin.tolist(), stop.tolist(), strict=True))
    wanted = [
        (row, k, b, s)
        for row, length in enumerate(lengths)
        for k, (b, s) in enumerate(naive.windows(length, events, rest, min_events, most))
    ]
    assert got == wanted


def test_windows_start_at_their_first_event_and_keep_columns():
    whole = Recordings.from_parts(
        [([1.0, 2.0, 4.0, 7.0], [0, 1, 0, 1], {"group": "a", "source": "x"}), ([], [], {"group": "b", "source": "y"})]
    )
    cut = whole.cut(Windows(2)).to_sequences(["no", "yes"], "days")
    assert cut.to_lists() == [([0.0, 1.0], [0, 1]), ([0.0, 3.0], [0, 1])]
    assert cut.column("position").to_pylist() == [0, 1]
    assert cut.groups.to_pylist() == ["a", "a"]
    assert cut.ends.tolist() == [1.0, 3.0]
    assert cut.mark_names == ("no", "yes")


def test_events_in_any_order_become_recordings():
    made = Recordings.from_events(
        np.array([1, 0, 1, 0]),
        np.array([5.0, 2.0, 3.0, 2.0]),
        np.array([7, 8, 9, 6]),
        {"source": np.array(["b", "a", "b", "a"])},
    )
    assert made.offsets.tolist() == [0, 2, 4]
    assert made.times.tolist() == [2.0, 2.0, 3.0, 5.0]
    assert made.values.tolist() == [8, 6, 9, 7]  # equal times keep their order
    assert list(made.columns["source"]) == ["a", "b"]


def test_thin_takes_turns_among_sources():
    groups = np.array(["a"] * 10 + ["b"] * 2)
    sources = np.array(["x"] * 8 + ["y"] * 2 + ["z"] * 2)
    kept = thin(groups, 4, np.random.default_rng(0), sources)
    assert kept[:8].sum() == 2
    assert kept[8:10].sum() == 2
    assert kept[10:].all()


def test_marks_by_quantiles_are_equally_filled_and_named():
    values = np.random.default_rng(0).normal(size=1000)
    edges = quantile_edges(values, 4)
    assert np.bincount(by_edges(values, edges)).tolist() == [250] * 4
    assert len(edge_names(edges, ".1f", " W")) == 4
    assert edge_names(np.array([1.0, 2.0]), ".0f", " W") == ["under 1 W", "1 to 2 W", "2 W or more"]
    with pytest.raises(UserError, match="two marks"):
        quantile_edges(values, 1)
