"""How long commands take to start, in CPU time, and which large libraries they import.

The bounds are three times what is wanted of an idle machine (0.3 s for help, 1.5 s for the others), because the tests
share theirs. The imports are exact: one more library is what makes a command slow.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from neuroseqret.index import Index
from neuroseqret.models.self_attention.model import SelfAttention
from neuroseqret.readers import write
from simulated import simulate_retrieval

LARGE = ("torch", "numba", "lancedb", "lance", "pyarrow", "numpy", "pandas", "polars", "matplotlib")
MEASURED = """
import json, sys, time
from neuroseqret.cli.main import run
try:
    run()
except SystemExit as stop:
    code = stop.code or 0
large = [name for name in {large} if name in sys.modules]
print(json.dumps([code, time.process_time(), large]), file=sys.stderr)
"""


def started(*arguments: str | Path) -> tuple[float, set[str]]:
    """Run a command in a process of its own; return its CPU seconds and the large libraries it imported."""
    command = [sys.executable, "-c", MEASURED.format(large=LARGE), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    code, seconds, large = json.loads(done.stderr.splitlines()[-1])
    assert code == 0, done.stderr
    return seconds, set(large)


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("start-up")
    corpus, queries = simulate_retrieval(groups=3, per_group=6, seed=2)
    write(queries[:1], folder / "query.parquet")
    made = Index.create(SelfAttention().fit(queries, corpus, max_seconds=1), folder / "index", corpus)
    made.search(queries[0])  # compiles what is not compiled yet, once per machine
    return folder / "index"


@pytest.mark.parametrize("words", [[], ["fit"], ["index", "create"], ["search"], ["data", "prepare"]])
def test_help_answers_at_once(words: list[str]) -> None:
    seconds, large = started(*words, "--help")
    assert seconds < 3 * 0.3
    assert large == set()


def test_info_needs_no_torch(index: Path) -> None:
    seconds, large = started("index", "info", index)
    assert seconds < 3 * 1.5
    assert not {"torch", "matplotlib", "polars"} & large


def test_a_search_needs_no_torch_no_drawing_and_no_frames(index: Path) -> None:
    seconds, large = started("search", index, index.parent / "query.parquet")
    assert seconds < 3 * 1.5
    assert not {"torch", "matplotlib", "polars"} & large


def test_a_search_takes_less_time_than_two_imports_of_torch(index: Path) -> None:
    """On the machine where 1.5 s is wanted, `import torch` takes 0.8 s; the better of three runs of each."""
    program = "import torch, time; print(time.process_time())"
    bare = min(float(subprocess.check_output([sys.executable, "-c", program])) for _ in range(3))
    seconds = min(started("search", index, index.parent / "query.parquet")[0] for _ in range(3))
    assert seconds < 1.5 / 0.8 * bare
