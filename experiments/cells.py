"""Cells: finished measurements, one small JSON file each, from which every table and figure is made.

    cells = Cells("results/cells")
    if cells.get("sports/thp/seed0-seen-full", config) is None:
        cells.put("sports/thp/seed0-seen-full", config, measure())

A cell has a name, the configuration it was measured with (data, method, seed, budget, version of the code) and a
result. It is fresh if its configuration is the one that is asked for; any other is measured again and replaced.
Versions of the code that were shown to give equal figures (`equal_code.json` beside the folder, which
benchmarks/equal_code.py writes) count as one, but for the cells that such a change is known to alter.
Processes that share a folder share the work: what one is measuring, the others pass by.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from fnmatch import fnmatchcase
from os import PathLike
from pathlib import Path
from typing import Any

from pydantic import BaseModel, TypeAdapter, ValidationError

import neuroseqret
from neuroseqret.errors import UserError
from neuroseqret.storage.files import new_file
from neuroseqret.storage.lock import held

EQUAL_CODE = "equal_code.json"
Config = dict[str, Any]
Result = dict[str, Any]


class Cells:
    """A folder of cells. With `keep_stale` a cell of an earlier version of the code counts as fresh."""

    def __init__(self, folder: str | PathLike[str], keep_stale: bool = False) -> None:
        self.folder = Path(folder)
        self.keep_stale = keep_stale
        self._changes = _equal_codes(self.folder.parent / EQUAL_CODE)

    def get(self, name: str, config: Config) -> Result | None:
        """The result of a cell, or None where it is absent or was measured with another configuration."""
        kept = self._read(self._file(name))
        if kept is None:
            return None
        wanted, had = dict(config), dict(kept["config"])
        if self.keep_stale or wanted.get("code") in self._equal_to(had.get("code"), name):
            wanted.pop("code", None), had.pop("code", None)
        return kept["result"] if wanted == had else None

    def _equal_to(self, code: str | None, name: str) -> set[str]:
        """The later versions of the code that give the same figures for a cell."""
        changes = [c.codes for c in self._changes if not any(fnmatchcase(name, pattern) for pattern in c.but)]
        found: set[str] = set()
        waiting = {code} if code else set()
        while waiting:
            waiting = {codes[one] for one in waiting for codes in changes if one in codes} - found
            found |= waiting
        return found

    def put(self, name: str, config: Config, result: Result) -> None:
        """Keep a result; numbers in lists stay on one line, so that a change of a cell reads well."""
        file = self._file(name)
        file.parent.mkdir(parents=True, exist_ok=True)
        content = {"config": config, "commit": commit(), "result": result}
        with new_file(file) as path:
            path.write_text(_text(content) + "\n", encoding="utf-8")

    def all(self) -> Iterator[tuple[str, Config, Result]]:
        """Name, configuration and result of every cell, by name."""
        for file in sorted(self.folder.rglob("*.json")):
            if (kept := self._read(file)) is not None:
                yield file.relative_to(self.folder).with_suffix("").as_posix(), kept["config"], kept["result"]

    def commits(self) -> set[str]:
        """The commits that the cells were measured at."""
        return {kept["commit"] for file in self.folder.rglob("*.json") if (kept := self._read(file)) is not None}

    @contextmanager
    def claimed(self, name: str, wait: bool = False) -> Iterator[bool]:
        """Take a piece of work; False (or a wait) where another process is at it. One that dies gives it back."""
        locks = self.folder / ".locks"
        locks.mkdir(parents=True, exist_ok=True)
        with held(locks / name.replace("/", "-"), wait) as mine:
            yield mine

    def _file(self, name: str) -> Path:
        return self.folder / f"{name}.json"

    def _read(self, file: Path) -> dict[str, Any] | None:
        try:
            content = json.loads(file.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            raise UserError(f"{file}: is no cell ({error}); remove it and run the experiment again") from error
        if not isinstance(content, dict) or not {"config", "commit", "result"} <= content.keys():
            raise UserError(f"{file}: is no cell; remove it and run the experiment again")
        return content


class _Change(BaseModel):
    """A change of the code that leaves figures as they were."""

    codes: dict[str, str]  # earlier version to later one
    but: list[str] = []  # patterns of the names of cells whose figures it does change


def _equal_codes(file: Path) -> list[_Change]:
    """The changes of the code that were shown to leave figures as they were."""
    try:
        return TypeAdapter(list[_Change]).validate_json(file.read_bytes()) if file.exists() else []
    except (OSError, ValidationError) as error:
        why = error.errors()[0]["msg"] if isinstance(error, ValidationError) else error
        raise UserError(f"{file}: is no list of equal versions ({why}); restore it or remove it") from error


def commit() -> str:
    """The commit that is checked out, with a + if the package differs from it; `unknown` outside a repository."""
    package = Path(neuroseqret.__file__).parent

    def git(*arguments: str) -> str:
        try:
            done = subprocess.run(["git", *arguments], cwd=package, capture_output=True, text=True)
        except OSError:  # a machine without git
            return ""
        return done.stdout.strip() if done.returncode == 0 else ""

    if not git("ls-files", "--", "__init__.py"):  # installed somewhere below another repository
        return "unknown"
    return git("rev-parse", "--short=10", "HEAD") + ("+" if git("status", "--porcelain", "--", ".") else "")


def _text(value: Any, depth: int = 0) -> str:
    if isinstance(value, dict) and value:
        inner = [f"{' ' * (depth + 1)}{json.dumps(key)}: {_text(item, depth + 1)}" for key, item in value.items()]
        return "{\n" + ",\n".join(inner) + "\n" + " " * depth + "}"
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
