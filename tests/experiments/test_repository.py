"""The committed results: every number of the document comes from a cell."""

from __future__ import annotations

import pytest

from conftest import REPOSITORY
from neuroseqret.experiments import results_document
from neuroseqret.experiments.cells import Cells
from neuroseqret.experiments.measured import Measured


def test_the_document_is_what_the_cells_say():
    folder, document = REPOSITORY / "results" / "cells", REPOSITORY / "docs" / "results.md"
    if not folder.exists() or not document.exists():
        pytest.skip("no committed results")
    made = results_document.text(Measured(Cells(folder)))
    assert document.read_text(encoding="utf-8") == made, "run `neuroseqret experiment all --no-measure`"
    for name in ("hashing", "qualitative", "queries", "unwarping"):
        if f"](figures/{name}.png)" in made:
            assert (document.parent / "figures" / f"{name}.png").exists()
