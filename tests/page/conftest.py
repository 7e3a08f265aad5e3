"""A tiny index with hostile names behind a real server process, and a real Chromium."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import neuroseqret as nsr
from neuroseqret.data.sequences import EventSequences
from neuroseqret.methods.registry import make
from neuroseqret.models.self_attention.model import SelfAttention

#: Names that a page must show as text. A script that ran would set `window.broken`.
EVIL = "<img src=x onerror=window.broken=1>"
MARKS = ("view", "buy & pay", EVIL, "'\"><script>window.broken=1</script>")
LONG = "long one"
FLAGS = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync", "--autoplay-policy=no-user-gesture-required"),
)


def corpus() -> EventSequences:
    """40 sequences of four groups, the first with a hostile id and title, and one with 10,000 events."""
    random = np.random.default_rng(0)
    lists, ids, groups, titles, pitches = [], [], [], [], []
    for row in range(40):
        kind = row % 4
        marks = random.choice(4, 24, p=np.roll([0.55, 0.25, 0.15, 0.05], kind))
        lists.append((np.cumsum(random.exponential(0.5 + kind, 24)) + 100 * row, marks))
        ids.append(f"{EVIL}/{row}" if row == 0 else f"s{row}")
        groups.append(EVIL if kind == 0 else f"group {kind}")
        titles.append(f"<script>window.broken=1</script> {row}" if row == 0 else f"Title {row}")
        pitches.append((60 + np.cumsum(marks - 1)).tolist())
    lists.append((np.cumsum(random.exponential(1.0, 10_000)), random.choice(4, 10_000)))
    return EventSequences.from_lists(
        lists,
        ids=[*ids, LONG],
        groups=[*groups, "group 1"],
        metadata={"title": [*titles, LONG], "pitch": [*pitches, [60] * 10_000]},
        mark_names=MARKS,
        time_unit="seconds",
    )


@contextmanager
def serve(index: Path, log: Path, *options: str) -> Iterator[str]:
    """Run `neuroseqret serve` on a free port; give its address."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "neuroseqret", "serve", str(index), "--port", str(port), *options]
    with log.open("wb") as said:
        process = subprocess.Popen(command, stdout=said, stderr=said, env=dict(os.environ))
    try:
        address = f"http://127.0.0.1:{port}"
        for _ in range(2400):
            assert process.poll() is None, log.read_text()
            try:
                with urllib.request.urlopen(f"{address}/health/ready", timeout=5):
                    break
            except OSError:
                time.sleep(0.1)
        else:
            pytest.fail(f"the server did not start:\n{log.read_text()}")
        yield address
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Chromium of the system; Playwright's own cannot be downloaded everywhere.

    It ends with its file: Playwright keeps an event loop running, beside which other tests cannot run theirs.
    """
    sync_api = pytest.importorskip("playwright.sync_api", reason="pip install playwright to test the page")
    path = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if path is None:
        pytest.skip("no chromium found; install one to test the page (Debian: apt-get install chromium)")
    with sync_api.sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=path, args=list(FLAGS))
        yield opened
        opened.close()


@pytest.fixture(scope="session")
def model() -> SelfAttention:
    given = corpus()
    given = given[np.arange(40)]
    short: dict[str, Any] = {"warm_up": {"steps": 2}, "joint": {"steps": 3}, "head": {"steps": 20}, "selection": None}
    return SelfAttention(**short).fit(given, given, seed=1)


@pytest.fixture(scope="module")
def site(browser, model, tmp_path_factory) -> Iterator[str]:
    """The address of a server over whole sequences, with a second model to rerank with."""
    folder = tmp_path_factory.mktemp("page")
    nsr.Index.create(model, folder / "index", corpus())
    given = corpus()[np.arange(40)]
    make("histogram", "default").fit(given, given).save(folder / "second")
    with serve(folder / "index", folder / "log", "--rerank", str(folder / "second")) as address:
        yield address


@pytest.fixture(scope="module")
def window_site(browser, model, tmp_path_factory) -> Iterator[str]:
    """The address of a server over windows of eight events."""
    folder = tmp_path_factory.mktemp("windows")
    nsr.Index.create(model, folder / "index", corpus()[np.arange(40)], window_events=8)
    with serve(folder / "index", folder / "log") as address:
        yield address


class Tab:
    """A page of the browser that collects what must not happen: errors and requests to elsewhere."""

    def __init__(self, browser: Any, address: str, width: int = 1280, height: int = 900, **context: Any) -> None:
        self.address = address
        self.page = browser.new_page(viewport={"width": width, "height": height}, **context)
        self.page.set_default_timeout(40_000)
        self.flaws: list[str] = []
        self.asked: list[tuple[str, str, Any]] = []
        self.page.on("pageerror", lambda error: self.flaws.append(f"error: {error}"))
        self.page.on("console", lambda said: said.type == "error" and self.flaws.append(f"console: {said.text}"))
        self.page.on("dialog", lambda dialog: self.flaws.append(f"dialog: {dialog.message}"))
        self.page.on("request", self._request)

    def _request(self, request: Any) -> None:
        if not request.url.startswith((self.address, "data:", "blob:")):
            self.flaws.append(f"request to {request.url}")
        body = request.post_data
        self.asked.append((request.method, request.url.removeprefix(self.address), json.loads(body) if body else None))

    def open(self, fragment: str = "") -> Any:
        self.page.goto("about:blank")  # else only the fragment changes and nothing is loaded again
        self.page.goto(f"{self.address}/{fragment}")
        self.page.locator("h1").first.wait_for(state="attached")
        return self.page

    def bodies(self, path: str) -> list[Any]:
        """What was sent to this path, in order."""
        return [body for method, asked, body in self.asked if asked == path and method == "POST"]

    def check(self) -> None:
        """Raise if anything broke, loaded from elsewhere, or ran as a script."""
        assert self.flaws == []
        assert self.page.evaluate("window.broken") is None


@pytest.fixture
def tab(browser, site) -> Iterator[Tab]:
    opened = Tab(browser, site)
    yield opened
    opened.page.close()


def call(address: str, path: str, body: Any = None) -> Any:
    """Ask the server directly."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(address + path, data, {"content-type": "application/json"})
    with urllib.request.urlopen(request, timeout=60) as reply:
        return json.load(reply)
