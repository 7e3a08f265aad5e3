"""pytorch-lifestream's Parquet: one row per client, with a list for `event_time` and for each feature.

The names of the id and of the features are up to the user. If it is not clear which column is the id or the mark, the
column map has to say it.
"""

from __future__ import annotations

from collections.abc import Iterator
from os import PathLike

import pyarrow as pa

from neuroseqret.data.sequences import EventSequences
from neuroseqret.errors import DataError
from neuroseqret.readers.engines.list_parquet import ListParquet
from neuroseqret.readers.engines.lists import is_list
from neuroseqret.readers.engines.parquet import damage_as_data_error, parquet_schema, write_parquet
from neuroseqret.readers.engines.values import is_text
from neuroseqret.readers.options import Options, ask_for

TIME, MARK = "event_time", "event_type"
#: Names that are understood without a column map: those of lifestream, and of EasyTPP's data sets as Parquet.
TIMES, _MARKS = (TIME, "time_since_start"), (MARK, "type_event")
_IDS = ("id", "client_id", "user_id", "customer_id", "cl_id", "seq_id", "sequence_id", "epk_id", "seq_idx")


def read(path: str | PathLike[str], options: Options) -> EventSequences:
    """Read all sequences; features other than the mark become metadata."""
    return _open(path, options).read()


def scan(path: str | PathLike[str], options: Options, batch_rows: int) -> Iterator[EventSequences]:
    """Yield the sequences in batches."""
    return _open(path, options).scan(batch_rows)


def write(sequences: EventSequences, path: str | PathLike[str]) -> None:
    """Write all columns: times as `event_time`, marks as `event_type`, others under their names."""
    names = {"times": TIME, "marks": MARK}
    table = sequences.table.rename_columns([names.get(name, name) for name in sequences.table.column_names])
    write_parquet(table, path, sequences)


def _open(path: str | PathLike[str], options: Options) -> ListParquet:
    with damage_as_data_error(path):
        roles = find_roles(parquet_schema(path), options)
    return ListParquet(path, roles, options)


def find_roles(schema: pa.Schema, options: Options) -> dict[str, str | None]:
    """Find id, times and marks: as mapped, else by lifestream's conventions, else an error that asks for them."""
    roles = dict(options.roles)
    if "times" not in roles:
        lists = [field.name for field in schema if is_list(field.type)]
        known = [name for name in TIMES if name in lists]
        if not known:
            found = ", ".join(lists)
            raise DataError(f"no list column {TIME!r}", remedy=f"{ask_for('time')}; list columns: {found}")
        roles["times"] = known[0]
    if "marks" not in roles:
        features = [f.name for f in schema if f.name != roles["times"] and _may_be_mark(f.type)]
        known = [name for name in _MARKS if name in features][:1] or features
        if len(known) == 1:
            roles["marks"] = known[0]
        else:
            found = ", ".join(features) or "none"
            raise DataError(
                "it is not clear which feature is the mark",
                remedy=f"{ask_for('mark')}; integer or text lists: {found}",
            )
    if "id" not in roles:
        scalars = [f.name for f in schema if not is_list(f.type)]
        known = [name for name in _IDS if name in scalars]
        choice = ["id"] if "id" in known else known or scalars
        if len(choice) != 1:
            found = ", ".join(scalars) or "none"
            raise DataError("it is not clear which column is the id", remedy=f"{ask_for('id')}; found: {found}")
        roles["id"] = choice[0]
    return roles


def _may_be_mark(kind: pa.DataType) -> bool:
    return is_list(kind) and (pa.types.is_integer(kind.value_type) or is_text(kind.value_type))
