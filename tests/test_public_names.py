"""The names that the package promises."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys

import pytest

import neuroseqret


@pytest.mark.parametrize("name", neuroseqret.__all__)
def test_every_public_name_is_there(name: str) -> None:
    assert getattr(neuroseqret, name) is not None
    assert name in dir(neuroseqret)


def test_what_public_functions_give_has_a_public_name() -> None:
    for function in (neuroseqret.Index.search, neuroseqret.evaluate, neuroseqret.explain, neuroseqret.read_folder):
        given = str(inspect.signature(function).return_annotation)
        for name in re.findall(r"[A-Z]\w+", given):
            assert inspect.getdoc(getattr(neuroseqret, name)), name


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="nonsense"):
        neuroseqret.nonsense  # noqa: B018


def test_importing_the_package_imports_nothing_heavy() -> None:
    code = "import sys, neuroseqret; print(sorted({'torch', 'pyarrow', 'numpy'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "[]"
