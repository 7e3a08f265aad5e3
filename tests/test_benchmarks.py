"""Every benchmark script can be imported and tells how it is called; what they measure is tested in the rooms."""

from __future__ import annotations

import runpy
import sys

import pytest

from conftest import REPOSITORY

SCRIPTS = sorted(path.name for path in (REPOSITORY / "benchmarks").glob("*.py") if "argparse" in path.read_text())


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_benchmark_tells_how_it_is_called(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Run here, as a process of its own spends its time on importing torch."""
    monkeypatch.setattr(sys, "argv", [name, "--help"])
    monkeypatch.setattr(sys, "path", [str(REPOSITORY / "benchmarks"), *sys.path])
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(REPOSITORY / "benchmarks" / name), run_name="__main__")
    assert ended.value.code == 0
    assert "usage:" in capsys.readouterr().out
