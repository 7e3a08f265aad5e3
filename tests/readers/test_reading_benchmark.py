"""The reading benchmark runs at a small size, and breaks where a bound is broken."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import benchmark_scripts

SCRIPT = benchmark_scripts.BENCHMARKS / "reading.py"
pytestmark = pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="memory is measured on Linux only")


@pytest.fixture(scope="module")
def benchmark() -> ModuleType:
    return benchmark_scripts.load("reading")


def test_it_prints_the_three_ratios() -> None:
    """Whether bounds hold at this size is not asked: fixed costs outweigh all else."""
    arguments = ["--sequences", "2000", "--events", "5", "--rounds", "1"]
    run = subprocess.run([sys.executable, str(SCRIPT), *arguments], capture_output=True, text=True, check=False)
    assert run.returncode in (0, 1), run.stderr
    ratios = re.findall(r"^(read, time|read, peak memory|all padded batches).* +(\d+\.\d\d)x", run.stdout, re.MULTILINE)
    assert len(ratios) == 3
    assert all(float(ratio) > 0 for _, ratio in ratios)
    assert (run.returncode == 1) == ("BROKEN" in run.stdout)


def test_reading_needs_little_more_memory_than_the_arrays(benchmark: ModuleType, tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    benchmark.make_file(path, 200_000, 40)
    # What threads cost beside depends on who runs when, and only adds: the lowest of three is the reader's own.
    run = min((benchmark.in_new_process("neuroseqret", str(path)) for _ in range(3)), key=lambda one: one["peak"])
    # Fixed costs (code, threads, decoders) are some 100 MB; a second copy of the arrays would come on top.
    assert run["peak"] < 1.3 * run["arrays"] + 100e6
    assert run["arrays"] > 96e6


def test_a_broken_bound_is_said(benchmark: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    assert benchmark.report("x", 1.2, 1.5, "y")
    assert not benchmark.report("x", 1.6, 1.5, "y")
    assert capsys.readouterr().out.splitlines()[1].endswith("BROKEN")
