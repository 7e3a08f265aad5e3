"""A model that is judged with queries it learned from is noticed, by a sketch of what it learned from."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import neuroseqret as nsr
from naive.random_sequences import random_sequences
from neuroseqret.data import sketch as module
from neuroseqret.data.sketch import LeakWarning, known_rows, sketch_of


@pytest.mark.parametrize("kept", [10_000, 64])
def test_what_was_learned_from_is_known_and_nothing_else(monkeypatch, kept):
    monkeypatch.setattr(module, "KEPT", kept)
    learned, other = random_sequences(0, number=300), random_sequences(1, number=300)
    sketch = sketch_of([learned[:200], learned[200:]])
    known, told = known_rows(sketch, learned)
    np.testing.assert_array_equal(known, told)  # whatever can be told was learned from
    assert told.all() if kept > 300 else told.sum() == kept
    known, told = known_rows(sketch, other)
    assert not known.any()
    assert told.all() if kept > 300 else 0 < told.sum() < 300


def test_evaluate_warns_of_test_queries_that_the_model_learned_from(tmp_path):
    data = nsr.simulate(groups=3, per_group=8, queries_per_group=6, seed=1)
    model = nsr.make("histogram").fit(data.queries, data.corpus, data.relevance)
    with warnings.catch_warnings():
        warnings.simplefilter("error", LeakWarning)
        nsr.evaluate(data, [model])
    split = np.array(data.queries.column("split").to_pylist())
    others = np.where(split == "test", "train", np.where(split == "train", "test", split))
    swapped = data.queries.with_column("split", others.tolist())
    again = type(data)(path=None, corpus=data.corpus, queries=swapped, relevance=data.relevance, meta=data.meta)
    model.save(tmp_path / "model")
    for given in (model, str(tmp_path / "model")):
        with pytest.warns(LeakWarning, match=r"learned from \d+ of the \d+ queries .* figures are too high"):
            nsr.evaluate(again, [given])
