"""`simulate`: example data without downloads, made of random point processes seen through random clocks.

Every group is one random process (self-exciting, self-correcting or renewal). Its sequences are realisations of that
process, each under a clock of its own that runs unevenly (a random monotone warp) and at its own speed (a random scale
per source and per sequence). So relevance is what such changes of the clock leave unchanged.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from neuroseqret.data.relevance import Relevance
from neuroseqret.data.sequences import EventSequences, FloatArray, IntArray
from neuroseqret.data.splits import split_queries
from neuroseqret.datasets.simulated_processes import KINDS, Events, Process, random_process
from neuroseqret.errors import UserError
from neuroseqret.readers.data_folder import DataFolder

CORPUS_ROWS_PER_SOURCE, QUERIES_PER_SOURCE = 4, 2


def simulate(
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
) -> DataFolder:
    """Return a simulated corpus with queries and relevance, as a data folder in memory.

    The rows have groups, sources (no source is in both corpus and queries) and, in the queries, splits. Row order and
    ids give nothing away. The same arguments give the same data.

    - `groups`: how many processes; sequences of the same process are relevant to one another;
    - `per_group`, `queries_per_group`: corpus sequences and queries per group;
    - `marks`: size of the vocabulary of marks;
    - `events`: mean number of events per sequence; none has fewer than `min_events`;
    - `kinds`: which kinds of process the groups take in turn, out of `hawkes`, `self-correcting` and `renewal`;
    - `warp`, `scale`: how much clocks differ in evenness and in speed, as standard deviations of a logarithm; 0 for
      equal clocks.
    """
    if min(groups, per_group, marks, events) <= 0 or queries_per_group < 0 or not kinds:
        raise UserError("simulated data needs at least one group, one sequence per group, one mark, event and kind")
    if events < 2 * min_events:
        raise UserError(
            f"sequences of {events:g} events on average cannot all have {min_events}; "
            f"ask for at most {int(events / 2)} min_events or for more events"
        )
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
        times = warp_times(sampled.times, sampled.offsets, events, warp, rng)
        parts.append(
            EventSequences.from_arrays(
                times * np.repeat(speed, np.diff(sampled.offsets)),
                sampled.marks,
                sampled.offsets,
                ids=[f"{group}-{row}" for row in range(both)],
                starts=np.zeros(both),
                ends=events * speed,
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
    queries = split_queries(queries, seed)
    return DataFolder(None, corpus, queries, Relevance.from_groups(queries, corpus), {"name": "simulated"})


def warp_times(
    times: FloatArray, offsets: IntArray, horizon: float, strength: float, rng: np.random.Generator, pieces: int = 8
) -> FloatArray:
    """Return the times under a random clock per sequence, strictly monotone, that maps [0, horizon] onto itself.

    The clock is linear on `pieces` equal stretches with speeds exp(strength * N(0, 1)), scaled so that it ends on
    time; with strength 0 it is the identity.
    """
    number = len(offsets) - 1
    speeds = np.exp(rng.normal(0, strength, (number, pieces)))
    knots = np.concatenate([np.zeros((number, 1)), np.cumsum(speeds, axis=1)], axis=1)
    row = np.repeat(np.arange(number), np.diff(offsets))
    place = times / horizon * pieces
    piece = np.clip(place.astype(np.int64), 0, pieces - 1)
    inner = knots[row, piece] + (place - piece) * speeds[row, piece]
    return horizon * inner / knots[row, -1]


def _long_enough(process: Process, number: int, horizon: float, min_events: int, rng: np.random.Generator) -> Events:
    """Draw realisations with at least `min_events` events; shorter ones are drawn again."""
    rows: list[tuple[FloatArray, np.ndarray]] = []
    for _ in range(100):
        times, marks, offsets = process.sample(number, horizon, rng)
        enough = np.flatnonzero(np.diff(offsets) >= min_events)[: number - len(rows)]
        rows += [(times[offsets[i] : offsets[i + 1]], marks[offsets[i] : offsets[i + 1]]) for i in enough]
        if len(rows) == number:
            break
    else:
        raise UserError(f"the process is too slow for sequences of {min_events} events; ask for fewer min_events")
    lengths = [len(t) for t, _ in rows]
    return Events(
        np.concatenate([t for t, _ in rows]),
        np.concatenate([x for _, x in rows]),
        np.concatenate([[0], np.cumsum(lengths)]),
    )


def _shuffled(sequences: EventSequences, name: str, rng: np.random.Generator) -> EventSequences:
    mixed = sequences[rng.permutation(len(sequences))]
    return mixed.with_column("id", [f"{name}-{row:06d}" for row in range(len(mixed))])
