"""The notebooks of docs/notebooks run from top to bottom, and are stored with what they show."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

from conftest import REPOSITORY

FOLDER = REPOSITORY / "docs" / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
# Training is cut short: the test is about the programs, not about the model.
SHORT = "max_seconds=1"


def test_there_are_three():
    assert [path.stem for path in NOTEBOOKS] == ["first-search", "judge-and-explain", "your-data-frame"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_it_is_stored_with_its_outputs_and_without_errors(path: Path) -> None:
    book = nbformat.read(path, as_version=4)
    nbformat.validate(book)
    code = [cell for cell in book.cells if cell.cell_type == "code"]
    shown = [output for cell in code for output in cell.outputs]
    assert not [output for output in shown if output.output_type in ("error", "stream") and "name" not in output]
    assert not [output for output in shown if output.get("name") == "stderr"]
    assert any("image/png" in output.get("data", {}) or "text/html" in output.get("data", {}) for output in shown)
    assert all(cell.execution_count for cell in code)
    assert str(Path.home()) not in path.read_text(encoding="utf-8")


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_it_runs(path: Path, tmp_path: Path) -> None:
    book = nbformat.read(path, as_version=4)
    for cell in book.cells:
        if cell.cell_type == "code":
            for seconds in ("max_seconds=15", "max_seconds=10"):
                cell.source = cell.source.replace(seconds, SHORT)
            cell.source = cell.source.replace("repertoires.load(60)", "repertoires.load(12)")
    NotebookClient(book, timeout=300, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}}).execute()
