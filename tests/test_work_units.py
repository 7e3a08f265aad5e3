"""The names in `work_units` are of files that are there, so that a moved file cannot lose its place unnoticed."""

from __future__ import annotations

from conftest import REPOSITORY
from work_units import LONGEST, TOGETHER, unit


def test_every_place_exists() -> None:
    for place in (*(place for places in TOGETHER.values() for place in places), *(set(LONGEST) - set(TOGETHER))):
        assert (REPOSITORY / place).exists(), place


def test_what_shares_models_is_one_unit() -> None:
    assert unit("tests/golden/test_golden.py::test_x[a]") == unit("tests/models/test_contract.py::test_y") == "golden"
