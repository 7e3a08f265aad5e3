"""A random part of a corpus that is larger than memory, for `fit`.

The file is read in batches and never held as a whole: the sequences get random numbers, and those with the smallest are
kept, as many as there is room for. What is relevant to a query gets smaller ones, so that more of it is kept. The
numbers depend on the rows alone, so every process of a training keeps the same sequences.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Iterable
from os import PathLike

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from neuroseqret.data.sequences import EventSequences
from neuroseqret.readers.formats import canonical
from neuroseqret.readers.options import Options
from neuroseqret.readers.trec import Qrels

#: Events that `fit` holds at most: 0.6 GB in memory.
MOST_EVENTS = 50_000_000
_BATCH = 8192  # sequences that are read at a time
_LIKELIER = 8  # how many times likelier a sequence is kept that is relevant to a query
_SPARE = 1.25  # sequences are sorted out when there are so many times as many events as there is room for
Chosen = Callable[[EventSequences], npt.NDArray[np.bool_]]


def read_at_most(path: str | PathLike[str], most_events: int, relevant: Chosen | None = None) -> EventSequences:
    """Read a canonical Parquet; of one with more than `most_events`, a random part, with a warning."""
    file = canonical.open_file(path, Options())
    if file.events <= most_events:
        return canonical.with_folder_meaning(file.read(), path)
    batches = (canonical.with_folder_meaning(batch, path) for batch in file.scan(_BATCH))
    found = random_part(batches, most_events, relevant or relevant_to(None, None))
    warnings.warn(
        f"{path}: has {file.events:,} events; a random part of {len(found):,} sequences is read, as there is room for "
        f"{most_events:,} events",
        stacklevel=2,
    )
    return found


def random_part(batches: Iterable[EventSequences], most_events: int, relevant: Chosen) -> EventSequences:
    """Return a random part with at most so many events, in the order of the batches."""
    rng, limit = np.random.default_rng(0), np.inf
    kept: list[EventSequences] = []
    numbers, events = [np.empty(0)], 0
    for batch in batches:
        drawn = rng.random(len(batch))
        drawn[relevant(batch)] /= _LIKELIER
        kept.append(batch[drawn < limit])
        numbers.append(drawn[drawn < limit])
        events += len(kept[-1].times)
        if events > _SPARE * most_events:
            kept, numbers, limit = _smallest(kept, numbers, most_events)
            events = len(kept[0].times)
    if events > most_events:
        kept, *_ = _smallest(kept, numbers, most_events)
    return EventSequences.concat(kept)


def _smallest(
    kept: list[EventSequences], numbers: list[npt.NDArray[np.float64]], most_events: int
) -> tuple[list[EventSequences], list[npt.NDArray[np.float64]], float]:
    """Return the sequences with the smallest numbers, these numbers, and the smallest of the others."""
    whole, drawn = EventSequences.concat(kept), np.concatenate(numbers)
    order = np.argsort(drawn)
    fit = int(np.searchsorted(np.cumsum(whole.lengths[order]), most_events, "right"))
    rows = np.sort(order[:fit])
    return [whole[rows]], [drawn[rows]], float(drawn[order[fit]])


def relevant_to(queries: EventSequences | None, qrels: Qrels | None) -> Chosen:
    """Return what says which sequences of a batch are relevant to one of the queries."""
    if queries is None:
        return lambda batch: np.zeros(len(batch), bool)
    if qrels is not None:
        judged = {name for grades in qrels.values() for name, grade in grades.items() if grade > 0}
        return lambda batch: _one_of(batch.ids, judged)
    groups = set() if queries.groups is None else set(queries.groups.to_pylist()) - {None}
    return lambda batch: np.zeros(len(batch), bool) if batch.groups is None else _one_of(batch.groups, groups)


def _one_of(values: pa.Array, wanted: Collection[str]) -> npt.NDArray[np.bool_]:
    mask = pc.is_in(values, value_set=pa.array(sorted(wanted), values.type))
    found: npt.NDArray[np.bool_] = mask.to_numpy(zero_copy_only=False)
    return found


def of_part(qrels: Qrels, corpus: EventSequences) -> Qrels:
    """Return the judgements of the sequences that are in a part of the corpus."""
    there = set(corpus.ids.to_pylist())
    return {query: {name: grade for name, grade in judged.items() if name in there} for query, judged in qrels.items()}
