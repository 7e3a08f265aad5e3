"""A retrieval set from nothing: classes of random point processes, seen through random clocks.

Every group is one random process (self-exciting, self-correcting or renewal). Its sequences are realisations whose
clock runs unevenly (a random monotone warp each) and at its own speed (a random scale each source and each sequence):
relevance is what such changes of the clock leave as it is. Offline, seeded, some hundred sequences in a fraction of
a second.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from neuroseqret.data.sequences import EventSequences, FloatArray, IntArray
from neuroseqret.data.splits import split_queries
from neuroseqret.datasets.simulated_processes import KINDS, Events, Process, random_process
from neuroseqret.errors import UserError

CORPUS_ROWS_PER_SOURCE, QUERIES_PER_SOURCE = 4, 2


def simulate_retrieval(
    groups: int = 12,
    per_group: int = 20,
    queries_per_group: int = 8,
    *,
    marks: int = 5,
    events: float = 50,
    min_events: int = 8,
    kinds: Sequence[str] = KINDS,
    warp: float = 0.4,
    scale: float = 0.3,
    seed: int = 0,
) -> tuple[EventSequences, EventSequences]:
    """A corpus and queries with groups, sources (different ones in corpus and queries) and splits.

    `per_group` corpus sequences and `queries_per_group` queries of each group, `events` events long on average and
    never below `min_events`; the kinds of process take turns over the groups; `warp` and `scale` are the strengths
    of the clock's changes, as standard deviations of a logarithm, 0 for none. Row order and ids tell nothing.
    """
    if min(groups, per_group, marks, events) <= 0 or queries_per_group < 0:
        raise UserError("a simulated set needs at least one group, one sequence a group, one mark and one event")
    if events < 2 * min_events:
        raise UserError(f"sequences of {events:g} events on average cannot all have {min_events}; ask for fewer")
    rng = np.random.default_rng(seed)
    both = per_group + queries_per_group
    parts = []
    for group in range(groups):
        process = random_process(kinds[group % len(kinds)], marks, float(np.exp(rng.normal(0, 0.3))), rng)
        source = np.arange(per_group) // CORPUS_ROWS_PER_SOURCE
        of_queries = source[-1] + 1 + np.arange(queries_per_group) // QUERIES_PER_SOURCE
        source = np.concatenate([source, of_queries])
        speed = np.exp(rng.normal(0, scale / 2, source.max() + 1))[source] * np.exp(rng.normal(0, scale, both))
        sampled = _long_enough(process, both, events, min_events, rng)
        horizon = np.full(both, float(events))
        times = warp_times(sampled.times, sampled.offsets, horizon, warp, rng)
        parts.append(
            EventSequences.from_arrays(
                times * np.repeat(speed, np.diff(sampled.offsets)),
                sampled.marks,
                sampled.offsets,
                ids=[f"{group}-{row}" for row in range(both)],
                starts=np.zeros(both),
                ends=horizon * speed,
                groups=[f"process {group}"] * both,
                metadata={"source": [f"process {group} source {s}" for s in source]},
                mark_names=[f"mark {mark}" for mark in range(marks)],
                time_unit="seconds",
            )
        )
    everything = EventSequences.concat(parts)
    is_query = np.tile(np.arange(both) >= per_group, groups)
    corpus, queries = (
        _shuffled(everything[rows], name, rng) for rows, name in ((~is_query, "corpus"), (is_query, "query"))
    )
    return corpus, split_queries(queries, seed)


def simulate(process: Process, number: int, horizon: float | FloatArray, seed: int = 0) -> EventSequences:
    """Realisations of one process on [0, horizon); those without an event are left out."""
    times, marks, offsets = process.sample(number, horizon, np.random.default_rng(seed))
    made = EventSequences.from_arrays(
        times,
        marks,
        offsets,
        starts=np.zeros(number),
        ends=np.broadcast_to(np.asarray(horizon, dtype=np.float64), (number,)),
        mark_names=[f"mark {mark}" for mark in range(process.num_marks)],
        validate=False,
    )
    return made[made.lengths > 0]


def warp_times(
    times: FloatArray,
    offsets: IntArray,
    horizon: FloatArray,
    strength: float,
    rng: np.random.Generator,
    pieces: int = 8,
) -> FloatArray:
    """Times under a random clock for each sequence, strictly monotone, that maps [0, horizon] onto itself.

    The clock is linear on `pieces` equal stretches with speeds exp(strength * N(0, 1)), scaled to end on time;
    with strength 0 it is the identity.
    """
    speeds = np.exp(rng.normal(0, strength, (len(horizon), pieces)))
    knots = np.concatenate([np.zeros((len(horizon), 1)), np.cumsum(speeds, axis=1)], axis=1)
    row = np.repeat(np.arange(len(horizon)), np.diff(offsets))
    place = times / horizon[row] * pieces
    piece = np.clip(place.astype(np.int64), 0, pieces - 1)
    inner = knots[row, piece] + (place - piece) * speeds[row, piece]
    return horizon[row] * inner / knots[row, -1]


def _long_enough(process: Process, number: int, horizon: float, min_events: int, rng: np.random.Generator) -> Events:
    """Realisations with at least `min_events` events: shorter ones are drawn anew."""
    rows: list[tuple[FloatArray, np.ndarray]] = []
    for _ in range(100):
        times, marks, offsets = process.sample(number, horizon, rng)
        enough = np.flatnonzero(np.diff(offsets) >= min_events)[: number - len(rows)]
        rows += [(times[offsets[i] : offsets[i + 1]], marks[offsets[i] : offsets[i + 1]]) for i in enough]
        if len(rows) == number:
            break
    else:
        raise UserError(f"the process is too slow for sequences of {min_events} events; ask for fewer")
    lengths = [len(t) for t, _ in rows]
    return Events(
        np.concatenate([t for t, _ in rows]),
        np.concatenate([x for _, x in rows]),
        np.concatenate([[0], np.cumsum(lengths)]),
    )


def _shuffled(sequences: EventSequences, name: str, rng: np.random.Generator) -> EventSequences:
    mixed = sequences[rng.permutation(len(sequences))]
    return mixed.with_column("id", [f"{name}-{row:06d}" for row in range(len(mixed))])
