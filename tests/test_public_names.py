"""The public names of the package: they exist, are documented, and cost nothing to import."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys

import pytest

import neuroseqret
from conftest import REPOSITORY


@pytest.mark.parametrize("name", neuroseqret.__all__)
def test_every_public_name_is_there(name: str) -> None:
    assert getattr(neuroseqret, name) is not None
    assert name in dir(neuroseqret)


@pytest.mark.parametrize("name", [name for name in neuroseqret.__all__ if name != "__version__"])
def test_every_public_name_is_documented(name: str) -> None:
    assert inspect.getdoc(getattr(neuroseqret, name))


def test_what_public_functions_return_has_a_public_name() -> None:
    for function in (neuroseqret.Index.search, neuroseqret.evaluate, neuroseqret.explain, neuroseqret.read_folder):
        returned = str(inspect.signature(function).return_annotation)
        for name in re.findall(r"[A-Z]\w+", returned):
            assert name in neuroseqret.__all__, f"{function.__qualname__} returns {name}, which is not public"


def test_every_name_in_the_documentation_is_public() -> None:
    for page in (REPOSITORY / "README.md", *(REPOSITORY / "docs").glob("*.md")):
        for name in re.findall(r"\bnsr\.(\w+)", page.read_text(encoding="utf-8")):
            assert name in neuroseqret.__all__, f"{page.name} uses nsr.{name}"


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="nonsense"):
        neuroseqret.nonsense  # noqa: B018


def test_importing_the_package_imports_nothing_heavy() -> None:
    code = "import sys, neuroseqret; print(sorted({'torch', 'pyarrow', 'numpy'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "[]"
