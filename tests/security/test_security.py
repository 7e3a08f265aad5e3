"""Dependencies, bill of materials, private temporary files: what `SECURITY.md` promises."""

from __future__ import annotations

import json
import re
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from neuroseqret.storage.exchange import hidden_folder
from neuroseqret.storage.files import new_file, new_folder
from security.advisories import CONSTRAINTS, FILE, ROOT, affected, normal, pins


def test_no_pinned_version_has_a_known_advisory() -> None:
    assert affected(CONSTRAINTS.read_text()) == []


def test_the_check_finds_an_old_version() -> None:
    assert affected("starlette==0.39.1\ntorch==2.5.1 ; python_version < '3.12'\n") == [
        "starlette 0.39.1: CVE-2024-47874, fixed in 0.40.0",
        "starlette 0.39.1: CVE-2025-54121, fixed in 0.47.2",
        "starlette 0.39.1: CVE-2025-62727, fixed in 0.49.1",
        "torch 2.5.1: CVE-2025-2953, fixed in 2.7.1",
        "torch 2.5.1: CVE-2025-32434, fixed in 2.6.0",
        "torch 2.5.1: CVE-2025-3730, fixed in 2.8.0",
    ]


def test_every_package_of_the_base_install_is_pinned() -> None:
    words = re.search(r"^dependencies = \[(.*?)^\]", (ROOT / "pyproject.toml").read_text(), re.DOTALL | re.MULTILINE)
    assert words is not None
    needed = {normal(Requirement(text).name) for text in re.findall(r'"([^"]+)"', words[1])}
    assert needed
    assert needed <= {name for name, _ in pins(CONSTRAINTS.read_text())}
    assert {one["package"] for one in json.loads(FILE.read_text())["advisories"]} & needed


def test_the_bill_of_materials_lists_what_is_installed(tmp_path: Path) -> None:
    words = ["environment", sys.executable, "--no-validate", "--of", "JSON", "-o", str(tmp_path / "sbom.json")]
    subprocess.run([sys.executable, "-m", "cyclonedx_py", *words], check=True, timeout=120, capture_output=True)
    content = json.loads((tmp_path / "sbom.json").read_text())
    versions = {normal(one["name"]): one["version"] for one in content["components"]}
    assert content["bomFormat"] == "CycloneDX"
    assert versions["torch"].split("+")[0] == dict(pins(CONSTRAINTS.read_text()))["torch"]
    assert {"numpy", "pyarrow", "safetensors"} <= set(versions)
    assert "cyclonedx_py environment" in (ROOT / "Makefile").read_text()


def test_temporary_files_and_folders_are_private(tmp_path: Path) -> None:
    with new_file(tmp_path / "file") as temporary:
        assert stat.S_IMODE(temporary.stat().st_mode) == 0o600
        temporary.write_text("x")
    with new_folder(tmp_path / "folder", "marker") as temporary:
        assert stat.S_IMODE(temporary.stat().st_mode) == 0o700
        (temporary / "marker").write_text("x")
    with hidden_folder(tmp_path / "other") as hidden:
        assert stat.S_IMODE(hidden.stat().st_mode) == 0o700


@pytest.mark.parametrize("word", ["pickle.load", "eval(", "exec(", "shell=True", "yaml.load", "mktemp("])
def test_nothing_from_outside_is_run(word: str) -> None:
    found = [
        f"{path.name}: {line.strip()}"
        for path in (ROOT / "src").rglob("*.py")
        for line in path.read_text().splitlines()
        if re.search(rf"(?<![\w.]){re.escape(word)}", line) and not line.strip().startswith(("#", '"'))
    ]
    assert found == []
