"""Convert batches of sequences to data frames of pandas and polars, one row per sequence."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from neuroseqret.data.columns import CANONICAL
from neuroseqret.errors import MissingExtraError

if TYPE_CHECKING:
    import pandas
    import polars

    from neuroseqret.data.sequences import EventSequences


def to_pandas(sequences: EventSequences) -> pandas.DataFrame:
    """Return the frame of `EventSequences.to_pandas`."""
    try:
        import pandas
    except ImportError as error:
        raise MissingExtraError("pandas", "frames", "to_pandas") from error
    table = sequences.table
    own = [name for name in table.column_names if name in CANONICAL]
    frame = table.select(own).to_pandas()
    for name in table.column_names[len(own) :]:
        frame[name] = pandas.Series(pandas.arrays.ArrowExtensionArray(table.column(name)), index=frame.index)
    frame.attrs = {"mark_names": sequences.mark_names, "time_unit": sequences.time_unit}
    return frame


def frame_of_pandas(table: pa.Table) -> pandas.DataFrame:
    """Return any table as a frame of pandas."""
    try:
        import pandas  # noqa: F401
    except ImportError as error:
        raise MissingExtraError("pandas", "frames", "to_pandas") from error
    return table.to_pandas()


def frame_of_polars(table: pa.Table) -> polars.DataFrame:
    """Return any table as a frame of polars."""
    try:
        import polars
    except ImportError as error:
        raise MissingExtraError("polars", "frames", "to_polars") from error
    return polars.DataFrame(polars.from_arrow(table))


def to_polars(sequences: EventSequences) -> polars.DataFrame:
    """Return the frame of `EventSequences.to_polars`."""
    return frame_of_polars(sequences.table)
