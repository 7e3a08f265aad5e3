"""Which code made a result: a hash of the modules behind it, and of nothing else.

A result depends on the module of its method and on whatever that imports from this package, directly or not. Modules
are hashed as Python reads them, without comments, docstrings and layout: a better explanation does not make a result
old, a changed number does. Modules that check, keep or show and compute nothing (`SILENT`) are left out.
"""

from __future__ import annotations

import ast
import hashlib
from functools import cache
from pathlib import Path

import numpy as np
import torch

import neuroseqret

#: What turns any method's scores into results.
EVALUATION = ("neuroseqret.evaluation.protocol", "neuroseqret.evaluation.scoring")
#: What no figure depends on: errors and checks, files, logs and progress.
SILENT = frozenset(
    f"neuroseqret.{name}"
    for name in (
        "errors",
        "validation",
        "readers.files",
        "models.folder",
        "training.checkpoint",
        "training.log",
        "training.progress",
    )
)


def code_version(*modules: str) -> str:
    """A hash of the modules, of `EVALUATION`, of all that these import, and of torch's and numpy's versions."""
    root = Path(neuroseqret.__file__).parent
    digest = hashlib.blake2b(digest_size=8)
    digest.update(repr((torch.__version__.split("+")[0], np.__version__)).encode())
    own = {name for name in (*modules, *EVALUATION) if _module(name, root) == name}  # a method of others has none
    for name in sorted(_reached(own, root)):
        text, _ = _parsed(_file(name, root))
        digest.update(f"{name}\0{text}\0".encode())
    return digest.hexdigest()


def _reached(modules: set[str], root: Path) -> set[str]:
    found: set[str] = set()
    while modules:
        found |= modules
        modules = {name for module in modules for name in _imports(module, root)} - found
    return found


def _imports(module: str, root: Path) -> set[str]:
    """The modules of this package that a module imports, wherever in it it does so."""
    _, names = _parsed(_file(module, root))
    return {known for name in names if (known := _module(name, root)) is not None}


def _module(name: str, root: Path) -> str | None:
    """The module that a dotted name is or lies in, also where a room's package gathers it; None for a silent one."""
    above, _, last = name.rpartition(".")
    for candidate in (name, above):
        if candidate.startswith(f"{root.name}.") and _file(candidate, root).exists():
            return None if candidate in SILENT else candidate
    gathered = _file(f"{above}.__init__", root)
    if above.startswith(f"{root.name}.") and gathered.exists():
        for found in sorted(_parsed(gathered)[1]):
            if found != name and found.rpartition(".")[2] == last:
                return _module(found, root)
    return None


def _file(module: str, root: Path) -> Path:
    return root.joinpath(*module.split(".")[1:]).with_suffix(".py")


@cache
def _parsed(file: Path) -> tuple[str, frozenset[str]]:
    """A module's text without docstrings and comments, and the dotted names that it imports."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node) is not None:
            node.body = node.body[1:] or [ast.Pass()]
    return ast.unparse(tree), frozenset(names)
