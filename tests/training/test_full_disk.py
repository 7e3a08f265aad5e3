"""Training on a full disk ends in one line, and nothing half-written stays behind."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from golden.golden_data import golden_data
from neuroseqret.readers.data_folder import write_folder

# The system refuses to write more than some bytes to a file, as it does when a disk is full.
COMMAND = (
    "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000));"
    "from neuroseqret.cli.main import run; run()"
)


@pytest.mark.parametrize("method", ["gru", "histogram"])  # the first writes a checkpoint, the second only a model
def test_fit_says_in_one_line_that_nothing_can_be_written(method: str, tmp_path: Path) -> None:
    queries, corpus = golden_data()
    write_folder(tmp_path / "data", corpus, queries)
    words = ["fit", str(tmp_path / "data"), "--model", method, "--out", str(tmp_path / "model"), "--max-seconds", "1"]
    done = subprocess.run(
        [sys.executable, "-c", COMMAND, *words], capture_output=True, text=True, env={**os.environ}, timeout=120
    )
    assert done.returncode == 2, done.stderr
    assert "Traceback" not in done.stderr
    assert done.stderr.splitlines()[-1].startswith("neuroseqret: ")
    assert "cannot be written (File too large)" in done.stderr
    assert not (tmp_path / "model").exists()
    assert not [path for path in tmp_path.rglob("*") if path.suffix in (".safetensors", ".nsr-new")]
