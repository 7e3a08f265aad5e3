"""A name that is neither a method nor a folder."""

from __future__ import annotations

import pytest

import neuroseqret as nsr
from neuroseqret.errors import UserError
from neuroseqret.evaluation.evaluate import evaluate


def test_a_misspelt_method_is_said_to_be_neither() -> None:
    with pytest.raises(
        UserError, match="no method is called 'modle', and there is no folder of this name; methods are"
    ):
        evaluate(nsr.simulate(3, 6, 3, seed=1), ["modle"], cache=None)
