"""Progress: one meaning per number, one line per phase in a pipe, a bar in a notebook."""

from __future__ import annotations

import fcntl
import io
import math
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from types import SimpleNamespace
from typing import Any

import pytest

from neuroseqret.training import bars, progress
from neuroseqret.training.progress import Following, ProgressDisplay, track, what_is_trained

DONE = "training the metric: done, 100 of 400 steps in 5.0 s, loss 0.500, best validation 0.2500"
PHASE = """
from neuroseqret.training.progress import ProgressDisplay
with ProgressDisplay("head", 400, 10.0) as display:
    for step in range(1, 101):
        display.show(step, 0.5, 0.25, 0.05 * step)
        import time; time.sleep(0.005)
"""


def shown(max_seconds: float | None = 10.0) -> ProgressDisplay:
    with ProgressDisplay("head", 400, max_seconds) as display:
        display.show(100, 0.5, 0.25, 5.0)
    return display


def test_the_share_is_of_the_steps_or_of_the_budget() -> None:
    assert shown().share(100, 5.0) == 0.5  # half of the budget, a quarter of the steps
    assert shown(None).share(100, 5.0) == 0.25
    assert shown(100.0).share(100, 5.0) == 0.25


def test_redirected_output_has_one_line_per_phase(capsys: pytest.CaptureFixture[str]) -> None:
    shown()
    assert (
        capsys.readouterr().err
        == "training the metric: done, 100 of 400 steps in 5.0 s, loss 0.500, best validation 0.2500\n"
    )
    shown(5.0)
    assert "training the metric: ended by the time limit, 100 of 400 steps in 5.0 s" in capsys.readouterr().err
    display = ProgressDisplay("head", 400, None)
    display.__enter__()
    display.resume(40)
    display.show(41, 0.5, None, 1.0)
    display.__exit__(KeyboardInterrupt)
    assert (
        capsys.readouterr().err == "training the metric: stopped, 41 of 400 steps (from step 40) in 1.0 s, loss 0.500\n"
    )
    assert list(track([1, 2], "embedding", 2)) == [1, 2]
    assert capsys.readouterr().err == ""


def test_hardly_any_steps_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    with ProgressDisplay("head", 400, 5.0) as display:
        display.show(4, 6.5, None, 5.0)
    assert capsys.readouterr().err.endswith("4 of 400 steps in 5.0 s, loss 6.500, too few steps to learn much\n")


def test_a_log_gets_a_line_now_and_then(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bars, "_SILENT", 0.0)
    shown()
    assert capsys.readouterr().err.startswith(
        "training the metric: 50%, step 100, loss 0.500, best validation 0.2500, about 5 s left\n"
    )


def test_a_log_is_told_once_how_long_the_rest_takes(capsys: pytest.CaptureFixture[str]) -> None:
    with ProgressDisplay("selection", 300, None, Following(steps=2000)) as display:
        display.show(1, 0.5, None, 1.5)  # the first steps are slow, so nothing is said yet
        for step in range(30, 60):
            display.show(step, 0.5, None, 0.1 * step)
    told, done = capsys.readouterr().err.splitlines()
    assert told == "training the weights of members: about 4 minutes left"
    assert done.startswith("training the weights of members: done")
    bounded = ProgressDisplay("selection", 300, 12.0, Following(steps=2000, seconds=40.0))
    bounded.show(20, 0.5, None, 2.0)
    assert bounded.left() == pytest.approx(10.0 + 40.0)
    endless = ProgressDisplay("joint", math.inf, None)
    endless.show(20, 0.5, None, 2.0)
    assert endless.left() is None


def test_it_can_be_turned_off(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEUROSEQRET_PROGRESS", "off")
    shown()
    assert capsys.readouterr().err == ""


def on_a_terminal(columns: int, program: str = PHASE) -> str:
    """Run a program with a terminal of so many columns, and return what it shows, without control codes."""
    mother, child = pty.openpty()
    fcntl.ioctl(child, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    environment = {k: v for k, v in os.environ.items() if k not in ("COLUMNS", "LINES")} | {"TERM": "xterm"}
    process = subprocess.Popen(
        [sys.executable, "-c", program], stdin=child, stdout=child, stderr=child, env=environment
    )
    os.close(child)
    text = b""
    while True:
        try:
            if not (block := os.read(mother, 65536)):
                break
        except OSError:  # the other end is closed
            break
        text += block
    assert process.wait() == 0
    os.close(mother)
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text.decode())


def test_a_terminal_shows_one_share_one_step_and_one_time_left() -> None:
    lines = on_a_terminal(120)
    assert re.search(
        r"training the metric \S+ +\d+% step \d+, loss 0.500, best validation 0.2500, about \d+ s left", lines
    ), lines
    assert "/400" not in lines  # with a budget the number of steps is not known beforehand


@pytest.mark.parametrize(
    ("columns", "phase", "shown"),
    [
        (80, "head", r"training the metric \S+ +\d+% step \d+, loss 0\.500, about \d+ s left"),
        (80, "selection_0", r"training the weights of members \(division 1\) \S+ +\d+% step \d+"),
        (40, "selection_0", r"training the weights … \S+ +\d+%"),
    ],
)
def test_a_narrow_terminal_shows_whole_figures_or_none(columns: int, phase: str, shown: str) -> None:
    shown_all = on_a_terminal(columns, PHASE.replace('"head"', repr(phase)))
    drawn = shown_all.split(f"training {what_is_trained(phase)}: ")[0]  # the rest is the summary
    bars_drawn = re.findall(r"training [^\r\n]*", drawn)
    assert re.search(shown, drawn), drawn
    for line in bars_drawn:
        assert re.search(r" \d+%( |$)", line), line
        assert len(line) <= columns
        assert columns < 80 or "…" not in line


def test_a_notebook_gets_a_bar_that_becomes_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    display = pytest.importorskip("IPython.display")
    kernel = type("ZMQInteractiveShell", (), {})()
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: kernel, display=display))
    monkeypatch.setattr(bars, "_PAUSE", 0.0)
    contents: list[str] = []

    class Handle:
        def update(self, content: Any) -> None:
            contents.append(content.data)

    def show(content: Any, display_id: bool) -> Handle:
        contents.append(content.data)
        return Handle()

    monkeypatch.setattr(display, "display", show)
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    shown()
    first, second, last = contents
    assert "<progress" in first
    assert "value='0.500'" in second
    assert (
        last == "<code>training the metric: done, 100 of 400 steps in 5.0 s, loss 0.500, best validation 0.2500</code>"
    )
    assert list(track("ab", "embedding", 2)) == ["a", "b"]
    assert contents[-1] == ""  # what took no time leaves no line
    monkeypatch.setattr(progress, "_SHORT", 0.0)
    assert list(track("ab", "embedding", 2)) == ["a", "b"]
    assert "embedding: 2 of 2" in contents[-1]
    assert sys.stderr.getvalue() == ""  # type: ignore[union-attr]
