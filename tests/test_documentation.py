"""README and docs: links lead somewhere, and the README's program runs, twice."""

from __future__ import annotations

import re
from functools import partial

import pytest

import neuroseqret as nsr
from conftest import REPOSITORY
from simulated import simulate

PAGES = [REPOSITORY / "README.md", REPOSITORY / "CONTRIBUTING.md", *sorted((REPOSITORY / "docs").glob("*.md"))]
QUICK = {"warm_up": {"steps": 2}, "joint": {"steps": 2}, "head": {"steps": 2, "evaluations": 1}}


def headings(text):
    """The anchors of a page, as GitHub names them."""
    titles = re.findall(r"^#+ (.+)$", re.sub(r"```.*?```", "", text, flags=re.DOTALL), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        if link.startswith("http"):
            continue
        file, _, anchor = link.partition("#")
        target = page.parent / file if file else page
        assert target.exists(), link
        assert not anchor or anchor in headings(target.read_text(encoding="utf-8")), link


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_page_is_linked_and_links_to_others(page):
    """Nobody has to know the folder: each page can be come to, and be left."""
    if page.name in ("formats.md", "results.md"):
        return
    assert re.findall(r"\]\((?:docs/)?[\w-]+\.md(?:#[\w-]+)?\)", page.read_text(encoding="utf-8"))
    others = "".join(other.read_text(encoding="utf-8") for other in PAGES if other != page)
    assert page.name in others or page.name == "README.md"


def test_the_readme_program_runs_twice(tmp_path, monkeypatch):
    queries, corpus = simulate(seed=0)
    nsr.write_folder(tmp_path / "data", corpus, queries)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(nsr, "SelfAttention", partial(nsr.SelfAttention, **QUICK), raising=False)
    (program,) = re.findall(r"```python\n(.*?)```", PAGES[0].read_text(encoding="utf-8"), re.DOTALL)
    for _ in range(2):
        names = {}
        exec(compile(program, "README.md", "exec"), names)
        assert len(names["hits"]) == 10
        assert len(names["why"].of_query_events) == len(names["folder"].queries[0])
