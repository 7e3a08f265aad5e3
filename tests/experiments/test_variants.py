"""Every variant of the ablation is a model that learns and scores."""

from __future__ import annotations

import numpy as np
import pytest

from experiments.variants import PAPER_VARIANTS, VARIANTS, variant
from naive.cross_data import small_set
from neuroseqret.data.batching import pad
from neuroseqret.models.presets import PRESETS
from neuroseqret.processes.similarity import deltas


@pytest.mark.parametrize("name", VARIANTS)
def test_every_variant_is_a_setting_of_its_preset(name):
    model = variant(name, "health")
    assert model.preset == (f"{VARIANTS[name][0]}-health" if name.startswith("paper") else VARIANTS[name][0])
    assert (model.settings == PRESETS[model.preset]) == (name in ("default", "neural", "paper-literal"))


def test_the_papers_scores_are_its_six():
    queries, corpus = small_set()
    quick = {"encoder": {"width": 8}, "batch": {"size": 8}, "joint": {"steps": 2, "evaluations": 1}}
    delta_t, delta_x = (x.numpy() for x in deltas(pad(queries[:3]), pad(corpus[:9]), "literal"))
    expected = {
        "paper-literal-kernel-only": 0 * delta_t,
        "paper-literal-no-times": 0.1 * delta_x,
        "paper-literal-no-marks": 0.1 * delta_t,
        "paper-literal-no-unwarping": 0.1 * (delta_t + delta_x),
        "paper-literal-similarity-only": delta_t + delta_x,
    }
    for name, distance in expected.items():
        preset, overrides = PAPER_VARIANTS[name]
        model = type(variant(name))(preset, **(overrides | quick | {"unwarp": None})).fit(queries, corpus, seed=0)
        kappa = model.embed(queries[:3], "query") @ model.embed(corpus[:9]).T
        kappa = kappa * (name != "paper-literal-similarity-only")
        np.testing.assert_allclose(model.score(queries[:3], corpus[:9]), kappa - distance, rtol=1e-4, atol=1e-4)
