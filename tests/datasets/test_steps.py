"""Send-on-delta sampling against a loop."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from naive import datasets as naive
from neuroseqret.datasets.steps import relative_change, steps


@settings(deadline=None)  # compiled at the first call
@given(st.lists(st.sampled_from([0.0, 1.0, 2.0, 3.0, 10.0, 10.4, 100.0, 104.0, 106.0]), max_size=40))
def test_steps_are_those_of_the_loop(values):
    rows, levels = steps(np.array(values, float), 2.0, 0.05)
    assert list(zip(rows.tolist(), levels.tolist(), strict=True)) == naive.steps(values, 2.0, 0.05)


def test_relative_change():
    assert relative_change(np.array([4.0, 0.0, 0.0, 1.0]), np.array([2.0, 5.0, 0.0, 4.0])).tolist() == [
        0.5,
        -1,
        0,
        -0.75,
    ]
