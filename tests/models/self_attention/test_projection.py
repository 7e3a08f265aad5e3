from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from naive import models as naive
from neuroseqret.models.self_attention.projection import Projection


def test_one_member_is_the_plain_network():
    torch.manual_seed(0)
    projection = Projection(5, hidden=7, dimension=3).eval()
    plain = nn.Sequential(nn.Linear(5, 7), nn.ReLU(), nn.Linear(7, 3))
    plain[0].weight.data, plain[0].bias.data = projection.first[0].T, projection.first_bias[0, 0]
    plain[2].weight.data, plain[2].bias.data = projection.second[0].T, projection.second_bias[0, 0]
    vectors = torch.randn(4, 5)
    torch.testing.assert_close(projection(vectors), nn.functional.normalize(plain(vectors), dim=1))


@pytest.mark.parametrize("kind", ["none", "linear", "mlp"])
@pytest.mark.parametrize("members", [1, 3])
def test_rows_are_unit_and_scores_are_mean_cosines(kind, members):
    torch.manual_seed(0)
    projection = Projection(6, kind, hidden=8, dimension=4, members=members).eval()
    vectors = torch.randn(5, 6)
    rows = projection(vectors)
    assert rows.shape == (5, projection.dimension)
    torch.testing.assert_close(rows.norm(dim=1), torch.ones(5))
    parts = projection.parts(vectors)
    torch.testing.assert_close(rows @ rows.T, (parts @ parts.transpose(1, 2)).mean(0))


@pytest.mark.parametrize("kind", ["linear", "mlp"])
def test_embeddings_are_the_naive_ones(kind):
    torch.manual_seed(1)
    projection = Projection(6, kind, hidden=8, dimension=4, members=3).eval().requires_grad_(False)
    vectors = torch.randn(5, 6)
    slow = [naive.projection(projection, vector.numpy()) for vector in vectors]
    np.testing.assert_allclose(projection(vectors).numpy(), slow, rtol=1e-4, atol=1e-6)
