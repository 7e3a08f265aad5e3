"""The guides, the quick start and the FAQ: every program and command on them runs, page by page, in order."""

from __future__ import annotations

import re
import shlex
import shutil
from functools import partial
from pathlib import Path
from typing import Any

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
QUICK: dict[str, Any] = {"warm_up": {"steps": 2}, "joint": {"steps": 2}, "head": {"steps": 2, "evaluations": 1}}


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


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_what_the_page_shows_runs(page: Path, shop: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = shutil.copytree(shop, tmp_path / "shop")
    monkeypatch.chdir(folder)
    monkeypatch.setenv("NEUROSEQRET_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(nsr, "SelfAttention", partial(nsr.SelfAttention, **QUICK), raising=False)
    names: dict[str, Any] = {}
    ran = 0
    for language, text in blocks(page):
        if language == "python":
            exec(compile(re.sub(r"max_seconds=\d+", "max_seconds=1", text), str(page), "exec"), names)
        else:
            for line in text.splitlines():
                invoke(line.removeprefix("$ "))
        ran += 1
    assert ran, f"{page.name} shows nothing to run"
