"""What the caller of `read` says about the data; every format gets it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from neuroseqret.errors import UserError

#: The words of the column map, and the canonical column that each of them means.
_ROLE_OF = {
    "id": "id",
    "time": "times",
    "times": "times",
    "mark": "marks",
    "marks": "marks",
    "start": "start",
    "end": "end",
    "group": "group",
}
_NEEDED = ("id", "times", "marks")


@dataclass(frozen=True)
class Options:
    """The options of `read`; `roles` is the column map by canonical names, None for a column that does not exist."""

    roles: Mapping[str, str | None] = field(default_factory=dict)
    mark_names: tuple[str, ...] | None = None
    time_unit: str | None = None
    allow_pickle: bool = False
    validate: bool = True
    time_format: str | None = None  # how dates are written, in the codes of strptime

    @classmethod
    def of(
        cls,
        columns: Mapping[str, str | None] | None,
        mark_names: Sequence[str] | None = None,
        time_unit: str | None = None,
        allow_pickle: bool = False,
        validate: bool = True,
        time_format: str | None = None,
    ) -> Options:
        """Check what the caller gave."""
        roles: dict[str, str | None] = {}
        for word, column in (columns or {}).items():
            if word not in _ROLE_OF:
                raise UserError(
                    f"columns: {word!r} is nothing that a column can hold; it holds id, time, mark, start, end or group"
                )
            if column is None and word in ("time", "times"):
                raise UserError("columns: events need a time; name the column with the times")
            if column is not None and column in roles.values():
                raise UserError(f"columns: {column!r} is named twice; give every column one role")
            roles[_ROLE_OF[word]] = column
        if isinstance(mark_names, str):
            raise UserError("mark_names is one string; give a list with one name per mark")
        names = None if mark_names is None else tuple(mark_names)
        if names is not None and len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise UserError(f"mark_names holds {twice!r} twice; give every mark its own name")
        if time_format is not None and "%" not in time_format:
            raise UserError(f"time format {time_format!r}: write it with codes such as %d.%m.%Y %H:%M:%S")
        return cls(roles, names, time_unit, allow_pickle, validate, time_format)


def columns_in(
    names: Collection[str], known: Mapping[str, str | None], said: Mapping[str, str | None]
) -> dict[str, str | None] | None:
    """Return a column map for a table with these columns: what is `said`, and else what is known of tables like it.

    None if the table lacks a known column of ids, times or marks: then it is of another kind.
    """
    rest = {role: name for role, name in known.items() if role not in said}
    if any(name is not None and name not in names for role, name in rest.items() if _ROLE_OF[role] in _NEEDED):
        return None
    return {
        **{role: name for role, name in rest.items() if (name is None or name in names) and name not in said.values()},
        **said,
    }


def ask_for(*words: str) -> str:
    """Return how to name columns for words of the column map, in Python and on the command line."""
    none = " (if there are no marks, --column mark= or {'mark': None})" if "mark" in words else ""
    options = " ".join(f"--column {word}=..." for word in words)
    return f"say {options}, in Python columns={{{', '.join(f'{word!r}: ...' for word in words)}}}{none}"
