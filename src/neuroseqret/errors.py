"""Errors that a user can cause: one line that names the place and the remedy.

A bad file, a wrong option or a damaged model folder raises a `UserError`. The command line prints its one line and
exits with code 2. Any other exception is a bug and keeps its traceback.
"""

from __future__ import annotations

import re
from os import PathLike

# Control codes (a terminal obeys them), separators of lines, invisible characters that change the direction or the
# order of text, tags, and halves of characters, which cannot be printed at all.
OBEYED = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff"
    "\U000e0000-\U000e007f]"
)


def visible(text: object, keep: str = "") -> str:
    r"""Return text with everything that a terminal would obey instead of show as an escape, as Python writes it.

    Ids, groups, marks and metadata come from outside; all output goes through here. `keep` lists characters to leave
    as they are, such as line ends.

    >>> visible("a\x1b[2Jb\u202ec")
    'a\\x1b[2Jb\\u202ec'
    """

    def escaped(found: re.Match[str]) -> str:
        character = found.group()
        return character if character in keep else character.encode("unicode_escape").decode("ascii")

    return OBEYED.sub(escaped, str(text))


def one_line(text: object) -> str:
    """Return text as one visible line; line ends and tabs become spaces."""
    return visible(re.sub(r"[ \t]*[\r\n\t]+[ \t]*", " ", str(text)))


class UserError(Exception):
    """A mistake in what the user gave, explained in one line."""

    def __str__(self) -> str:
        return one_line(super().__str__())


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
        return one_line(line)


class DivergenceError(UserError):
    """Training diverged; a lower learning rate may help."""


class MissingExtraError(UserError):
    """A feature needs a library that is not part of the base install."""

    def __init__(self, library: str, extra: str, purpose: str) -> None:
        super().__init__(f"{purpose} needs {library}: pip install 'neuroseqret[{extra}]'")
