"""Tables conditioned on sets of sequences, against loops over events."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import strategies  # noqa: F401  (its profile has no deadline)
from naive.cross import gain, pairs_of_table, table_cells
from neuroseqret.data.sequences import EventSequences
from neuroseqret.processes.conditioned_tables import ConditionedTables
from neuroseqret.processes.event_classes import PARTS_OF_WINDOW
from neuroseqret.processes.event_tables import TABLES, EventTables, Table
from neuroseqret.processes.time_scale import TimeScale


def random_sequences(seed: int, number: int = 6, marks: int = 3, longest: int = 9) -> EventSequences:
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, longest + 1, number)
    return EventSequences.from_lists(
        [(np.cumsum(rng.exponential(1.0, n)), rng.integers(0, marks, n)) for n in lengths], starts=np.zeros(number)
    )


def fitted(corpus: EventSequences, sets: list[np.ndarray], marks: int = 3) -> ConditionedTables:
    return ConditionedTables.fit(EventTables.fit(corpus, TimeScale.fit(corpus), marks), corpus, sets)


@given(st.integers(0, 999))
def test_gains_of_mark_tables_are_those_of_the_loops(seed: int) -> None:
    corpus, new = random_sequences(seed), random_sequences(seed + 1000, 3)
    sets = [np.array([0, 1, 2]), np.array([2, 5])]
    tables = fitted(corpus, sets)
    found = tables.gains(new)
    rank = tables.tables.mark_rank
    as_lists = [[rank[x] for x in s.marks] for s in corpus]
    for lags in ((), (1,), (1, 2)):
        k = TABLES.index(Table("mark", tuple(("mark", lag) for lag in lags)))
        everything = [p for s in as_lists for p in pairs_of_table(s, lags, 3)]
        for s, rows in enumerate(sets):
            of_set = [p for row in rows for p in pairs_of_table(as_lists[row], lags, 3)]
            for row, sequence in enumerate(new):
                events = pairs_of_table([rank[x] for x in sequence.marks], lags, 3)
                expected = gain(events, of_set, everything, (3 ** len(lags), 3))
                assert found[k, row, s] == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("seed", range(3))
def test_cells_of_every_table_are_those_of_the_loops(seed: int) -> None:
    corpus = random_sequences(seed, 10, marks=4)
    tables = EventTables.fit(corpus, TimeScale.fit(corpus), 3)  # the last mark is unknown to it
    for table, cells in zip(TABLES, tables.cells(corpus), strict=True):
        for row, sequence in enumerate(corpus):
            end = float(sequence.times[-1]) if sequence.end is None else sequence.end
            expected = table_cells(tables, table, sequence.times.tolist(), sequence.marks.tolist(), 0.0, end)
            assert cells.codes[cells.rows == row].tolist() == expected, table


def test_every_table_counts_every_event_that_has_its_context() -> None:
    corpus = random_sequences(1, 10)
    tables = EventTables.fit(corpus, TimeScale.fit(corpus), 3)
    for table, cells in zip(TABLES, tables.cells(corpus), strict=True):
        reach = max((lag for _, lag in table.context), default=0)
        assert len(cells.rows) == np.maximum(corpus.lengths - reach, 0).sum(), table
        assert cells.codes.min(initial=0) >= 0
        assert cells.codes.max(initial=0) < cells.contexts * cells.outcomes


def test_no_edge_of_gap_classes_lies_on_a_value() -> None:
    """Gaps of a ticking clock are equal up to rounding; an edge on such a value would split equal gaps."""
    ticks = np.random.default_rng(0).choice([0.1, 0.2, 0.3, 0.7], (40, 30))
    corpus = EventSequences.from_lists([(np.cumsum(row), np.zeros(30, int)) for row in ticks], starts=np.zeros(40))
    scale = TimeScale.fit(corpus)
    values = (np.log(np.array([0.1, 0.2, 0.3, 0.7]) + scale.eps) - scale.mean) / scale.sd
    for name, edges in EventTables.fit(corpus, scale, 1).edges.items():
        if name.startswith("gap"):
            assert np.abs(edges[:, None] - values).min() > 1e-3, name


def test_part_of_the_window_is_the_tenth_that_the_event_falls_in() -> None:
    batch = EventSequences.from_lists([([0.0, 0.55, 1.0], [0, 0, 0])], starts=[0.0], ends=[1.0])
    k = TABLES.index(Table("part"))
    cells = list(EventTables.fit(batch, TimeScale.fit(batch), 1).cells(batch))[k]
    assert cells.codes.tolist() == [0, 5, PARTS_OF_WINDOW - 1]


def test_weighted_gains_are_the_weighted_sum() -> None:
    corpus = random_sequences(3)
    tables = fitted(corpus, [np.array([0, 1]), np.array([3])])
    weights = np.random.default_rng(0).random(len(TABLES)).astype(np.float32)
    weights[2] = 0
    np.testing.assert_allclose(
        tables.weighted_gains(corpus, weights), np.einsum("k,kqs->qs", weights, tables.gains(corpus)), atol=1e-5
    )


def test_a_set_speaks_for_sequences_like_its_own() -> None:
    rng = np.random.default_rng(0)
    slow = [(np.cumsum(rng.exponential(5.0, 30)), rng.integers(0, 2, 30)) for _ in range(4)]
    fast = [(np.cumsum(rng.exponential(0.5, 30)), rng.integers(0, 2, 30)) for _ in range(4)]
    corpus = EventSequences.from_lists(slow[:3] + fast[:3])
    tables = fitted(corpus, [np.arange(3), np.arange(3, 6)], 2)
    k = TABLES.index(Table("gap16", (("mark", 0),)))
    gains = tables.gains(EventSequences.from_lists([slow[3], fast[3]]))[k]
    assert gains[0, 0] > 0 > gains[0, 1]
    assert gains[1, 1] > 0 > gains[1, 0]


def test_many_marks_fold_into_the_size_of_a_table() -> None:
    rng = np.random.default_rng(0)
    corpus = EventSequences.from_lists([(np.arange(200.0), rng.integers(0, 100, 200)) for _ in range(3)])
    tables = EventTables.fit(corpus, TimeScale.fit(corpus), 100, most_cells=512)
    for table, cells in zip(TABLES, tables.cells(corpus), strict=True):
        if "mark" in (table.outcome, *(view for view, _ in table.context)):
            assert cells.contexts * cells.outcomes <= 512, table


def test_unseen_marks_single_events_and_ties_are_finite() -> None:
    corpus = random_sequences(5)
    tables = fitted(corpus, [np.array([0]), np.array([1, 2])])
    odd = EventSequences.from_lists([([1.0], [99]), ([2.0, 2.0, 2.0], [0, 7, 1]), ([0.0, 1e12], [1, 1]), ([1e-9], [0])])
    assert np.isfinite(tables.gains(odd)).all()
