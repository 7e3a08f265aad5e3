"""The committed results: every number of the document comes from a cell, every cell from today's code."""

from __future__ import annotations

from importlib.metadata import version

import pytest

from conftest import REPOSITORY
from experiments import cutting, examples, hash_curve, indexing, results_document
from experiments.cells import Cells
from experiments.measured import Measured
from neuroseqret.evaluation.code import code_version
from neuroseqret.methods.registry import method_class

CELLS = REPOSITORY / "results" / "cells"
#: Versions that are part of the code version of a cell.
MEASURED_WITH = {"torch": "2.13.0", "numpy": "2.4.6"}
#: The modules that look at a fitted method, by experiment.
LOOKS = {"hashing": hash_curve, "qualitative": examples, "unwarping": examples, "runtime": indexing}


@pytest.fixture(scope="module")
def cells():
    if not CELLS.exists():
        pytest.skip("no committed results")
    return Cells(CELLS)


def test_the_document_is_what_the_cells_say(cells):
    document = REPOSITORY / "docs" / "results.md"
    if not document.exists():
        pytest.skip("no committed document")
    made = results_document.text(Measured(cells))
    assert document.read_text(encoding="utf-8") == made, "run `python -m experiments all --no-measure`"
    for name in ("hashing", "qualitative", "queries", "unwarping"):
        if f"](figures/{name}.png)" in made:
            assert (document.parent / "figures" / f"{name}.png").exists()


def test_every_cell_is_of_todays_code(cells):
    """Or of code that was shown to give equal figures."""
    for library, measured_with in MEASURED_WITH.items():
        if version(library).split("+")[0] != measured_with:
            pytest.skip(f"the cells are of {library} {measured_with}")
    known: dict[tuple[str, ...], str] = {}
    old = set()
    for name, config, _ in cells.all():
        looks = [LOOKS[config["experiment"]]] if "experiment" in config else []
        looks += [cutting] if config.get("queries", "whole") != "whole" else []
        behind = (method_class(config["method"]).__module__, *(module.__name__ for module in looks))
        if behind not in known:
            known[behind] = code_version(*behind)
        if cells.get(name, {**config, "code": known[behind]}) is None:
            old.add(name.rsplit("/", 1)[0])
    assert not sorted(old), "measure them again, or show by benchmarks/equal_code.py that their figures stay"
