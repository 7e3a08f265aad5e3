"""The documentation site: it builds without a warning, needs no network, and leaves nothing out."""

from __future__ import annotations

import ast
import logging
import re
import sys
from pathlib import Path

import pytest

import neuroseqret
from conftest import REPOSITORY

sys.path.insert(0, str(REPOSITORY / "docs" / "site_tools"))


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built once; building it strictly fails at the first warning."""
    from mkdocs.commands.build import build
    from mkdocs.config import load_config

    folder = tmp_path_factory.mktemp("site")
    said: list[str] = []

    class Listen(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            said.append(record.getMessage())

    listener = Listen(logging.WARNING)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NO_MKDOCS_2_WARNING", "1")
        logging.getLogger("mkdocs").addHandler(listener)
        try:
            config = load_config(str(REPOSITORY / "mkdocs.yml"), site_dir=str(folder))
            config.plugins.on_startup(command="build", dirty=False)
            build(config)
        except SystemExit as stopped:  # what mkdocs raises in place of an error
            pytest.fail(f"{stopped}: " + "; ".join(said))
        finally:
            logging.getLogger("mkdocs").removeHandler(listener)
    assert not said, said
    return folder


def pages(site: Path) -> dict[str, str]:
    return {str(file.relative_to(site)): file.read_text(encoding="utf-8") for file in sorted(site.rglob("*.html"))}


def test_every_page_is_there(site: Path) -> None:
    """Every page of docs/ is built; the list in docs/index.md, from which the navigation is made, has them all."""
    built = pages(site)
    for page in (REPOSITORY / "docs").rglob("*.md"):
        assert str(page.relative_to(REPOSITORY / "docs").with_suffix(".html")) in built
    home = built["index.html"]
    for page in sorted(set(built) - {"404.html", "index.html"}):
        assert re.search(rf'<a href="{re.escape(page)}" class="md-nav__link"', home), f"{page} is not in the navigation"


def test_nothing_is_fetched_from_elsewhere(site: Path) -> None:
    for name, text in pages(site).items():
        for tag in re.findall(r"<(?:script|link|img|iframe|source)\b[^>]*>", text):
            assert not re.search(r'(?:src|href)="(?:https?:)?//', tag), f"{name}: {tag}"
    for style in site.rglob("*.css"):
        assert not re.search(r"(?:url\(|@import)\s*['\"]?(?:https?:)?//", style.read_text(encoding="utf-8")), style


def formulas() -> int:
    """The number of formulas in the docstrings of modules, public functions and classes."""
    found = 0
    for file in (REPOSITORY / "src").rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)):
                name = getattr(node, "name", "")
                said = ast.get_docstring(node) or ""
                found += 0 if name.startswith("_") else len(re.findall(r":math:`|\.\. math::", said))
    return found


def test_mathematics_is_rendered(site: Path) -> None:
    """Nearly every formula of the code is on the page; what is missing belongs to methods of private classes."""
    built = pages(site)
    shown = built["api/mathematics.html"].count("<math ")
    assert shown >= 0.9 * formulas() > 80
    own = {name: text for name, text in built.items() if not name.startswith("notebooks/")}  # those hold scripts
    for name, text in own.items():
        assert not re.search(r':math:|\.\. math::|class="arithmatex"|\\[\[(]', re.sub(r"<code.*?</code>", "", text)), (
            name
        )
    assert "<mtable" in built["api/mathematics.html"]  # aligned equations are tables


def test_every_public_name_is_in_the_reference(site: Path) -> None:
    reference = "".join(text for name, text in pages(site).items() if name.startswith("api/"))
    for name in neuroseqret.__all__:
        target = getattr(neuroseqret, name)
        if not isinstance(target, str):
            assert re.search(rf'id="neuroseqret\.(\w+\.)*{name}"', reference), f"docs/api lacks nsr.{name}"


def test_every_command_and_option_is_in_the_reference(site: Path) -> None:
    import commands
    from typer import Context
    from typer.main import get_command

    from neuroseqret.cli.main import app

    sections = pages(site)["commands.html"].split("<h2 ")
    contexts = list(commands.commands_below(Context(get_command(app), info_name="neuroseqret")))
    assert len(contexts) >= 13
    for context in contexts:
        (section,) = [one for one in sections if f"<code>{context.command_path}</code><a" in one]
        for parameter in context.command.params:
            if parameter.param_type_name == "option" and not parameter.hidden and parameter.name != "help":
                assert parameter.opts[0] in section, f"{context.command_path} {parameter.opts[0]}"
        assert not re.search(r"\{\w+\}", section.split("</article>")[0]), "a placeholder that nobody filled in"


def test_docstrings_become_markdown() -> None:
    from docstring_math import as_markdown

    assert as_markdown("The sum :math:`a +\n b`.") == r"The sum \(a + b\)."
    block = as_markdown("x\n\n.. math:: a &= b \\\\\n    c &= d\n\ny")
    assert [part.strip() for part in block.split("\n\n")] == ["x", r"\[a &= b \\ c &= d\]", "y"]
    assert "```pycon\n>>> f(1)\n2\n```" in as_markdown("Do.\n\n>>> f(1)\n2\n")


def test_formulas_become_mathml() -> None:
    from mathml import render

    assert render('<p><span class="arithmatex">\\(a_1 &lt; 2\\)</span></p>').count("<msub>") == 1
    block = render('<div class="arithmatex">\\[x &amp;= 1 \\\\ y &amp;= 2\\]</div>')
    assert 'display="block"' in block
    assert block.count("<mtr") == 2
