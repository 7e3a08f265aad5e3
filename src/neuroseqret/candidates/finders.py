"""All finders by method name, and which one an index takes."""

from __future__ import annotations

from neuroseqret.candidates.cell_finder import CellFinder
from neuroseqret.candidates.code_finders import BucketFinder, HammingFinder
from neuroseqret.candidates.exhaustive_finder import ExhaustiveFinder
from neuroseqret.candidates.finder import Finder

FINDERS: dict[str, type[Finder]] = {
    kind.method: kind for kind in (ExhaustiveFinder, CellFinder, BucketFinder, HammingFinder)
}
#: Comparing with fewer rows than this takes a fraction of a millisecond and misses nothing.
EXHAUSTIVE_BELOW = 20_000


def choose_finder(setting: str, rows: int) -> type[Finder]:
    """Return the finder for a corpus with this many rows; `setting` is a method name or `auto`.

    `auto` takes cells for a large corpus: they need the least time at equal recall (see docs/index-measurements.md).
    """
    if rows == 0:  # nothing to build from
        return ExhaustiveFinder
    if setting == "auto":
        return ExhaustiveFinder if rows < EXHAUSTIVE_BELOW else CellFinder
    return FINDERS[setting]
