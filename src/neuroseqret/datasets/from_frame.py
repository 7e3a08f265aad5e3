"""`prepare`: a data folder in memory out of a data frame, what `neuroseqret data prepare --from` does with a file."""

from __future__ import annotations

import re
import warnings
from collections.abc import Collection, Mapping, Sequence
from os import PathLike

from neuroseqret.data.repair import repair as mend
from neuroseqret.datasets.prepare import prepare_sequences
from neuroseqret.errors import DataError, UserError
from neuroseqret.readers import frame
from neuroseqret.readers.coercion import Given, as_sequences
from neuroseqret.readers.data_folder import DataFolder
from neuroseqret.readers.reading import read

NO_GROUPS = (
    "there are no groups, so relevance is made from sub-sequences: windows of the same sequence count as relevant to "
    "each other. If you know which sequences belong together, name the column with group=..."
)


def prepare(
    data: Given | str | PathLike[str],
    *,
    id: str | None = None,
    time: str | None = None,
    mark: str | None = None,
    group: str | None = None,
    start: str | None = None,
    end: str | None = None,
    query_share: float | None = None,
    relevance: str | None = None,
    window_events: int | None = None,
    time_unit: str | None = None,
    time_format: str | None = None,
    mark_names: Sequence[str] | None = None,
    repair: str | Collection[str] = (),
    seed: int = 0,
    out: str | PathLike[str] | None = None,
) -> DataFolder:
    """Divide sequences into a corpus and queries to train and evaluate on, and say what is relevant to each query.

    `data` is a data frame (or a file) with one row per event or one row per sequence, or sequences. `id`, `time`,
    `mark`, `group`, `start` and `end` name its columns, where they are not called so; an empty name says that there is
    no such column. The result has `.queries` (split into train, validation and test), `.corpus` and `.relevance`; `fit`
    and `evaluate` take it.

    Sequences of the same `group` are relevant to each other; `query_share` of them become queries (0.15). Without
    groups relevance is made from sub-sequences, with a warning. `time_unit`, `time_format` and `mark_names` are as in
    `neuroseqret.read`. `repair` names repairs to make first, such as `"sort"`, see `neuroseqret.data.repair.repair`;
    a warning tells what was changed. `relevance`, `window_events` and `seed` are as in
    `neuroseqret.datasets.prepare.prepare_sequences`. `out` also writes the data folder there.
    """
    named = {"id": id, "time": time, "mark": mark, "group": group, "start": start, "end": end}
    columns: Mapping[str, str | None] = {role: column or None for role, column in named.items() if column is not None}
    table = frame.as_table(data)
    if table is not None and not table.num_rows:
        raise UserError("the frame has no rows, so there is nothing to prepare")
    if isinstance(data, (str, PathLike)) or table is not None:
        try:
            sequences = read(
                data,
                columns=columns or None,
                time_unit=time_unit,
                time_format=time_format,
                mark_names=mark_names,
                validate=not repair,
            )
        except DataError as error:
            raise _with_own_words(error) from error
    else:
        if time_format is not None:
            raise UserError("time_format says how the dates of a frame or file are written; leave it out for sequences")
        sequences = as_sequences(data, "data", columns or None).with_meaning(mark_names, time_unit)
    if repair:
        sequences, report = mend(sequences, repair)
        warnings.warn(f"repaired: {report}", stacklevel=2)
        sequences.validate(data if isinstance(data, (str, PathLike)) else None)
    if relevance is None and sequences.groups is None:
        warnings.warn(NO_GROUPS, stacklevel=2)
    asked = {"columns": dict(columns), "time_format": time_format}
    return prepare_sequences(
        sequences,
        out,
        relevance=relevance,
        query_share=query_share,
        window_events=window_events,
        seed=seed,
        meta={"asked": {name: value for name, value in asked.items() if value}},  # a model remembers them
    )


def _with_own_words(error: DataError) -> DataError:
    """Return an error about columns that are not known with a remedy in the words of `prepare`."""
    asked, _, found = (error.remedy or "").partition("columns found: ")
    words = re.findall(r"--column (\w+)=\.\.\.", asked)
    if not words:
        return error
    remedy = f"say prepare(..., {', '.join(f'{word}=...' for word in words)}); give '' for a column that does not exist"
    return DataError(error.problem, file=error.file, remedy=f"{remedy}; columns found: {found}")
