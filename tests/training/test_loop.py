from __future__ import annotations

import json
import time

import pytest
import torch
from torch import nn

from neuroseqret.errors import UserError
from neuroseqret.training import budget
from neuroseqret.training.checkpoint import Checkpoint
from neuroseqret.training.log import TrainingLog
from neuroseqret.training.loop import LoopSettings, train


def model() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Dropout(0.1), nn.Linear(8, 1))


def regression(module: nn.Module, fail_at: int | None = None):
    """Noisy regression whose noise comes from the loop's own generator."""

    def loss(step: int) -> torch.Tensor:
        if step == fail_at:
            raise KeyboardInterrupt
        x = torch.randn(32, 4)
        return ((module(x)[:, 0] - x.sum(1)) ** 2).mean()

    return loss


def weights(module: nn.Module) -> torch.Tensor:
    return torch.cat([p.detach().flatten() for p in module.parameters()])


def test_it_learns_and_same_seed_gives_same_weights():
    runs = []
    for seed in (1, 1, 2):
        module = model()
        log = TrainingLog()
        train(module, regression(module), LoopSettings(steps=60, learning_rate=0.03), seed=seed, log=log)
        assert log.records[-1]["loss"] < log.records[0]["loss"] / 3
        runs.append(weights(module))
    assert torch.equal(runs[0], runs[1])
    assert not torch.equal(runs[0], runs[2])


def test_the_callers_random_generator_is_left_alone():
    module = model()
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    train(module, regression(module), LoopSettings(steps=3))
    assert torch.equal(torch.rand(3), expected)


def test_the_best_weights_are_kept():
    module, seen = model(), []

    def validate() -> float:
        value = [0.1, 0.9, 0.3, 0.2][len(seen)]
        seen.append(weights(module).clone())
        return value

    settings = LoopSettings(steps=8, evaluations=4)
    result = train(module, regression(module), settings, validate=validate)
    assert result.best == 0.9
    assert torch.equal(weights(module), seen[1])
    assert not module.training


def test_patience_stops_early():
    module = model()
    settings = LoopSettings(steps=100, evaluations=20, patience=2)
    result = train(module, regression(module), settings, validate=lambda: 0.0)
    assert result.steps == 15


def test_without_a_number_of_steps_patience_ends_it_at_a_constant_rate():
    module, log, values = model(), TrainingLog(), iter([0.1, 0.5, 0.4, 0.3, 0.2])
    settings = LoopSettings(steps=None, every=7, patience=2)
    result = train(module, regression(module), settings, validate=lambda: next(values), log=log)
    assert (result.steps, result.best) == (28, 0.5)
    assert {record["rate"] for record in log.records} == {settings.learning_rate}
    assert [record["step"] for record in log.records if "validation" in record] == [7, 14, 21, 28]


def test_a_drop_goes_back_to_the_best_weights_and_lowers_the_rate():
    module, log, values = model(), TrainingLog(), iter([0.1, 0.5, 0.4, 0.3, 0.2, 0.6, 0.5, 0.4, 0.3, 0.2])
    seen = []

    def validate():
        seen.append([p.detach().clone() for p in module.parameters()])
        return next(values)

    settings = LoopSettings(steps=None, every=5, patience=2, drops=1)
    result = train(module, regression(module), settings, validate=validate, log=log)
    # 0.5 is best; two worse ones are a drop. 0.6 is best after it; two worse ones are the end.
    assert (result.steps, result.best) == (40, 0.6)
    rates = [record["rate"] for record in log.records]
    assert rates[:20] == [settings.learning_rate] * 20
    assert rates[20:] == pytest.approx([settings.learning_rate / 3] * 20)
    for kept, best in zip(module.parameters(), seen[5], strict=True):
        torch.testing.assert_close(kept, best)


def test_without_validation_the_loss_ends_it():
    module = model()
    result = train(module, regression(module), LoopSettings(steps=None, every=10, patience=3, learning_rate=0.03))
    assert 30 < result.steps < 5000


def test_something_must_end_a_phase():
    with pytest.raises(ValueError, match="there must be a patience"):
        LoopSettings(steps=None)


def test_a_budget_is_kept_and_the_rate_still_falls_to_its_end():
    module, log = model(), TrainingLog()
    settings = LoopSettings(steps=10_000_000, max_seconds=0.5)
    result = train(module, regression(module), settings, log=log, validate=lambda: 1.0)
    assert result.seconds < 1.5
    assert result.steps > 20
    assert log.records[-1]["rate"] < 0.05 * settings.learning_rate
    assert "validation" in log.records[-1]


def test_a_run_that_was_cut_off_goes_on_as_if_it_had_not_been(tmp_path):
    settings = LoopSettings(steps=20, evaluations=4)
    values = iter([0.5, 0.9, 0.1, 0.2] * 2)

    def run(module, fail_at=None, folder=None):
        checkpoint = Checkpoint(folder, "run", every_seconds=0) if folder else None
        loss = regression(module, fail_at)
        return train(module, loss, settings, validate=lambda: next(values), checkpoint=checkpoint)

    whole = model()
    run(whole)
    with pytest.raises(KeyboardInterrupt):
        run(model(), fail_at=12, folder=tmp_path)
    resumed = model()
    result = run(resumed, folder=tmp_path)
    assert torch.equal(weights(resumed), weights(whole))
    assert result.best == 0.9
    again = model()
    assert run(again, fail_at=0, folder=tmp_path).steps == 20  # a finished phase is not run again
    assert torch.equal(weights(again), weights(whole))


def test_a_checkpoint_of_another_run_or_a_damaged_one_is_refused(tmp_path):
    module = model()
    train(module, regression(module), LoopSettings(steps=2), checkpoint=Checkpoint(tmp_path, "one"))
    with pytest.raises(UserError, match="another run"):
        train(module, regression(module), LoopSettings(steps=2), checkpoint=Checkpoint(tmp_path, "two"))
    (tmp_path / "train.safetensors").write_bytes(b"broken")
    with pytest.raises(UserError, match="damaged checkpoint"):
        train(module, regression(module), LoopSettings(steps=2), checkpoint=Checkpoint(tmp_path, "one"))


def test_nan_stops_with_place_and_advice():
    module = model()

    def loss(step: int) -> torch.Tensor:
        value = regression(module)(step)
        return value * torch.nan if step == 3 else value

    with pytest.raises(UserError, match=r"phase 'joint' at step 4: loss nan.*lower learning rate.*now 0.003"):
        train(module, loss, LoopSettings(steps=10), phase="joint")


def test_divergence_stops():
    module = model()
    with pytest.raises(UserError, match="the loss rose from"):
        train(module, lambda step: regression(module)(step) * 10.0**step, LoopSettings(steps=50))


def test_one_extreme_batch_is_no_divergence():
    module = model()
    result = train(module, lambda step: regression(module)(step) * (1e9 if step == 20 else 1.0), LoopSettings(steps=40))
    assert result.steps == 40


def test_a_jump_in_the_first_steps_that_goes_down_again_is_no_divergence():
    module = model()
    jump = {0: 1.0, 1: 1e4, 2: 1e4, 3: 1e3}
    result = train(module, lambda step: regression(module)(step) * jump.get(step, 10.0), LoopSettings(steps=40))
    assert result.steps == 40


def test_log_files():
    module, log = model(), TrainingLog()
    train(module, regression(module), LoopSettings(steps=5), log=log, validate=lambda: 0.5)
    files = log.files()
    records = [json.loads(line) for line in files["training.jsonl"].splitlines()]
    assert [r["step"] for r in records] == [1, 2, 3, 4, 5]
    assert records[-1]["validation"] == 0.5
    assert files["training.png"].startswith(b"\x89PNG")
    assert TrainingLog().files() == {}


def test_a_budget_of_processor_time_does_not_run_while_others_compute():
    begun = budget.now()
    time.sleep(0.2)
    assert budget.now() - begun >= 0.2
    with budget.of_processor_time():
        begun = budget.now()
        time.sleep(0.2)
        assert budget.now() - begun < 0.15


def test_the_axis_of_a_share_ends_at_one() -> None:
    log = TrainingLog()
    for step, validation in enumerate((0.4, 0.9, 1.0), 1):
        log.add({"phase": "head", "step": step, "loss": 1.0 / step, "validation": validation})
    _, right = log.figure().axes
    low, high = right.get_ylim()
    assert 0 <= low < 0.4
    assert high == 1.0


def test_training_curves_say_what_they_show() -> None:
    """Titles name what is trained and how to read it, fit into their panels, and a single step is a point."""
    log = TrainingLog()
    log.add({"phase": "selection", "step": 1, "loss": 2.0, "seconds": 1.0})
    log.add({"phase": "head", "step": 1, "loss": 2.0, "seconds": 3.0, "validation": 0.5})
    figure = log.figure()
    figure.canvas.draw()
    assert figure.get_suptitle().startswith("Has it learned? The loss should fall, validation should rise")
    assert [axes.get_title() for axes in figure.axes[:2]] == [
        "the weights of members: 1 step, 1 s",
        "the metric: 1 step, 3 s",
    ]
    assert all(axes.lines[1].get_marker() == "o" for axes in figure.axes[:2])
    drawn, (width, height) = figure.get_tightbbox(), figure.get_size_inches()
    assert (drawn.x0 >= 0, drawn.x1 <= width, drawn.y1 <= height) == (True, True, True)
