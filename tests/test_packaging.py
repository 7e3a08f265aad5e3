"""The wheel and the source distribution: what they hold, and that the wheel works outside the repository."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest
import yaml

import neuroseqret
from conftest import REPOSITORY

PACKAGE = REPOSITORY / "src" / "neuroseqret"
#: What lies in the repository but does not belong to it.
NOT_SOURCE = (
    ".*",
    "__pycache__",
    "*.egg-info",
    "build",
    "dist",
    "site",
    "node_modules",
    "neuroseqret-demo",
    "cells",
)


@pytest.fixture(scope="module")
def distributions(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """(wheel, source distribution), the wheel built from the source distribution as on any other machine."""
    out, source = tmp_path_factory.mktemp("dist"), tmp_path_factory.mktemp("source") / "repository"
    shutil.copytree(REPOSITORY, source, ignore=shutil.ignore_patterns(*NOT_SOURCE))  # building writes into it
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(out), str(source)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return next(out.glob("*.whl")), next(out.glob("*.tar.gz"))


def source_files() -> set[str]:
    """Every file of the package, Python or not."""
    found = (file.relative_to(PACKAGE.parent) for file in PACKAGE.rglob("*") if file.is_file())
    return {str(file) for file in found if "__pycache__" not in file.parts}


def test_the_wheel_holds_the_package_and_nothing_else(distributions: tuple[Path, Path]) -> None:
    names = {name for name in zipfile.ZipFile(distributions[0]).namelist() if ".dist-info/" not in name}
    assert names == source_files()
    assert "neuroseqret/py.typed" in names


def test_the_source_distribution_holds_what_the_wheel_is_built_from(distributions: tuple[Path, Path]) -> None:
    with tarfile.open(distributions[1]) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {f"src/{name}" for name in source_files()} <= names
    assert {"README.md", "LICENSE", "CHANGELOG.md", "CITATION.cff"} <= names
    assert not [name for name in names if re.match(r"(tests|experiments|benchmarks|docs|results)\b", name)]


def test_the_wheel_describes_itself(distributions: tuple[Path, Path]) -> None:
    with zipfile.ZipFile(distributions[0]) as wheel:
        (name,) = [name for name in wheel.namelist() if name.endswith("METADATA")]
        metadata = wheel.read(name).decode()
    assert f"Version: {neuroseqret.__version__}\n" in metadata
    assert "License-Expression: Apache-2.0" in metadata
    assert "# NeuroSeqRet" in metadata


PROGRAM = """
import sys
import neuroseqret as nsr
assert nsr.__file__.startswith(sys.prefix), nsr.__file__
from neuroseqret.methods.registry import make
data = nsr.simulate(groups=3, per_group=4, queries_per_group=3, seed=0)
index = nsr.Index.create(make("histogram").fit(data.queries, data.corpus, data.relevance), "index", data.corpus)
print(len(index.search(data.queries[0], k=3)))
"""


def test_the_wheel_works_in_an_empty_environment(distributions: tuple[Path, Path], tmp_path: Path) -> None:
    """A new environment that has the dependencies of this one, but not this package; in another folder."""
    place = tmp_path / "environment"
    venv.create(place, with_pip=False)
    python = place / ("Scripts" if os.name == "nt" else "bin") / "python"
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    pip = [sys.executable, "-m", "pip", "--python", str(python), "--disable-pip-version-check", "-q"]
    install = [*pip, "install", "--no-deps", "--no-index", str(distributions[0])]
    subprocess.run(install, env=clean, check=True, timeout=120)
    library = sysconfig.get_paths(vars={"base": str(place), "platbase": str(place)})["purelib"]
    Path(library, "dependencies.pth").write_text(sysconfig.get_paths()["purelib"] + "\n")

    def run(*command: str) -> str:
        done = subprocess.run(command, cwd=tmp_path, env=clean, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert run(str(python.with_name("neuroseqret")), "--version").strip() == f"neuroseqret {neuroseqret.__version__}"
    assert run(str(python), "-c", PROGRAM).strip() == "3"


def test_the_version_is_the_same_everywhere() -> None:
    assert f"\n## {neuroseqret.__version__}" in (REPOSITORY / "CHANGELOG.md").read_text(encoding="utf-8")
    assert citation()["version"] == neuroseqret.__version__


def citation() -> dict[str, object]:
    return dict(yaml.safe_load((REPOSITORY / "CITATION.cff").read_text(encoding="utf-8")))


def test_the_citation_file_is_complete() -> None:
    """The fields that the format requires, and the paper as the README cites it."""
    file = citation()
    assert {"cff-version", "message", "title", "authors", "license", "preferred-citation"} <= set(file)
    paper = file["preferred-citation"]
    assert isinstance(paper, dict)
    readme = (REPOSITORY / "README.md").read_text(encoding="utf-8")
    assert str(paper["title"]) in readme
    for author in paper["authors"]:
        assert f"{author['given-names']} {author['family-names']}" in readme


def test_the_changelog_keeps_its_form() -> None:
    """Versions, newest first; under each only the headings of Keep a Changelog, each at most once."""
    text = (REPOSITORY / "CHANGELOG.md").read_text(encoding="utf-8")
    versions = [
        tuple(map(int, found.split("."))) for found in re.findall(r"^## \[?(\d+\.\d+\.\d+)", text, re.MULTILINE)
    ]
    assert versions == sorted(versions, reverse=True)
    for section in text.split("\n## ")[1:]:
        headings = re.findall(r"^### (.+)$", section, re.MULTILINE)
        assert len(headings) == len(set(headings))
        assert set(headings) <= {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}


@pytest.mark.parametrize("template", sorted((REPOSITORY / ".github" / "ISSUE_TEMPLATE").glob("*.yml")), ids=str)
def test_issue_templates_can_be_read(template: Path) -> None:
    form = yaml.safe_load(template.read_text(encoding="utf-8"))
    if template.name != "config.yml":
        assert {"name", "description", "body"} <= set(form)
        assert all({"type", "attributes"} <= set(part) for part in form["body"])
