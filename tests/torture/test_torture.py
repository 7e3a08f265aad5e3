"""Kills, power cuts, failing calls, a clock that goes back, a folder that goes away: some rounds of each.

`make torture` is the long form.
"""

from __future__ import annotations

import shutil
import sys

import pytest

from torture.rounds import CELLS, torture


@pytest.fixture(scope="module")
def tortured():
    if shutil.which("gcc") is None or not sys.platform.startswith("linux"):
        pytest.skip("a C compiler and Linux are needed")
    with torture() as made:
        yield made


@pytest.mark.parametrize(("kind", "change"), CELLS)
def test_what_was_acknowledged_is_there(tortured, kind, change):
    if change == "all":
        assert tortured.round(kind, change, 0) == "done"
        return
    if change in ("server", "crowd"):
        assert tortured.round(kind, change, 12) == "killed"
        return
    calls = tortured.after(change).calls
    assert calls >= 3
    if kind == "moment":
        assert tortured.round(kind, change, 0) in ("killed", "done")
        return
    first = {"kill": 0, "cut": calls + 1, "fail": 0}[kind]  # cuts: the lap that leaves names of empty files
    outcomes = {tortured.round(kind, change, first + at) for at in (calls // 2, calls - 1, calls)}
    assert "done" in outcomes  # the last round comes to harm after the change, so it was acknowledged
    assert outcomes > {"done"} or kind == "fail"
