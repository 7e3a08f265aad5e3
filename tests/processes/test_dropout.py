from __future__ import annotations

import pytest
import torch

from neuroseqret.processes.dropout import Dropout, dropout


@pytest.mark.parametrize("share", [0.1, 0.2, 0.5])
def test_share_and_mean(share):
    values = dropout(torch.ones(400, 500), share)
    assert (values == 0).float().mean().item() == pytest.approx(share, abs=0.01)
    assert values.mean().item() == pytest.approx(1.0, abs=0.01)


def test_torch_seeds_it_and_calls_differ():
    runs = []
    for _ in range(2):
        torch.manual_seed(3)
        runs.append((dropout(torch.ones(64), 0.5), dropout(torch.ones(64), 0.5)))
    assert torch.equal(runs[0][0], runs[1][0])
    assert torch.equal(runs[0][1], runs[1][1])
    assert not torch.equal(*runs[0])


def test_nothing_happens_outside_training_or_without_a_share():
    values = torch.randn(50)
    assert Dropout(0.5).eval()(values) is values
    assert dropout(values, 0.0) is values


def test_the_gradient_passes_where_the_value_did():
    values = torch.ones(100, requires_grad=True)
    kept = dropout(values, 0.3)
    kept.sum().backward()
    assert torch.equal(values.grad, kept.detach())
