"""What people give to an index: sequences to add, ids, and queries in their many forms."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from os import PathLike
from typing import Any

import pyarrow as pa

from neuroseqret.candidates.finder import Rows
from neuroseqret.data.sequences import EventSequence, EventSequences
from neuroseqret.data.windows import Events, part
from neuroseqret.errors import UserError
from neuroseqret.index.view import View
from neuroseqret.readers.coercion import ColumnMap, Given, as_sequences, one_or_many
from neuroseqret.readers.frame import column_names
from neuroseqret.readers.options import columns_in

BATCH = 8192


def names_of(ids: str | Sequence[str]) -> list[str]:
    """Return one id or several as a list of strings."""
    given = list(ids) if isinstance(ids, Iterable) and not isinstance(ids, (str, pa.Scalar)) else [ids]
    names = [one.as_py() if isinstance(one, pa.Scalar) else one for one in given]  # `corpus.ids` is an Arrow column
    for name in names:
        if not isinstance(name, str):
            raise UserError(f"ids must be strings, not {type(name).__name__} ({name!r})")
    return names


def queries_of(
    view: View,
    queries: Given | None,
    id: str | Sequence[str] | None,
    events: Events | None,
    columns: ColumnMap | None,
) -> tuple[EventSequences, list[Rows], bool]:
    """Return the queries, the rows of the indexed sequences that they come from, and whether there is just one."""
    if (queries is None) == (id is None):
        both = "" if queries is None else ", not both"
        raise UserError(f"give a query or the id of an indexed sequence{both}: search(query) or search(id=...)")
    if id is not None:
        names = names_of(id)
        found = view.whole(names)
        own = [view.own_rows(name) for name in names]
        return found if events is None else part(found, events), own, isinstance(id, str)
    if events is not None:
        raise UserError("events takes a part of an indexed sequence; name it with id")
    if isinstance(queries, (str, PathLike)):
        raise UserError(
            f"a query is a sequence, not the text {str(queries)!r}; search(id={str(queries)!r}) searches with a "
            "sequence of the index, neuroseqret.read reads a file"
        )
    many, one = one_or_many(queries, "queries", columns)
    return many, [], one


def columns_of(given: object, columns: ColumnMap | None, known: ColumnMap | None) -> ColumnMap | None:
    """Return the column map of a frame: as given, or as the training data had it, if the frame has such columns."""
    names = None if columns is not None or known is None else column_names(given)
    return columns if names is None or known is None else columns_in(names, known, {})


def batches_of(sequences: Given | Iterable[EventSequences], columns: ColumnMap | None) -> Iterator[EventSequences]:
    """Yield sequences in batches of at most `BATCH`; a generator of batches or sequences is never held in memory."""
    batches: Any = sequences
    if isinstance(sequences, (list, tuple)) and any(isinstance(item, EventSequences) for item in sequences):
        batches = iter(sequences)
    if not isinstance(batches, Iterator):
        whole = as_sequences(sequences, "sequences", columns)
        yield from (whole[begin : begin + BATCH] for begin in range(0, len(whole), BATCH))
        return
    single: list[EventSequence] = []
    for item in batches:
        if not isinstance(item, EventSequence):
            yield from batches_of(item, columns)
            continue
        single.append(item)
        if len(single) == BATCH:
            yield EventSequences.of(single)
            single = []
    if single:
        yield EventSequences.of(single)
