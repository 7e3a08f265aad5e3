"""README and docs: links lead somewhere, pictures exist, and the README's programs and commands run."""

from __future__ import annotations

import json
import re
from functools import partial

import pytest
from mypy import api

import neuroseqret as nsr
from conftest import REPOSITORY
from neuroseqret.cli.demo_closing import write_events
from simulated import simulate

PAGES = [*sorted(REPOSITORY.glob("*.md"), reverse=True), *sorted((REPOSITORY / "docs").rglob("*.md"))]
README = REPOSITORY / "README.md"
QUICK = {name: {"steps": 2} for name in ("warm_up", "joint", "head", "selection")}


def headings(text):
    """The anchors of a page, as GitHub names them."""
    titles = re.findall(r"^#+ (.+)$", re.sub(r"```.*?```", "", text, flags=re.DOTALL), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


#: What `mypy --strict` asks of one file; written in the file, so that all others come from the cache of `make lint`.
STRICT = "disallow-any-generics, disallow-subclassing-any, disallow-untyped-calls, disallow-untyped-defs, "
STRICT += "disallow-incomplete-defs, check-untyped-defs, disallow-untyped-decorators, warn-return-any, "
STRICT += "strict-equality, extra-checks"


def test_the_readme_program_passes_mypy(tmp_path, monkeypatch):
    """The public interface is typed: a strict check of the README's program, as one file, finds nothing."""
    program = "\n".join(re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL))
    right, wrong = tmp_path / "right.py", tmp_path / "wrong.py"
    right.write_text(f"# mypy: {STRICT}\n{program}", encoding="utf-8")
    wrong.write_text(f"# mypy: {STRICT}\n{program}hits.no_such_thing()\nindex.search(k='ten')\n", encoding="utf-8")
    monkeypatch.chdir(REPOSITORY)
    said, _, _ = api.run([str(right), str(wrong)])
    assert "right.py" not in said
    assert 'has no attribute "no_such_thing"' in said
    assert "search" in said


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(REPOSITORY)))
def test_links_lead_somewhere(page):
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        if link.startswith("http"):
            continue
        file, _, anchor = link.partition("#")
        target = page.parent / file if file else page
        assert target.exists(), link
        assert not anchor or anchor in headings(target.read_text(encoding="utf-8")), link


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(REPOSITORY)))
def test_every_page_is_linked_and_links_to_others(page):
    """Every page can be reached from another one, and leads to another one."""
    if page.name not in ("formats.md", "results.md", "CHANGELOG.md", "CODE_OF_CONDUCT.md"):
        assert re.findall(r"\]\((?:[\w.-]+/)*[\w-]+\.md(?:#[\w-]+)?\)", page.read_text(encoding="utf-8"))
    others = "".join(other.read_text(encoding="utf-8") for other in PAGES if other != page)
    assert page.name in others or page.name == "README.md"


def test_the_readme_programs_run(tmp_path, monkeypatch, capsys):
    """The first trains and indexes, once; the second searches, as often as one likes."""
    queries, corpus = simulate(seed=0)
    nsr.write_folder(tmp_path / "neuroseqret-demo" / "data", corpus, queries)
    write_events(corpus, tmp_path / "neuroseqret-demo" / "events.csv")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(nsr, "SelfAttention", partial(nsr.SelfAttention, **QUICK), raising=False)
    train, search = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    names = {}
    for program in (train, search, search):
        exec(compile(program, "README.md", "exec"), names)
    assert len(names["hits"]) == 10
    assert (tmp_path / "why.png").read_bytes().startswith(b"\x89PNG")
    said = capsys.readouterr().out
    assert re.search(r"^self +\d", said, re.MULTILINE)  # the report
    assert len(re.findall(r"^ *\d+  [\d.]+  ", said, re.MULTILINE)) == 2 * 10
    assert len([line for line in (train + search).splitlines() if line]) <= 12  # ten lines and the imports


def code_blocks(page):
    """(language, text) of the code blocks of a page."""
    return re.findall(r"^```(\w*)\n(.*?)^```", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


def command_lines(page):
    """Every call of `neuroseqret` in a code block; lines that go on by a backslash or an indent are joined."""
    for language, text in code_blocks(page):
        if language in ("", "console", "bash", "sh", "text"):
            yield from re.findall(r"^(?:\$ )?neuroseqret (.+)$", re.sub(r"(?:\\\n|\n {8,}) *", " ", text), re.MULTILINE)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(REPOSITORY)))
def test_commands_and_options_exist(page):
    from typer.main import get_command

    from neuroseqret.cli.main import app

    for line in command_lines(page):
        command, words = get_command(app), line.split("#")[0].split()
        while words and words[0] in getattr(command, "commands", {}):
            command = command.commands[words.pop(0)]
        assert not getattr(command, "commands", {}) or not words or words[0].startswith("-"), f"no such command: {line}"
        known = {one for parameter in command.params for one in (*parameter.opts, *parameter.secondary_opts)}
        written = {word.strip("[]|,'\"").partition("=")[0] for word in words}
        assert {word for word in written if re.match(r"--?[a-z]", word)} <= known | {"-h", "--help"}, line


def test_the_readme_shows_commands():
    assert len(list(command_lines(README))) >= 4


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(REPOSITORY)))
def test_programs_and_answers_can_be_parsed(page):
    for language, text in code_blocks(page):
        if language == "python":
            compile(text, str(page), "exec")
        elif language == "json":
            json.loads(text)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(REPOSITORY)))
def test_pictures_are_there_and_have_a_text_for_those_who_do_not_see_them(page):
    for text, file in re.findall(r"!\[([^]]*)\]\(([^)\s]+)\)", page.read_text(encoding="utf-8")):
        assert len(text) > 20, file
        assert (page.parent / file).exists(), file
