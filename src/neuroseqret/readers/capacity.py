"""What a format has room for: the content of a batch besides times and marks, and what is lost in writing it."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum

import pyarrow as pa
import pyarrow.compute as pc

from neuroseqret.data.columns import event_values
from neuroseqret.data.sequences import EventSequences
from neuroseqret.readers.engines.values import NUMBER_PATTERN


class Content(Enum):
    """Kinds of content besides times and marks; a format lists those that it holds."""

    IDS = "ids"
    WINDOWS = "observation windows"
    GROUPS = "groups"
    SPLIT = "column split"
    COLUMNS = "columns"
    EVENT_COLUMNS = "columns with one value per event"
    NESTED_COLUMNS = "nested columns"
    TYPES_BEYOND_JSON = "exact types of columns (beyond those of JSON)"
    TYPES_BEYOND_CSV = "exact types of columns"
    EMPTY_SEQUENCES = "sequences without events"
    MARK_NAMES = "mark names"
    MARK_COUNT = "number of marks"
    TIME_UNIT = "time unit"


def losses(sequences: EventSequences, holds: frozenset[Content]) -> list[str]:
    """Return, in words, the content of these sequences that a format which holds only `holds` loses."""
    held = set(holds)
    if Content.MARK_COUNT in held and _numbered(sequences):
        held.add(Content.MARK_NAMES)
    if Content.COLUMNS not in held:  # a lost column has no type to lose
        held |= {Content.TYPES_BEYOND_JSON, Content.TYPES_BEYOND_CSV}
    if Content.TYPES_BEYOND_CSV not in held:  # that loss includes this one
        held.add(Content.TYPES_BEYOND_JSON)
    return [
        f"{content.value} ({', '.join(names)})" if names else content.value
        for content, names in _carried(sequences)
        if content not in held
    ]


def _carried(sequences: EventSequences) -> Iterator[tuple[Content, list[str]]]:
    """Yield the content of the sequences, with the names of the columns concerned."""
    if sequences.ids.to_pylist() != list(map(str, range(len(sequences)))):
        yield Content.IDS, []
    if sequences.starts is not None or sequences.ends is not None:
        yield Content.WINDOWS, []
    if sequences.groups is not None:
        yield Content.GROUPS, []
    if (sequences.lengths == 0).any():
        yield Content.EMPTY_SEQUENCES, []
    if sequences.mark_names is not None:
        yield Content.MARK_NAMES, []
    if sequences.time_unit is not None:
        yield Content.TIME_UNIT, []
    yield from _columns(sequences)


def _columns(sequences: EventSequences) -> Iterator[tuple[Content, list[str]]]:
    metadata = sequences.metadata
    columns = {name: metadata.column(name).chunk(0) for name in metadata.column_names}
    nested = {name for name, column in columns.items() if pa.types.is_nested(column.type)}
    per_event = {name for name in nested if event_values(columns[name], sequences.lengths) is not None}
    kinds = {
        Content.SPLIT: {"split"} & set(columns),
        Content.COLUMNS: set(columns) - nested - {"split"},
        Content.EVENT_COLUMNS: per_event,
        Content.NESTED_COLUMNS: nested - per_event,
        Content.TYPES_BEYOND_JSON: {name for name, column in columns.items() if not _exact_in_json(column)},
        Content.TYPES_BEYOND_CSV: {name for name, column in columns.items() if not _exact_in_csv(name, column)},
    }
    for content, names in kinds.items():
        if names:
            yield content, [] if content is Content.SPLIT else [name for name in columns if name in names]


def _numbered(sequences: EventSequences) -> bool:
    """Return True if the marks are named by their numbers, so that their count is enough."""
    return sequences.mark_names == tuple(map(str, range(sequences.num_marks)))


def _exact_in_json(column: pa.Array) -> bool:
    """Return True if JSON keeps the type: text, whole numbers, numbers or truth values, and not only nulls."""
    while pa.types.is_list(column.type) or pa.types.is_large_list(column.type):
        column = column.flatten()
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    known = kind in (pa.int64(), pa.float64(), pa.bool_(), pa.string(), pa.large_string())
    return bool(known and column.null_count < len(column))


def _exact_in_csv(name: str, column: pa.Array) -> bool:
    """Return True if CSV keeps the type: text that does not look like numbers; `source` and `split` are always text."""
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if kind not in (pa.string(), pa.large_string()):
        return False
    texts = column.cast(pa.large_string()).drop_null()
    looks = pc.all(pc.match_substring_regex(texts, NUMBER_PATTERN), min_count=0).as_py()
    return name in ("source", "split") or not looks
