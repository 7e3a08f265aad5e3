"""The examples in docstrings. Here and not by `--doctest-modules`, which takes seconds to look through every module."""

from __future__ import annotations

import doctest
import importlib

import pytest

import work_units
from conftest import REPOSITORY

SOURCE = REPOSITORY / "src"
MODULES = [
    ".".join(file.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__")
    for file in sorted(SOURCE.rglob("*.py"))
    if ">>>" in file.read_text(encoding="utf-8")
]


@pytest.mark.parametrize("name", [*MODULES, work_units.__name__])
def test_the_examples_give_what_they_show(name: str) -> None:
    failed, attempted = doctest.testmod(importlib.import_module(name))
    assert (failed, attempted > 0) == (0, True)


def test_there_are_examples() -> None:
    assert len(MODULES) > 5
