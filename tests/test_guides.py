"""The guides, the quick start and the FAQ: every program and command on them runs, page by page, in order."""

from __future__ import annotations

import re
import shlex
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest
from typer.testing import CliRunner

import neuroseqret as nsr
from conftest import REPOSITORY
from neuroseqret.cli.main import app

DOCS = REPOSITORY / "docs"
PAGES = [
    *sorted((DOCS / "guides").glob("*.md")),
    *(DOCS / f"{name}.md" for name in ("quickstart", "faq", "production")),
]
#: What these pages run but a test cannot wait for: real training. The tutorial's test trains.
QUICK: dict[str, Any] = {name: {"steps": 2} for name in ("warm_up", "joint", "head", "selection")}


def blocks(page: Path) -> list[tuple[str, str]]:
    """(language, text) of the programs and commands of a page."""
    return re.findall(r"^```(python|console)\n(.*?)^```", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


def invoke(command: str) -> str:
    program, *words = shlex.split(re.sub(r"--max-seconds \d+", "--max-seconds 1", command))
    assert program == "neuroseqret"
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, (command, done.exception, done.output)
    return done.output


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with what the pages take for granted: the tutorial's files, `data`, `model` and `index`."""
    folder = tmp_path_factory.mktemp("shop")
    program = re.findall(r"```python\n(.*?)```", (DOCS / "tutorial.md").read_text(encoding="utf-8"), re.DOTALL)[0]
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        exec(compile(program, "tutorial.md", "exec"), {})
        columns = "--column id=customer --column time=when --column mark=action --column group=segment"
        invoke(f"neuroseqret data prepare --from events.csv {columns} --out data")
        data = nsr.read_folder("data")
        assert data.queries is not None
        model = nsr.SelfAttention(**QUICK).fit(data.queries, data.corpus, data.relevance)
        model.save("model")
        nsr.Index.create(model, "index", data.corpus)
    return folder


@contextmanager
def serve(index: Path) -> Iterator[int]:
    """Run `neuroseqret serve` on a free port while a page's programs talk to it."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "neuroseqret", "serve", str(index), "--port", str(port)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 90
        while True:
            try:
                urlopen(f"http://127.0.0.1:{port}/health/ready", timeout=5).close()
                break
            except OSError:
                assert process.poll() is None, "the server ended"
                assert time.monotonic() < deadline, "the server did not get ready"
                time.sleep(0.2)
        yield port
    finally:
        process.terminate()
        process.wait(30)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_what_the_page_shows_runs(page: Path, shop: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = shutil.copytree(shop, tmp_path / "shop")
    monkeypatch.chdir(folder)
    monkeypatch.setenv("NEUROSEQRET_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(nsr, "SelfAttention", partial(nsr.SelfAttention, **QUICK), raising=False)
    shown = blocks(page)
    server = serve(folder / "index") if any("127.0.0.1:8765" in text for _, text in shown) else nullcontext(8765)
    with server as port:
        run(page, [(language, text.replace("8765", str(port))) for language, text in shown])


def run(page: Path, shown: list[tuple[str, str]]) -> None:
    names: dict[str, Any] = {}
    ran = 0
    for language, text in shown:
        if language == "python":
            exec(compile(re.sub(r"max_seconds=\d+", "max_seconds=1", text), str(page), "exec"), names)
        else:
            for line in text.splitlines():
                invoke(line.removeprefix("$ "))
        ran += 1
    assert ran, f"{page.name} shows nothing to run"
