"""The one contract through all thirteen baselines: settings, model cards, checkpoints, options of `fit`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from pydantic import BaseModel

from neuroseqret import methods
from neuroseqret.baselines import point_process
from neuroseqret.baselines.gru import GRU
from neuroseqret.baselines.histogram import Histogram
from neuroseqret.baselines.histogram_metric import HistogramMetric
from neuroseqret.baselines.rmtpp import RMTPP
from neuroseqret.baselines.udtw import UDTW
from neuroseqret.errors import DataError, DivergenceError, UserError
from neuroseqret.models.base import RelevanceModel, Resumable
from neuroseqret.training.checkpoint import Checkpoint
from neuroseqret.training.sampling import PairSampler
from simulated import simulate

POINT_PROCESSES = ("rmtpp", "sahp", "thp", "rank-rmtpp", "rank-sahp", "rank-thp")
TRAINED = ("gru", "histogram-metric", *POINT_PROCESSES)
WITHOUT_LABELS = ("random", "histogram", "mass", "udtw", "sharp", "rmtpp", "sahp", "thp")
#: Not the defaults, so that a saved method shows whether its settings were kept.
OPTIONS: dict[str, dict[str, Any]] = {
    "gru": {"hidden": 8, "loop": {"steps": 2}},
    "histogram-metric": {"hidden": 8, "loop": {"steps": 2}},
    "udtw": {"window": 0.2},
    "sharp": {"gamma": 0.3},
    **{name: {"steps": 1, "learning_rate": 1e-3} for name in POINT_PROCESSES},
}
QUERIES, CORPUS = simulate(groups=3, per_group=6, events=8)


def made(name: str) -> RelevanceModel:
    return methods.make(name, **OPTIONS.get(name, {}))


@pytest.mark.parametrize("name", methods.BASELINES)
def test_a_method_is_settings_card_and_tensors(name: str, tmp_path: Path) -> None:
    model = made(name).fit(QUERIES, CORPUS, seed=2)
    state = model.to_state()
    card = state.card
    assert (card.model, card.seed, card.marks, card.mark_names) == (name, 2, 4, ("a", "b", "c", "d"))
    assert card.corpus_fingerprint == CORPUS.fingerprint()
    assert card.settings == model.settings.model_dump(mode="json")
    assert type(model)(**card.settings).settings == model.settings
    loaded = methods.load(model.save(tmp_path / "m"))
    assert loaded.card == card
    assert loaded.to_state().tensors.keys() == state.tensors.keys()
    np.testing.assert_array_equal(loaded.score(QUERIES, CORPUS), model.score(QUERIES, CORPUS))


@pytest.mark.parametrize("name", methods.BASELINES)
def test_marks_are_taken_by_name_and_unknown_ones_refused(name: str) -> None:
    model = made(name).fit(QUERIES, CORPUS)
    named = QUERIES[:2].without_columns("source")
    turned = type(named)(named.table, ("a", "b", "c", "never seen"), named.time_unit)
    with pytest.raises(DataError, match="'never seen' is unknown to the model"):
        model.score(turned, CORPUS)
    assert np.isfinite(model.score(turned, CORPUS, unknown_marks="keep")).all()


def test_what_each_needs_and_can() -> None:
    classes = {name: methods.method_class(name) for name in methods.BASELINES}
    assert tuple(name for name, made in classes.items() if not made.needs_labels) == WITHOUT_LABELS
    assert {name for name, made in classes.items() if issubclass(made, Resumable)} == set(TRAINED)


def test_settings_have_names_of_their_own_and_refuse_others() -> None:
    settings: set[type[BaseModel]] = {type(made(name).settings) for name in methods.BASELINES}
    assert {s.__name__ for s in settings} == {
        *("NoSettings", "GRUSettings", "HistogramMetricSettings"),
        *("PointProcessSettings", "UDTWSettings", "SharpSettings"),
    }
    for each in settings:
        with pytest.raises(ValueError, match="widht"):
            each(widht=3)


@pytest.mark.parametrize("name", ["gru", "histogram-metric"])
def test_a_network_of_no_width_is_refused(name: str) -> None:
    for width in ("hidden", "dimension"):
        with pytest.raises(UserError, match=f"{width}.*greater than or equal to 1"):
            methods.make(name, **{width: 0})


def test_a_checkpoint_needs_a_method_that_learns_in_steps(tmp_path: Path) -> None:
    for method in (Histogram(), UDTW()):
        with pytest.raises(UserError, match="does not learn in steps and takes no checkpoint"):
            method.fit(QUERIES, CORPUS, checkpoint=tmp_path / "c")
    assert not (tmp_path / "c").exists()


@pytest.mark.parametrize("name", methods.BASELINES)
def test_an_unknown_option_of_fit_is_a_type_error(name: str) -> None:
    with pytest.raises(TypeError, match="max_second"):
        made(name).fit(QUERIES, CORPUS, max_second=3)  # type: ignore[call-arg]


# -------------------------------------------------------------------- runs that were cut off


class CutOff(Exception):
    """Stands for a power cut."""


def breaks_at(call: int, function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, which raises from the given call on."""
    calls = 0

    def counted(*arguments: Any, **options: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls >= call:
            raise CutOff
        return function(*arguments, **options)

    return counted


def weights(model: RelevanceModel) -> dict[str, torch.Tensor]:
    return dict(model.to_state().tensors)


CASES: list[tuple[Callable[[], RelevanceModel], Any, str]] = [
    (lambda: GRU(hidden=8, loop={"steps": 8, "evaluations": 3}), PairSampler, "batch"),
    (lambda: HistogramMetric(hidden=8, loop={"steps": 8, "evaluations": 3}), PairSampler, "batch"),
    (lambda: RMTPP(steps=8), point_process, "crop"),
]


@pytest.mark.parametrize(("make", "place", "function"), CASES, ids=["gru", "histogram-metric", "rmtpp"])
def test_a_run_that_was_cut_off_goes_on_to_the_same_weights(
    make: Callable[[], RelevanceModel], place: Any, function: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = make().fit(QUERIES, CORPUS, seed=1)
    monkeypatch.setattr(Checkpoint, "maybe_save", Checkpoint.save)  # after every step, not every half minute
    with monkeypatch.context() as patch:
        patch.setattr(place, function, breaks_at(6, getattr(place, function)))
        with pytest.raises(CutOff):
            make().fit(QUERIES, CORPUS, seed=1, checkpoint=tmp_path / "c")
    with monkeypatch.context() as patch:
        patch.setattr(place, function, breaks_at(4, getattr(place, function)))  # three steps are left
        resumed = make().fit(QUERIES, CORPUS, seed=1, checkpoint=tmp_path / "c")
    assert [r["step"] for r in resumed.log.records] == list(range(1, 9))
    assert resumed.card == whole.card
    for name, tensor in weights(whole).items():
        assert torch.equal(tensor, weights(resumed)[name]), name
    with pytest.raises(UserError, match="checkpoint of another run"):
        make().fit(QUERIES, CORPUS, seed=2, checkpoint=tmp_path / "c")


def test_each_learning_rate_has_a_checkpoint_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that diverged and was cut off at the lower rate goes on there."""
    monkeypatch.setattr(Checkpoint, "maybe_save", Checkpoint.save)
    usual = RMTPP.loss

    def diverging(cut: int | None) -> Callable[..., Any]:
        rates = []

        def loss(self: RMTPP, task: Any) -> Callable[[int], torch.Tensor]:
            rates.append(len(rates))
            of_step = usual(self, task)

            def of(step: int) -> torch.Tensor:
                if len(rates) == 1 and step == 3:
                    raise DivergenceError("the loss rose")
                if len(rates) == 2 and step == cut:
                    raise CutOff
                return of_step(step)

            return of

        return loss

    monkeypatch.setattr(RMTPP, "loss", diverging(None))
    whole = RMTPP(steps=6).fit(QUERIES, CORPUS)
    monkeypatch.setattr(RMTPP, "loss", diverging(4))
    with pytest.raises(CutOff):
        RMTPP(steps=6).fit(QUERIES, CORPUS, checkpoint=tmp_path / "c")
    assert sorted(folder.name for folder in (tmp_path / "c").iterdir()) == ["rate_1", "rate_3"]
    monkeypatch.setattr(RMTPP, "loss", diverging(None))
    resumed = RMTPP(steps=6).fit(QUERIES, CORPUS, checkpoint=tmp_path / "c")
    assert resumed.card == whole.card
    assert len(resumed.log.records) == 6
    for name, tensor in weights(whole).items():
        assert torch.equal(tensor, weights(resumed)[name]), name
