"""The members of the metric: what they see, what they weigh, and those in closed form."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from neuroseqret.models import plain_metric
from neuroseqret.models.fixed_features import Layout
from neuroseqret.models.presets import MemberSettings, ProjectionSettings
from neuroseqret.models.self_attention import group_probabilities, products
from neuroseqret.models.self_attention.closed_form import fit_discriminant, fit_whitened, principal_directions
from neuroseqret.models.self_attention.metric import Metric
from neuroseqret.models.self_attention.projection import Projection

LAYOUT = Layout({"positions": 2, "bank": 4, "markov": 3, "process": 0})
MEMBERS = (
    MemberSettings(sees=("bank", "markov")),
    MemberSettings(sees=("positions", "bank", "markov", "process")),
    MemberSettings(kind="discriminant", sees=("markov",)),
)
SETTINGS = ProjectionSettings(hidden=6, dimension=5, members=MEMBERS)


def test_the_score_is_the_weighted_mean_of_the_members_cosines():
    torch.manual_seed(0)
    metric = Metric(LAYOUT, SETTINGS, [2.0, 1.0, 1.0]).eval()
    vectors = torch.randn(7, 9)
    embedded = metric(vectors)
    assert embedded.shape == (7, metric.dimension) == (7, 15)
    torch.testing.assert_close(embedded.norm(dim=1), torch.ones(7))
    slow = torch.zeros(7, 7)
    for weight, (begin, end), projection in zip(
        (0.5, 0.25, 0.25), ((2, 9), (0, 9), (6, 9)), metric.projections.values(), strict=True
    ):
        unit = projection(vectors[:, begin:end])
        slow += weight * unit @ unit.T
    torch.testing.assert_close(embedded @ embedded.T, slow)


def test_a_member_of_weight_0_is_left_out_and_a_saved_metric_comes_back():
    metric = Metric(LAYOUT, SETTINGS, [1.0, 0.0, 3.0])
    assert list(metric.projections) == ["0", "2"]
    state = metric.state_dict()
    again = Metric(LAYOUT, SETTINGS, state["weights"].tolist())
    again.load_state_dict(state)
    vectors = torch.randn(3, 9)
    torch.testing.assert_close(again.eval()(vectors), metric.eval()(vectors))


def test_the_discriminant_finds_the_direction_that_tells_groups_apart():
    rng = np.random.default_rng(0)
    groups = torch.arange(400) % 4
    vectors = torch.from_numpy(rng.normal(size=(400, 6))).float()
    vectors[:, 3] *= 10  # loud, but the same in all groups
    vectors[:, 1] += 2 * groups
    projection = Projection(6, "linear", dimension=3, dropout_share=0.0)
    fit_discriminant(projection, None, vectors, groups, ridge=1e-3)
    first = projection.first[0, :, 0].detach().numpy()
    assert abs(first[1]) / np.linalg.norm(first) > 0.99
    with torch.no_grad():
        inner = vectors @ projection.first[0] + projection.first_bias[0]
    np.testing.assert_allclose(inner.mean(0), 0, atol=1e-3)


def test_the_logits_of_the_discriminant_are_those_of_gaussian_groups_at_temperature_2():
    rng = np.random.default_rng(5)
    groups = np.arange(90) % 3
    vectors = rng.normal(size=(90, 4)) + groups[:, None] * [1.0, 0.0, -0.5, 0.0] + 3.0
    classifier = nn.Linear(4, 4)  # one group more than there are vectors of
    projection = Projection(4, "linear", dimension=2, dropout_share=0.0)
    fit_discriminant(projection, classifier, torch.from_numpy(vectors).float(), torch.from_numpy(groups), ridge=0.5)
    total = np.cov(vectors.T, bias=True)
    means = np.stack([vectors[groups == g].mean(0) for g in range(3)])
    within = sum(np.cov(vectors[groups == g].T, bias=True) for g in range(3)) / 3
    inverse = np.linalg.inv(within + 0.5 * np.trace(total) / 4 * np.eye(4))
    slow = np.stack([-(v - means) @ inverse @ (v - means).T for v in vectors[:5]]).diagonal(axis1=1, axis2=2) / 4
    with torch.no_grad():
        fast = classifier(torch.from_numpy(vectors[:5]).float()).numpy()
    np.testing.assert_allclose(fast[:, :3] - fast[:, :1], slow - slow[:, :1], atol=1e-4)
    assert (fast[:, 3] < fast[:, :3].min(1) - 10).all()


def test_the_member_of_groups_scores_the_probability_that_both_are_of_one_group():
    torch.manual_seed(0)
    members = (*MEMBERS, MemberSettings(kind="groups", weight=4.0))
    metric = Metric(LAYOUT, SETTINGS.model_copy(update={"members": members}), groups=3).eval()
    vectors = torch.randn(7, 9)
    asked, shown = metric(vectors, "query"), metric(vectors)
    assert shown.shape == (7, metric.dimension) == (7, 19)
    for embedded in (asked, shown):
        torch.testing.assert_close(embedded.norm(dim=1), torch.ones(7))
    hidden = [torch.relu(vectors[:, b:] @ p.first[0] + p.first_bias[0]) for b, p in
              zip((2, 0), list(metric.projections.values())[:2], strict=True)]  # fmt: skip
    seen = [*hidden, vectors[:, 6:9]]
    each = [metric.groups.classifier(k)(x).softmax(1) for k, x in enumerate(seen)]
    p = sum(each) / 3
    torch.testing.assert_close(asked[:, 15:] @ shown[:, 15:].T, 4 / 7 * (p / p.norm(dim=1, keepdim=True)) @ p.T)
    torch.testing.assert_close(metric.as_query(shown), asked)


def test_probabilities_of_many_groups_keep_the_directions_that_matter():
    torch.manual_seed(0)
    groups, kept = 300, group_probabilities.KEPT
    members = (*MEMBERS, MemberSettings(kind="groups", weight=4.0))
    metric = Metric(LAYOUT, SETTINGS.model_copy(update={"members": members}), groups=groups).eval()
    vectors = torch.randn(400, 9)
    metric.fit_directions(vectors, seed=0)
    asked, shown = metric(vectors, "query"), metric(vectors)
    assert shown.shape == (400, metric.dimension) == (400, 15 + kept + 1)
    seen = {m.number: m.both(vectors)[1] for m in metric.members() if m.tells_groups}
    p = metric.groups.mean(seen).detach()
    assert p.shape == (400, groups)
    scores = (4 / 7 * p @ p.T / p.norm(dim=1, keepdim=True)).numpy()
    found = (asked[:, 15:] @ shown[:, 15:].T).detach().numpy()
    # No matrix of this rank is nearer to the probabilities than that of their first singular vectors.
    best = torch.linalg.svdvals(p)[kept:].square().sum().sqrt()
    lost = (p - p @ metric.groups.directions @ metric.groups.directions.T).norm()
    assert lost <= 1.05 * best + 1e-5
    np.testing.assert_allclose(found, scores, atol=1e-4)
    torch.testing.assert_close(metric.as_query(shown), asked)


def test_without_groups_their_member_is_left_out():
    members = (*MEMBERS, MemberSettings(kind="groups", weight=4.0))
    metric = Metric(LAYOUT, SETTINGS.model_copy(update={"members": members}), groups=0)
    assert metric.groups is None
    torch.testing.assert_close(metric.weights, torch.tensor([1 / 3, 1 / 3, 1 / 3, 0.0]))


@pytest.mark.parametrize("number", [2, 3])
def test_fewer_groups_than_dimensions_leave_dimensions_at_0(number):
    rng = np.random.default_rng(1)
    projection = Projection(6, "linear", dimension=5, dropout_share=0.0)
    vectors = torch.from_numpy(rng.normal(size=(60, 6))).float()
    fit_discriminant(projection, None, vectors, torch.arange(60) % number, ridge=1.0)
    assert projection.first[0, :, : number - 1].any()
    assert not projection.first[0, :, number - 1 :].any()


def test_whitening_keeps_cosines_where_it_keeps_all_dimensions():
    vectors = np.random.default_rng(2).normal(size=(50, 6)).astype(np.float32)
    projection = Projection(6, "linear", dimension=6, dropout_share=0.0)
    fit_whitened(projection, torch.from_numpy(vectors), principal_directions(torch.from_numpy(vectors)))
    centred = vectors - vectors.mean(0)
    centred /= np.linalg.norm(centred, axis=1, keepdims=True)
    with torch.no_grad():
        unit = projection.eval()(torch.from_numpy(vectors)).numpy()
    np.testing.assert_allclose(unit @ unit.T, centred @ centred.T, atol=1e-4)


def test_where_torch_has_no_product_of_onednn_numpy_multiplies(monkeypatch):
    x, matrix, bias = (np.random.default_rng(0).normal(size=shape).astype(np.float32) for shape in ((9, 4), (4, 3), 3))
    expected = x @ matrix + bias
    np.testing.assert_allclose(products.many_rows(x, matrix, bias), expected, atol=1e-6)
    monkeypatch.setattr(products, "_LINEAR", None)
    np.testing.assert_array_equal(products.many_rows(x, matrix, bias), expected)


@pytest.mark.parametrize("product", [plain_metric.many_rows, products.many_rows])
@pytest.mark.parametrize("rows", [3, 40])
def test_without_gradients_it_computes_the_same(product, rows):
    torch.manual_seed(0)
    kinds = ("mlp", "discriminant", "whitened", "groups")
    members = (*(MemberSettings(kind=kind) for kind in kinds), MemberSettings(kind="linear", sees=("markov",)))
    settings = ProjectionSettings(members=members, hidden=9, dimension=5)
    metric = Metric(LAYOUT, settings, groups=4).eval()
    arrays = {name: tensor.numpy() for name, tensor in metric.state_dict().items()}
    vectors = torch.randn(rows, LAYOUT.size)
    plain = plain_metric.PlainMetric(arrays, settings, LAYOUT, product)
    for role in ("query", "corpus"):
        np.testing.assert_allclose(plain(vectors.numpy(), role), metric(vectors, role).detach(), atol=1e-5)
