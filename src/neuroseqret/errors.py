"""Errors that a user can cause: one line that names the place and the remedy.

A bad file, a wrong option or a damaged model folder raises a `UserError`. The command line prints its one line and
exits with code 2. Any other exception is a bug and keeps its traceback.
"""

from __future__ import annotations

from os import PathLike


class UserError(Exception):
    """A mistake in what the user gave, explained in one line."""


class DataError(UserError):
    """A flaw in event data, with the file, the sequence, the position of the event and what to do.

    >>> str(DataError("time decreases", file="a.csv", sequence="s1", position=3, remedy="sort the events"))
    'a.csv: sequence s1: event 3: time decreases; sort the events'
    """

    def __init__(
        self,
        problem: str,
        *,
        file: str | PathLike[str] | None = None,
        sequence: object = None,
        position: int | None = None,
        remedy: str | None = None,
    ) -> None:
        self.problem, self.file, self.sequence = problem, file, sequence
        self.position, self.remedy = position, remedy
        super().__init__(problem)

    def __str__(self) -> str:
        parts = []
        if self.file is not None:
            parts.append(str(self.file))
        if self.sequence is not None:
            parts.append(f"sequence {self.sequence}")
        if self.position is not None:
            parts.append(f"event {self.position}")
        line = ": ".join([*parts, self.problem])
        if self.remedy:
            line += f"; {self.remedy}"
        return line.replace("\n", " ")


class DivergenceError(UserError):
    """Training diverged; a lower learning rate may help."""


class MissingExtraError(UserError):
    """A feature needs a library that is not part of the base install."""

    def __init__(self, library: str, extra: str, purpose: str) -> None:
        super().__init__(f"{purpose} needs {library}: pip install 'neuroseqret[{extra}]'")
