"""Known advisories against packages that we depend on, kept in `advisories.json` so that the check needs no network.

python tests/security/advisories.py        # with a network: asks pip-audit and adds what it knows of the pins
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

ROOT = Path(__file__).parents[2]
FILE = Path(__file__).with_name("advisories.json")
CONSTRAINTS = ROOT / "constraints.txt"


def pins(text: str) -> Iterator[tuple[str, str]]:
    """Yield the name and the version of every pinned package."""
    for line in text.splitlines():
        if not (words := line.partition("#")[0].strip()):
            continue
        pinned = Requirement(words)
        for part in pinned.specifier:
            yield normal(pinned.name), part.version


def normal(name: str) -> str:
    """Return a package's name as the index spells it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def affected(text: str) -> list[str]:
    """Return one line per pinned version that an advisory is about."""
    known = json.loads(FILE.read_text())["advisories"]
    return [
        f"{name} {version}: {advisory['id']}, fixed in {advisory['fixed']}"
        for name, version in pins(text)
        for advisory in known
        if advisory["package"] == name and SpecifierSet(advisory["affected"]).contains(version, prereleases=True)
    ]


def refresh() -> None:
    """Ask pip-audit about the pinned versions and add the advisories that it names."""
    command = [sys.executable, "-m", "pip_audit", "-r", str(CONSTRAINTS), "--no-deps", "--format", "json"]
    found = json.loads(subprocess.run(command, capture_output=True, text=True).stdout)
    content = json.loads(FILE.read_text())
    have = {(one["package"], one["id"]) for one in content["advisories"]}
    for package in found["dependencies"]:
        for flaw in package.get("vulns", ()):
            name, fixed = normal(package["name"]), (flaw["fix_versions"] or [None])[-1]
            if (name, flaw["id"]) not in have:
                affected_by = f"<{fixed}" if fixed else f"<={package['version']}"
                content["advisories"].append(
                    {"package": name, "id": flaw["id"], "affected": affected_by, "fixed": fixed}
                )
    content["advisories"].sort(key=lambda one: (one["package"], one["id"]))
    FILE.write_text(json.dumps(content, indent=1) + "\n")


if __name__ == "__main__":
    refresh()
    print("\n".join(affected(CONSTRAINTS.read_text())) or "no pinned version is affected")
