"""Every benchmark script can be imported and tells how it is called; what they measure is tested in the rooms."""

from __future__ import annotations

import subprocess
import sys

import pytest

from conftest import REPOSITORY

SCRIPTS = sorted(path.name for path in (REPOSITORY / "benchmarks").glob("*.py") if "argparse" in path.read_text())


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_benchmark_tells_how_it_is_called(name: str) -> None:
    done = subprocess.run(
        [sys.executable, str(REPOSITORY / "benchmarks" / name), "--help"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert "usage:" in done.stdout
