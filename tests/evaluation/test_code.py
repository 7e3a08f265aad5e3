"""The version of the code changes with what computes, and with nothing else."""

from __future__ import annotations

import pytest

from neuroseqret.evaluation import code


@pytest.fixture
def package(monkeypatch, tmp_path):
    """A package: a method, what it imports through another module and through a package, and a stranger."""
    root = tmp_path / "neuroseqret"
    for name, text in {
        "__init__": "from neuroseqret.stranger import y\n",
        "method": "from neuroseqret import __version__\nfrom neuroseqret.middle import f\nimport neuroseqret.gathering",
        "middle": "def f():\n    from neuroseqret.room.inner import x\n    return x\n",
        "gathering": "from neuroseqret.hall import z\n",
        "hall/__init__": "from neuroseqret.hall.corner import z\n",
        "hall/corner": "z = 1\n",
        "room/inner": '"""What it is."""\nx = 1  # why\n',
        "stranger": "y = 1\n",
        "evaluation/protocol": "",
        "evaluation/scoring": "",
    }.items():
        file = root / f"{name}.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    monkeypatch.setattr("neuroseqret.__file__", str(root / "__init__.py"))
    return root


def version() -> str:
    code._parsed.cache_clear()
    return code.code_version("neuroseqret.method")


@pytest.mark.parametrize(
    ("file", "text", "changes"),
    [
        ("room/inner.py", "x = 2\n", True),
        ("room/inner.py", '"""Said better."""\n\nx = 1\n', False),
        ("hall/corner.py", "z = 2\n", True),
        ("stranger.py", "y = 2\n", False),
        ("evaluation/scoring.py", "z = 1\n", True),
    ],
)
def test_follows_imports_and_ignores_words(package, file, text, changes):
    before = version()
    (package / file).write_text(text)
    assert (version() != before) == changes


def test_every_method_has_a_version_of_its_own():
    names = ("baselines.mass", "baselines.thp", "models.self_attention", "models.cross_attention")
    assert len({code.code_version(f"neuroseqret.{name}") for name in names}) == len(names)
