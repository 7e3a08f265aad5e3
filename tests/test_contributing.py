"""The map in CONTRIBUTING.md: whatever it names exists, and no command, format, method or room is missing."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest
from typer.main import get_command

from conftest import REPOSITORY
from neuroseqret.cli.main import app
from neuroseqret.methods.registry import BASELINES, MODELS
from neuroseqret.readers import FORMATS

PAGE = REPOSITORY / "CONTRIBUTING.md"
PACKAGE = REPOSITORY / "src" / "neuroseqret"
OUTSIDE = ("tests", "experiments", "docs", "benchmarks", "results", "src")


def text() -> str:
    return PAGE.read_text(encoding="utf-8")


def table_rows(heading: str) -> list[list[str]]:
    """The cells of every row of the first table under a heading."""
    section = text().split(f"{heading}\n", 1)[1].split("\n#", 1)[0]
    lines = [line[1:-1].split("|") for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in cells] for cells in lines[2:]]


def spans() -> list[str]:
    """Every code span of the page that names a file, with or without `::name`."""
    found = re.findall(r"`([^`\n]+)`", text())
    return sorted({span for span in found if re.fullmatch(r"[\w./-]+\.(py|md|toml)(::[\w.]+)?", span)})


def place_of(file: str) -> Path:
    """The file that a path of the page means."""
    top = file.split("/")[0]
    return REPOSITORY / file if top in OUTSIDE or "/" not in file else PACKAGE / file


@cache
def names_in(file: Path) -> frozenset[str]:
    """Classes, functions and constants of a file, and `Class.member` of its classes, without importing it."""
    found: set[str] = set()
    for node in ast.parse(file.read_text(encoding="utf-8")).body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            found.add(node.name)
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            found |= {target.id for target in targets if isinstance(target, ast.Name)}
        if isinstance(node, ast.ClassDef):
            found |= {f"{node.name}.{one.name}" for one in node.body if isinstance(one, ast.FunctionDef)}
    return frozenset(found)


@pytest.mark.parametrize("span", spans())
def test_what_the_map_names_exists(span: str) -> None:
    file, _, name = span.partition("::")
    if file == "file.py":  # the example that explains the notation
        return
    place = place_of(file)
    assert place.exists(), f"CONTRIBUTING.md names `{span}`, but there is no {place.relative_to(REPOSITORY)}; update it"
    if name:
        where = place.relative_to(REPOSITORY)
        known = ", ".join(sorted(names_in(place)))
        assert name in names_in(place), f"CONTRIBUTING.md names `{span}`, but {where} has no {name}; it has {known}"


def test_the_map_is_large_enough() -> None:
    """A change of notation must not make the test above pass by finding nothing."""
    assert len(spans()) > 120
    assert sum("::" in span for span in spans()) > 80


@pytest.mark.parametrize(
    "heading", ["### ... this step of the flow?", "### ... this equation of the paper?", "### ... this method?"]
)
def test_every_row_names_a_file_and_a_test(heading: str) -> None:
    rows = table_rows(heading)
    assert len(rows) >= 14
    for row in rows:
        assert ".py" in row[1], f"no file in the row {row[0]!r}"
        assert "`tests/" in row[-1], f"no test in the row {row[0]!r}"


def layers() -> list[str]:
    """The rooms of the import contract, from the first to the last."""
    contract = (REPOSITORY / "pyproject.toml").read_text(encoding="utf-8").split('containers = ["neuroseqret"]')[1]
    return re.findall(r'"(\w+)"', contract.split("layers = [")[1].split("]")[0])[::-1]


def test_the_rooms_are_those_of_the_import_contract_in_the_same_order() -> None:
    rooms = [row[0].strip("`") for row in table_rows("## How the code is laid out")]
    assert rooms == layers(), "CONTRIBUTING.md, 'How the code is laid out': list the rooms as pyproject.toml does"
    folders = {path.name for path in PACKAGE.iterdir() if path.is_dir() and (path / "__init__.py").exists()}
    assert folders <= set(rooms), f"CONTRIBUTING.md does not describe {folders - set(rooms)}"


def commands() -> dict[str, set[str]]:
    """The options of every command, by its words."""
    found = {}
    for name, command in get_command(app).commands.items():  # type: ignore[attr-defined]
        for below, one in (getattr(command, "commands", None) or {"": command}).items():
            options = {option for parameter in one.params for option in parameter.opts}
            found[f"neuroseqret {name} {below}".strip()] = options
    return found


def test_every_command_is_in_the_map() -> None:
    named = {row[0].strip("`") for row in table_rows("### ... this command?")}
    assert {one for one in named if one.startswith("neuroseqret")} == set(commands())


def test_every_option_of_the_map_exists() -> None:
    rows = table_rows("### ... this option?")
    assert len(rows) >= 10
    for option, command, _ in rows:
        assert option.strip("`") in commands()[command.strip("`")], f"{command} has no {option}"


@pytest.mark.parametrize(
    ("heading", "names"), [("### ... this format?", FORMATS), ("### ... this method?", [*MODELS, *BASELINES])]
)
def test_every_format_and_method_is_in_the_map(heading: str, names: list[str]) -> None:
    named = {name for row in table_rows(heading) for name in re.findall(r"`([\w-]+)`", row[0])}
    assert set(names) <= named, f"CONTRIBUTING.md lacks {set(names) - named}"
