"""The committed results: every number of the document comes from a cell, and every cell is of today's versions."""

from __future__ import annotations

import pytest

from conftest import REPOSITORY
from experiments import results_document
from experiments.measured import Measured
from experiments.result_cells import ResultCells
from experiments.versions import versions_of

CELLS = REPOSITORY / "results" / "cells"


@pytest.fixture(scope="module")
def cells():
    if not CELLS.exists():
        pytest.skip("no committed results")
    return ResultCells(CELLS)


def test_the_document_is_what_the_cells_say(cells):
    document = REPOSITORY / "docs" / "results.md"
    if not document.exists():
        pytest.skip("no committed document")
    made = results_document.text(Measured(cells))
    assert document.read_text(encoding="utf-8") == made, "run `python -m experiments all --no-measure`"
    for name in ("hashing", "qualitative", "queries", "unwarping"):
        if f"](figures/{name}.png)" in made:
            assert (document.parent / "figures" / f"{name}.png").exists()


def test_every_cell_is_of_todays_versions(cells):
    stale = {name.rsplit("/", 1)[0] for name, config, _ in cells.all() if config.get("versions") != versions_of(config)}
    assert not sorted(stale), "measure them again: `python -m experiments all --data DATA`"
