"""Cells: finished measurements, one small JSON file each. Every table and figure is made from them.

    cells = ResultCells("results/cells")
    if cells.get("sports/thp/seed0-seen-full", config) is None:
        cells.put("sports/thp/seed0-seen-full", config, measure())

A cell has a name, the configuration that it was measured with (data, method, seed, budget, versions; see `versions`),
the commit, and a result. It is fresh if its configuration equals the one that is asked for. Any other cell is measured
again and replaced. The commit is kept to tell where a figure comes from; it does not make a cell stale.

Several processes can share a folder: what one of them is measuring, the others skip.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import Any

import neuroseqret
from neuroseqret.errors import UserError
from neuroseqret.storage.files import new_file
from neuroseqret.storage.lock import held

Config = dict[str, Any]
Result = dict[str, Any]


class ResultCells:
    """A folder of cells. With `keep_stale` a cell of other versions counts as fresh."""

    def __init__(self, folder: str | PathLike[str], keep_stale: bool = False) -> None:
        self.folder = Path(folder)
        self.keep_stale = keep_stale

    def get(self, name: str, config: Config) -> Result | None:
        """Return the result of a cell; None if there is no such cell or it has another configuration."""
        kept = self._read(self._file(name))
        if kept is None:
            return None
        ignored = {"versions"} if self.keep_stale else set()
        wanted, had = ({k: v for k, v in one.items() if k not in ignored} for one in (config, kept["config"]))
        return kept["result"] if wanted == had else None

    def put(self, name: str, config: Config, result: Result) -> None:
        """Write a cell; an earlier one of the same name is replaced."""
        file = self._file(name)
        file.parent.mkdir(parents=True, exist_ok=True)
        content = {"config": config, "commit": commit(), "result": result}
        with new_file(file) as path:
            path.write_text(json_text(content) + "\n", encoding="utf-8")

    def all(self) -> Iterator[tuple[str, Config, Result]]:
        """Yield name, configuration and result of every cell, sorted by name."""
        for file in sorted(self.folder.rglob("*.json")):
            if (kept := self._read(file)) is not None:
                yield file.relative_to(self.folder).with_suffix("").as_posix(), kept["config"], kept["result"]

    def commits(self) -> set[str]:
        """Return the commits that the cells were measured at."""
        return {kept["commit"] for file in self.folder.rglob("*.json") if (kept := self._read(file)) is not None}

    @contextmanager
    def claimed(self, name: str, wait: bool = False) -> Iterator[bool]:
        """Claim a piece of work and yield True; yield False, or wait, if another process has claimed it.

        The claim ends with the block, or with the process if that dies.
        """
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
            raise UserError(f"{file}: is not a cell ({error}); remove it and run the experiment again") from error
        if not isinstance(content, dict) or not {"config", "commit", "result"} <= content.keys():
            raise UserError(f"{file}: is not a cell; remove it and run the experiment again")
        return content


def commit() -> str:
    """Return the commit that is checked out, with a + if package or experiments differ from it.

    `unknown` outside a repository.
    """
    package, experiments = Path(neuroseqret.__file__).parent, Path(__file__).parent

    def git(*arguments: str) -> str:
        try:
            done = subprocess.run(["git", *arguments], cwd=package, capture_output=True, text=True)
        except OSError:  # a machine without git
            return ""
        return done.stdout.strip() if done.returncode == 0 else ""

    if not git("ls-files", "--", "__init__.py"):  # the package is installed somewhere inside another repository
        return "unknown"
    changed = git("status", "--porcelain", "--", ".", str(experiments))
    return git("rev-parse", "--short=10", "HEAD") + ("+" if changed else "")


def json_text(value: Any, depth: int = 0) -> str:
    """Return JSON with one line per key and lists on one line, so that a changed cell makes a readable diff."""
    if isinstance(value, dict) and value:
        inner = [f"{' ' * (depth + 1)}{json.dumps(key)}: {json_text(item, depth + 1)}" for key, item in value.items()]
        return "{\n" + ",\n".join(inner) + "\n" + " " * depth + "}"
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
