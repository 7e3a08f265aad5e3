"""What mkdocs does for this site beyond its plugins.

- The navigation is the list of pages in `index.md`: one section per heading, one entry per row that begins with a link.
- Files of the repository's root, such as CONTRIBUTING.md, are pages too.
- `<!-- commands -->` and `<!-- mathematics -->` in a page are replaced by what the code itself says.
- Mathematics is rendered, see `mathml.py`.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

sys.path.insert(0, str(Path(__file__).parent))

import commands
import mathematics
import mathml

ROOT = Path(__file__).parents[2]
#: Files of the repository's root that are pages of the site.
PROJECT = {
    name: f"project/{name.lower().replace('_', '-')}"
    for name in ("CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "CODE_OF_CONDUCT.md")
    if (ROOT / name).exists()
}
#: Pages with wide tables and pictures.
WIDE = ("notebooks/", "results", "index-measurements", "scale", "reliability")
GENERATED = {"<!-- commands -->": commands.reference, "<!-- mathematics -->": mathematics.reference}


def navigation(index: str) -> list[dict[str, Any]]:
    """Return the navigation: `index.md` itself, then its sections with the pages that their tables link to."""
    found: list[dict[str, Any]] = [{"Home": "index.md"}]
    for section in re.split(r"^### ", index.split("## Pages", 1)[1], flags=re.MULTILINE)[1:]:
        title, _, text = section.partition("\n")
        rows = re.findall(r"^\| \[([^]]+)\]\(([^)#]+)\)", text, re.MULTILINE)
        found.append({title.strip(): [{name: _target(link)} for name, link in rows]})
    return found


def _target(link: str) -> str:
    return PROJECT[link.removeprefix("../")] if link.startswith("../") else link


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    config.nav = navigation(Path(config.docs_dir, "index.md").read_text(encoding="utf-8"))
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    for name, place in PROJECT.items():
        text = (ROOT / name).read_text(encoding="utf-8")
        files.append(File.generated(config, place, content=_links_from_root(text)))
    return files


def _links_from_root(text: str) -> str:
    """Return a file of the root with its links as seen from `project/`."""

    def move(found: re.Match[str]) -> str:
        link, anchor = found[1], found[2] or ""
        if link.startswith("docs/"):
            return f"](../{link.removeprefix('docs/')}{anchor})"
        return f"](../{PROJECT[link]}{anchor})" if link in PROJECT else found[0]

    return re.sub(r"\]\(([^)#:\s]+)(#[^)\s]*)?\)", move, text)


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    up = "../" * page.file.src_uri.count("/")
    for name, place in PROJECT.items():
        markdown = markdown.replace(f"]({up}../{name}", f"]({up}{place}")
    for marker, write in GENERATED.items():
        if marker in markdown:
            markdown = markdown.replace(marker, write())
    return markdown


def on_page_context(context: Any, page: Page, config: MkDocsConfig, nav: Any) -> Any:
    """Give wide pages the room of the table of contents."""
    if page.file.src_uri.startswith(WIDE):
        page.meta["hide"] = ["toc"]
    return context


def on_page_content(html: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    return mathml.render(html)
