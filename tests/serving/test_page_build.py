"""The page in the package is the build of the source in `page/`, and is safe to open. No npm is needed here."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
SOURCE = REPOSITORY / "page"
BUILT = REPOSITORY / "src" / "neuroseqret" / "serving" / "page"


def fingerprint(folder: Path, names: list[str]) -> str:
    """The hash of `page/fingerprint.ts`, computed again."""
    files = sorted(
        (path.relative_to(folder).as_posix(), path)
        for name in names
        for path in ([folder / name] if (folder / name).is_file() else (folder / name).rglob("*"))
        if path.is_file()
    )
    found = hashlib.sha256()
    for name, path in files:
        content = path.read_bytes()
        found.update(f"{name}\0{len(content)}\0".encode() + content)
    return found.hexdigest()


@pytest.fixture(scope="module")
def names() -> list[str]:
    listed = re.search(r"SOURCES = \[(.*?)\]", (SOURCE / "fingerprint.ts").read_text(), re.DOTALL)
    assert listed
    return re.findall(r'"([^"]+)"', listed[1])


def test_the_built_page_is_the_build_of_the_source(names):
    assert {"src", "vite.config.ts", "package.json", "package-lock.json"} <= set(names)
    written = dict(line.split() for line in (BUILT / "sha256.txt").read_text().splitlines())
    said = "run 'make page' and commit"
    assert written["source"] == fingerprint(SOURCE, names), f"page/ has changed since the page was built; {said}"
    built = [path.name for path in BUILT.iterdir() if path.name != "sha256.txt"]
    assert {"index.html", "page.js", "index.css"} <= set(built)
    assert written["build"] == fingerprint(BUILT, built), f"built files have changed since they were built; {said}"


def test_a_changed_source_would_be_noticed(names):
    assert fingerprint(SOURCE, names) != fingerprint(SOURCE, names[:-1])


def test_nothing_is_loaded_from_elsewhere():
    for name in ("index.html", "page.js", "index.css"):
        text = (BUILT / name).read_text()
        # Names of XML formats and of Svelte's error pages are not loaded.
        addresses = set(re.findall(r"https?://[^\s\"'`)]+", text))
        assert {a for a in addresses if not a.startswith(("http://www.w3.org/", "https://svelte.dev/e/"))} == set()
    page = (BUILT / "index.html").read_text()
    assert not re.search(r"<script(?![^>]* src=)|<style|\son\w+=|style=", page), "a strict CSP forbids inline code"


def test_text_is_never_read_as_markup():
    for path in (SOURCE / "src").rglob("*"):
        if path.suffix in (".svelte", ".ts"):
            assert not re.search(
                r"@html|innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(", path.read_text()
            ), path
