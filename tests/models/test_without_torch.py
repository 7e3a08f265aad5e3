"""`self` without torch: the same embeddings as the model itself, from the same folder."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from neuroseqret.errors import UserError
from neuroseqret.index import Index
from neuroseqret.methods import registry
from neuroseqret.models.plain_metric import FEW, PlainMetric
from neuroseqret.models.self_attention import group_probabilities
from neuroseqret.models.self_attention.model import SelfAttention
from neuroseqret.models.without_torch import SelfWithoutTorch
from neuroseqret.readers import write
from simulated import simulate_retrieval

CORPUS, QUERIES = simulate_retrieval(groups=4, per_group=6, seed=3)
SHORT: dict[str, Any] = {"head": {"steps": 20}, "selection": None}


def settings(**more: Any) -> dict[str, Any]:
    members = [
        {"sees": ["bank", "markov"]},
        {"kind": "linear", "sees": ["positions", "bank"]},
        {"kind": "discriminant", "sees": ["bank", "markov"]},
        {"kind": "whitened", "sees": ["markov"]},
        {"kind": "identity", "sees": ["bank"]},
        {"kind": "groups"},
    ]
    return SHORT | {"projection": {"members": members}, "vector": {"bank": 32}} | more


@pytest.mark.parametrize(
    ("overrides", "kept"),
    [
        (SHORT, 256),
        (settings(), 256),
        (settings(), 3),  # probabilities in fewer directions than there are groups
        (settings(vector={"bank": 0}), 256),
        (settings(vector={"markov": False, "bank": 32}), 256),
    ],
)
def test_the_embeddings_are_those_of_the_model(
    overrides: dict[str, Any], kept: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(group_probabilities, "KEPT", kept)
    model = SelfAttention(**overrides).fit(QUERIES, CORPUS)
    model.save(tmp_path / "model")
    light = registry.load_to_embed(tmp_path / "model")
    assert isinstance(light, SelfWithoutTorch)
    assert len(CORPUS) > 2 * FEW
    for role in ("query", "corpus"):
        wanted = model.embed(CORPUS, role)  # by torch: they are many
        np.testing.assert_allclose(light.embed(CORPUS, role), wanted, atol=2e-6)
        for rows in (slice(3, 4), slice(0, FEW), slice(5, 6 + FEW)):
            for either in (light, model):
                np.testing.assert_allclose(either.embed(CORPUS[rows], role), wanted[rows], atol=2e-6)
    np.testing.assert_allclose(light.as_query(wanted), model.as_query(wanted), atol=2e-6)
    assert light.embed(CORPUS[:0], "query").shape == (0, model.dimension)
    assert light.score_is_cosine


def test_after_training_again_few_sequences_get_the_new_embeddings() -> None:
    model = SelfAttention(**SHORT).fit(QUERIES, CORPUS)
    before = model.embed(CORPUS[:1])
    model.fit(QUERIES, CORPUS, seed=1)
    after = model.embed(CORPUS[:1])
    assert before.shape != after.shape or not np.allclose(before, after, atol=1e-3)
    np.testing.assert_allclose(after, model.embed(CORPUS)[:1], atol=2e-6)


@pytest.mark.parametrize(
    "name",
    ["projections.0.first", "projections.0.second_bias", "groups.classifiers.0.weight", "groups.classifiers.0.bias"],
)
def test_arrays_that_do_not_fit_are_refused_before_compiled_loops_read_them(name: str) -> None:
    metric = SelfAttention(**settings()).fit(QUERIES, CORPUS).network.metric
    arrays = {n: tensor.numpy() for n, tensor in metric.state_dict().items()}
    PlainMetric(arrays, metric.settings, metric.layout)
    arrays[name] = arrays[name][..., :-1]
    with pytest.raises(ValueError, match="does not map"):
        PlainMetric(arrays, metric.settings, metric.layout)


@pytest.mark.parametrize("preset", ["neural", "paper-literal"])
def test_a_model_with_a_neural_process_is_loaded_whole(preset: str, tmp_path: Path) -> None:
    SelfAttention(preset).fit(QUERIES, CORPUS, max_seconds=1).save(tmp_path / "model")
    assert isinstance(registry.load_to_embed(tmp_path / "model"), SelfAttention)


def test_it_embeds_and_nothing_else(tmp_path: Path) -> None:
    SelfAttention(**SHORT).fit(QUERIES, CORPUS).save(tmp_path / "model")
    light = registry.load_to_embed(tmp_path / "model")
    with pytest.raises(UserError, match=r"only embeds; load the model folder with neuroseqret\.load"):
        light.save(tmp_path / "copy")
    tensors = tmp_path / "model" / "model.safetensors"
    tensors.write_bytes(tensors.read_bytes()[:-1])
    with pytest.raises(UserError, match="truncated or changed"):
        registry.load_to_embed(tmp_path / "model")


def test_a_program_that_only_searches_never_imports_torch(tmp_path: Path) -> None:
    index = Index.create(SelfAttention(**SHORT).fit(QUERIES, CORPUS), tmp_path / "index", CORPUS)
    write(QUERIES[:3], tmp_path / "queries.parquet")
    program = """
import sys
import neuroseqret as nsr
index = nsr.Index.open("index")
found = index.search(nsr.read("queries.parquet"), k=4, expand=True)
print([hit.id for hits in found for hit in hits])
assert index.search(id=found[0][0].id)
assert "torch" not in sys.modules
index.model  # the model itself, for those who want it
assert "torch" in sys.modules
assert [[hit.id for hit in hits] for hits in index.search(nsr.read("queries.parquet"), k=4, expand=True)] == [
    [hit.id for hit in hits] for hits in found
]
"""
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    here = index.search(QUERIES[:3], k=4, expand=True)
    assert done.stdout.strip() == str([hit.id for hits in here for hit in hits])
