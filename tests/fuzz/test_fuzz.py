"""The short form of the fuzzing: some inputs of every target. `make fuzz` is the long form."""

from __future__ import annotations

import json
import os
import random
import signal
import sys
from pathlib import Path

import pytest

from fuzz.__main__ import run_child
from fuzz.mutation import mutated
from fuzz.targets import Target, outcome, targets
from neuroseqret.errors import UserError

INPUTS = 60
SECONDS = 20  # of the processor, for one input
KNOWN = sorted(Path(__file__).with_name("known").glob("*.bin"))


@pytest.fixture(autouse=True)
def _limit():
    def late(*_: object) -> None:
        raise TimeoutError(f"one input took more than {SECONDS} seconds of processor time")

    before = signal.signal(signal.SIGPROF, late)
    yield
    _allow(0)
    signal.signal(signal.SIGPROF, before)


def _allow(seconds: float) -> None:
    signal.setitimer(signal.ITIMER_PROF, seconds)


@pytest.mark.parametrize("name", list(targets()))
def test_whatever_comes_in_the_outcome_is_data_or_the_librarys_error(name: str) -> None:
    target, rng = targets()[name], random.Random(20261118)
    assert outcome(target, target.seeds[0]) == "data"
    outcomes = set()
    for _ in range(INPUTS):
        _allow(SECONDS)
        outcomes.add(outcome(target, mutated(target.seeds, rng)))
    assert "refused" in outcomes  # the changes matter


@pytest.mark.parametrize("path", KNOWN, ids=lambda path: path.stem)
def test_what_was_found_once_stays_mended(path: Path) -> None:
    _allow(SECONDS)
    assert outcome(targets()[path.stem.rpartition("-")[0]], path.read_bytes()) in ("data", "refused")


def test_a_foreign_error_and_a_second_line_are_findings() -> None:
    def fails(data: bytes) -> None:
        raise KeyError(data)

    class Long(UserError):
        def __str__(self) -> str:
            return "two\nlines"

    def talks(data: bytes) -> None:
        raise Long

    for run in (fails, talks):
        with pytest.raises((KeyError, AssertionError)):
            outcome(Target(run, (b"",)), b"")


def test_the_long_form_counts_what_it_tried(tmp_path: Path) -> None:
    child = Path(__file__).with_name("child.py")
    said, hung = run_child([sys.executable, str(child), "filter-text", "0", "50", str(tmp_path)], dict(os.environ), 120)
    assert not hung, said
    counts = json.loads((tmp_path / "done.json").read_text())
    assert counts["inputs"] == 50
    assert counts["data"] + counts["refused"] == 50


@pytest.mark.parametrize(("does", "limits"), [("time.sleep(600)", (60, 2)), ("while True: pass", (1, 60))])
def test_a_process_that_hangs_is_ended_and_says_where(does: str, limits: tuple[int, int]) -> None:
    program = (
        f"import faulthandler, signal, time\nfaulthandler.register(signal.SIGUSR1)\ndef waits():\n    {does}\nwaits()\n"
    )
    said, hung = run_child([sys.executable, "-c", program], dict(os.environ), *limits)
    assert hung
    assert b"in waits" in said


def test_a_process_that_ends_does_not_hang() -> None:
    assert run_child([sys.executable, "-c", "raise SystemExit('over')"], dict(os.environ), 60) == (b"over\n", False)
