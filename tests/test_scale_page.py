"""docs/scale.md: it is made from the saved measurements, and the model behind it is what it says."""

from __future__ import annotations

import math

import numpy as np
import pytest

import scale_page


def test_the_page_is_made_from_the_results() -> None:
    assert scale_page.PAGE.read_text(encoding="utf-8") == scale_page.page(), "run: python tests/scale_page.py"


def one(n: int, a: float, b: float) -> dict:
    curve = [
        {"centres": 4 * math.sqrt(n), "compared": f * n, "p50_ms": a + b * 1e-6 * 64 * (4 * math.sqrt(n) + f * n)}
        for f in (0.01, 0.001)
    ]
    return {"sequences": n, "dimension": 64, "candidates": "cells", "curve": curve}


def test_the_model_finds_what_made_the_times() -> None:
    cells = [one(n, 0.2, 0.5) for n in (100_000, 300_000, 1_000_000)]
    model = scale_page.fitted(cells)
    assert model == pytest.approx((0.2, 0.5))
    assert scale_page.predicted(model, 10**7, 64, 0.01) == pytest.approx(one(10**7, 0.2, 0.5)["curve"][0]["p50_ms"])


def test_the_slope_is_that_of_logarithms() -> None:
    cells = [{"sequences": n, "curve": [{"p50_ms": 3e-3 * n**0.4}]} for n in (10_000, 100_000, 1_000_000, 10**7)]
    assert scale_page.slope(cells) == pytest.approx(0.4)
    assert np.isclose(scale_page.slope(cells[:3]), 0.4)
