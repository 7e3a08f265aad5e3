"""The mathematics page: every module whose docstrings have equations, room by room, in the order of the flow."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "neuroseqret"


def rooms() -> list[str]:
    """The rooms of the package in the order of the table in CONTRIBUTING.md."""
    table = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").split("## How the code is laid out")[1]
    return re.findall(r"^\| `(\w+)` \|", table.split("\n#")[0], re.MULTILINE)


def reference() -> str:
    """Return the page's Markdown: one entry per module, with the members that have an equation."""
    parts = []
    for room in rooms():
        for file in sorted((PACKAGE / room).rglob("*.py")):
            entry = _entry(file)
            if entry:
                parts.append(entry)
    return "\n\n".join(parts)


def _entry(file: Path) -> str | None:
    tree = ast.parse(file.read_text(encoding="utf-8"))
    members = [
        node.name
        for node in tree.body
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and not node.name.startswith("_") and _has_maths(node)
    ]
    if not members and "math:" not in (ast.get_docstring(tree) or ""):
        return None
    name = ".".join(file.relative_to(PACKAGE.parent).with_suffix("").parts)
    shown = "".join(f"\n        - {member}" for member in members) or " false"
    return f"::: {name}\n    options:\n      show_root_full_path: true\n      members:{shown}"


def _has_maths(node: ast.AST) -> bool:
    documented = (ast.FunctionDef, ast.ClassDef)
    return any("math:" in (ast.get_docstring(one) or "") for one in ast.walk(node) if isinstance(one, documented))
