"""Slow, obvious references of relevance and of the divisions: loops over queries and corpus."""

from __future__ import annotations

from neuroseqret.data.sequences import EventSequences


def relevant_rows(queries: EventSequences, corpus: EventSequences) -> list[list[int]]:
    """For every query the corpus rows of its group, by comparing all with all."""
    return [
        [row for row, other in enumerate(corpus) if query.group is not None and query.group == other.group]
        for query in queries
    ]


def sources_of(sequences: EventSequences) -> list[str]:
    """The source of every row; one of its own where it has none."""
    return [
        f"alone {row}" if sequence.metadata.get("source") is None else f"source {sequence.metadata['source']}"
        for row, sequence in enumerate(sequences)
    ]


def side_by_side(sequences: EventSequences, sides: list[object]) -> dict[str, set[object]]:
    """The sides on which every source has rows."""
    found: dict[str, set[object]] = {}
    for source, side in zip(sources_of(sequences), sides, strict=True):
        found.setdefault(source, set()).add(side)
    return found
