"""Methods by name: each is what its name says, and a wrong name is one line."""

from __future__ import annotations

import pytest

from neuroseqret import methods
from neuroseqret.baselines.random import Random
from neuroseqret.errors import UserError
from neuroseqret.models.base import RelevanceModel
from simulated import simulate

NAMES = [*methods.MODELS, *methods.BASELINES]


@pytest.mark.parametrize("name", NAMES)
def test_every_method_is_made_by_its_name_and_has_a_version(name):
    made = methods.make(name)
    assert isinstance(made, RelevanceModel)
    assert (made.name, type(made)) == (name, methods.method_class(name))
    assert type(made).version >= 1
    assert methods.is_method(name)


def test_a_preset_is_passed_to_a_model():
    assert methods.make("self", "paper-literal").preset == "paper-literal"


def test_an_unknown_name_lists_those_there_are():
    assert not methods.is_method("nonsense")
    with pytest.raises(UserError, match="no method is called 'nonsense'; there are self, cross, hash-cross, random"):
        methods.method_class("nonsense")


def test_a_folder_is_loaded_by_the_method_that_it_names(tmp_path, monkeypatch):
    assert isinstance(methods.load(Random().fit(*simulate()).save(tmp_path / "model")), Random)
    monkeypatch.setattr(Random, "name", "tomorrow")
    folder = Random().fit(*simulate()).save(tmp_path / "newer")
    with pytest.raises(UserError, match="holds a 'tomorrow' model, which this version does not know; fit the model"):
        methods.load(folder)
