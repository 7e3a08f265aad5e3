"""docs/reliability.md: it is made from the saved results, and every test that it names exists."""

from __future__ import annotations

import ast

import pytest

import reliability_page
from conftest import REPOSITORY

TESTS = sorted({test for promises in reliability_page.PROMISES.values() for one in promises for test in one.tests})


def test_the_page_is_made_from_the_results() -> None:
    assert reliability_page.PAGE.read_text(encoding="utf-8") == reliability_page.page(), (
        "run: python tests/reliability_page.py"
    )


@pytest.mark.parametrize("test", TESTS)
def test_a_test_that_holds_a_promise_exists(test: str) -> None:
    file, _, name = test.partition("::")
    tree = ast.parse((REPOSITORY / file).read_text(encoding="utf-8"))
    assert name in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


def test_every_result_belongs_to_a_promise() -> None:
    """No kind of torture and no target is left out, and no promise has a long form that never ran."""
    results, promised = REPOSITORY / "results", set()
    for promises in reliability_page.PROMISES.values():
        for pattern in (pattern for one in promises for pattern in one.results):
            found = set(results.glob(f"{pattern}.json"))
            assert found, f"{pattern}: run the long form"
            promised |= found
    kept = {file for kind in ("torture", "fuzz", "machines") for file in results.glob(f"{kind}/*.json")}
    assert promised == kept | {results / "life.json"}
