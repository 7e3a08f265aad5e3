"""Errors that speak to the user: one line that names the place and the remedy.

Everything a user can cause (a bad file, a wrong option, a damaged model folder) is a `UserError`;
the command line prints its one line and exits with code 2. Anything else is a bug and keeps its traceback.
"""

from __future__ import annotations

from os import PathLike


class UserError(Exception):
    """A mistake of the user's or of their data, explained in one line."""


class DataError(UserError):
    """A flaw in event data: says the file, the sequence, the event's position and what to do.

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
    """Training left the numbers it can come back from; a lower learning rate may not."""


class MissingExtraError(UserError):
    """A feature needs a library that the base install leaves out."""

    def __init__(self, library: str, extra: str, purpose: str) -> None:
        super().__init__(f"{purpose} needs {library}: pip install 'neuroseqret[{extra}]'")
