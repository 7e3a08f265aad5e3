"""A model folder whose hashes fit but whose numbers were forged is refused before a number sizes an allocation."""

from __future__ import annotations

import copy
import json
import resource
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from golden.golden_data import golden_data
from golden.golden_figures import fitted
from neuroseqret import methods
from neuroseqret.errors import UserError
from neuroseqret.models import model_folder
from neuroseqret.models.allocation import OnlyWhatTheFileHolds

NAMES = ("self", "self paper-literal", "cross", "histogram", "gru", "thp")


def numbers(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The places of all numbers in a JSON object."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from numbers(inner, (*path, name))
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        yield path


def forge(folder: Path, config: dict[str, Any], path: tuple[str, ...], value: Any) -> None:
    """Set one number of the configuration and hash it again, as an attacker would."""
    forged = copy.deepcopy(config)
    inner = forged
    for name in path[:-1]:
        inner = inner[name]
    inner[path[-1]] = value
    forged.pop(model_folder.CONFIG_HASH)
    forged[model_folder.CONFIG_HASH] = model_folder._hash_of_config(forged)
    (folder / model_folder.CONFIG).write_text(json.dumps(forged))


@pytest.mark.parametrize("name", NAMES)
def test_no_number_of_a_configuration_takes_memory_or_breaks_the_model(name: str, tmp_path: Path) -> None:
    queries, corpus = golden_data()
    fitted(name).save(tmp_path / "model")
    config = json.loads((tmp_path / "model" / model_folder.CONFIG).read_text())
    told: list[str] = []
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for path in numbers(config):
        for value in (10**9, 0):
            forge(tmp_path / "model", config, path, value)
            begun = time.process_time()
            try:
                methods.load(tmp_path / "model").score(queries[:1], corpus[:2])
            except UserError as error:
                told.append(str(error))
            assert time.process_time() - begun < 10, path
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 600_000  # kilobytes
    assert len(told) > 1
    assert not [line for line in told if "\n" in line]


def test_a_network_of_a_billion_blocks_is_refused_at_once(tmp_path: Path) -> None:
    fitted("self paper-literal").save(tmp_path / "model")
    config = json.loads((tmp_path / "model" / model_folder.CONFIG).read_text())
    forge(tmp_path / "model", config, ("settings", "encoder", "blocks"), 10**9)
    with pytest.raises(UserError, match=r"asks for a much larger network than the .* saved numbers.*; fit the model"):
        methods.load(tmp_path / "model")


@pytest.mark.parametrize(
    "build",
    [
        lambda: nn.Linear(10**6, 10**6),
        lambda: nn.ModuleList(nn.Linear(1, 1) for _ in range(10**6)),
        lambda: nn.Embedding(10**12, 2),
        lambda: torch.randn(10**12, generator=torch.Generator()),
        lambda: torch.full((10**12,), 1.0),
        lambda: torch.arange(10**12),
    ],
)
def test_tensors_are_counted_before_they_are_made(build: Any) -> None:
    with pytest.raises(ValueError, match="much larger"), OnlyWhatTheFileHolds({"weight": torch.zeros(100)}):
        build()


def test_a_network_of_the_right_size_is_built() -> None:
    with OnlyWhatTheFileHolds(nn.GRU(30, 40).state_dict()):
        made = nn.GRU(30, 40)
    assert np.isfinite(made.weight_hh_l0.detach().numpy()).all()


def without(tensors: dict[str, torch.Tensor], name: str) -> dict[str, torch.Tensor]:
    return {each: tensor for each, tensor in tensors.items() if each != name}


def with_large_numbers(tensors: dict[str, torch.Tensor], name: str) -> dict[str, torch.Tensor]:
    large = 2**40 if tensors[name].dtype == torch.int64 else 1e30
    return {**tensors, name: torch.full_like(tensors[name], large)}


def with_another_type(tensors: dict[str, torch.Tensor], name: str) -> dict[str, torch.Tensor]:
    other = torch.float64 if tensors[name].dtype != torch.float64 else torch.int32
    return {**tensors, name: tensors[name].to(other)}


@pytest.mark.parametrize("forged", [without, with_large_numbers, with_another_type])
@pytest.mark.parametrize("name", NAMES)
def test_forged_tensors_are_one_line_or_scores_are_finite(name: str, forged: Any, tmp_path: Path) -> None:
    queries, corpus = golden_data()
    state = fitted(name).to_state()
    told: list[str] = []
    for each in state.tensors:
        model_folder.write_state(tmp_path / each, replace(state, tensors=forged(state.tensors, each)))
        try:
            scores = methods.load(tmp_path / each).score(queries[:1], corpus[:2])
        except UserError as error:
            told.append(str(error))
        else:
            assert np.isfinite(scores).all(), each
    assert told or forged is not without
    assert not [line for line in told if "\n" in line]


def test_a_correction_by_events_without_their_states_is_refused(tmp_path: Path) -> None:
    state = fitted("cross").to_state()
    tensors = {name: tensor for name, tensor in state.tensors.items() if "states." not in name}
    assert len(tensors) < len(state.tensors)
    card = state.card.model_copy(update={"constants": {**state.card.constants, "event_strength": 1.0}})
    model_folder.write_state(tmp_path / "model", replace(state, card=card, tensors=tensors))
    with pytest.raises(UserError, match=r"the local states are missing.*; fit the model"):
        methods.load(tmp_path / "model")
