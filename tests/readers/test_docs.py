"""The page on formats names every format, suffix and conventional column, and its examples run."""

from __future__ import annotations

import re
from pathlib import Path

from neuroseqret.data.sequences import EventSequences
from neuroseqret.readers import FORMATS
from neuroseqret.readers.engines.long_table import CONVENTIONS

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "formats.md").read_text(encoding="utf-8")


def test_nothing_is_missing() -> None:
    names = [*FORMATS, *(name for known in CONVENTIONS.values() for name in known)]
    suffixes = [suffix for each in FORMATS.values() for suffix in each.suffixes if suffix != ".pickle"]
    assert [word for word in names + suffixes if f"`{word}`" not in PAGE] == []


def test_streaming_is_told_right() -> None:
    rows = {
        line.split("|")[1].strip(" `"): line.split("|")[4].strip()
        for line in PAGE.splitlines()
        if line.startswith("| `") and line.count("|") == 6
    }
    for name, each in FORMATS.items():
        assert (rows[name] != "no") == (each.scan is not None), name


def test_python_objects_are_read_as_shown() -> None:
    section = PAGE.split("## From Python objects")[1].split("\n## ")[0]
    (program,) = re.findall(r"```python\n(.*?)```", section, re.DOTALL)
    names: dict[str, object] = {}
    exec(compile(program, "docs/formats.md", "exec"), names)
    assert names["sequences"] == EventSequences.from_lists(
        [([1709284447.0, 1709284530.0], [1, 0]), ([1709402400.0], [1])],
        ids=["ann", "bob"],
        mark_names=["buy", "view"],
        time_unit="seconds",
    )
