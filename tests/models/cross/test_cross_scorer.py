"""The kernel of query-conditioned Fisher vectors, its gradient, and the pairs that it is trained on."""

from __future__ import annotations

import numpy as np
import torch

from naive.cross_data import fitted, small_set
from neuroseqret.data.batching import pad
from neuroseqret.models.cross.cross_scorer import CrossScorer
from neuroseqret.models.cross.cross_scorer_fitting import CrossScorerFitting
from neuroseqret.models.cross.presets import cross_settings_of
from neuroseqret.models.cross.ranked_lists import rank
from neuroseqret.training.task import TrainingTask


def literal() -> CrossScorer:
    made = fitted("paper-literal").correction.scorer
    assert made is not None
    return made


def test_kernel_lies_between_minus_one_and_one() -> None:
    queries, corpus = small_set()
    model = literal()
    with torch.no_grad():
        pairs = model.pairs(model.unwarped(pad(queries[:1])), pad(corpus[:50]))
        kernel = model.kernel(pairs)
    assert kernel.shape == (1, 50)
    assert float(kernel.abs().max()) <= 1 + 1e-5


def test_gradient_is_that_of_autograd() -> None:
    queries, corpus = small_set()
    model = literal()
    pairs = model.pairs(model.unwarped(pad(queries[:1])), pad(corpus[3:4]))
    heads = model.process.heads
    total = heads.log_likelihood(pairs.inputs, pairs.states.flatten(0, 1), survival=False)
    gap_w, gap_b, mark_w, mark_b = torch.autograd.grad(
        total.sum(), [heads.gap.weight, heads.gap.bias, heads.mark.weight, heads.mark.bias]
    )
    by_row = torch.cat([torch.cat([gap_w, gap_b[:, None]], 1), torch.cat([mark_w, mark_b[:, None]], 1)])
    from neuroseqret.processes import fisher

    found = fisher.score(heads, pairs.inputs, pairs.states.flatten(0, 1), survival=False, clip=None)
    torch.testing.assert_close(found[0], by_row.flatten(), rtol=1e-4, atol=1e-4)


def test_paper_draws_a_hundred_negatives_and_none_of_them_is_relevant() -> None:
    model, task = fitted("paper"), TrainingTask.of(*small_set(), needs_labels=True)
    rows = task.answerable_train_rows
    lists = rank(np.zeros((len(rows), len(task.corpus)), np.float32), rows, task.relevance, 10)
    settings = cross_settings_of("paper", {}).process
    fitting = CrossScorerFitting(model.correction.scorer, settings, task, lists, lists)
    for step in range(5):
        drawn = fitting.drawn(step)
        assert drawn.candidates.shape == (settings.queries, 101)
        assert len(drawn.pseudo) == settings.queries // 2
        groups = task.corpus.groups.to_numpy(zero_copy_only=False)
        of_queries = task.queries.groups.to_numpy(zero_copy_only=False)[drawn.queries]
        anchors = np.concatenate([of_queries, groups[drawn.pseudo]])
        np.testing.assert_array_equal(anchors[:, None] == groups[drawn.candidates], drawn.truth)
        assert drawn.truth.sum(1).tolist() == [1] * settings.queries
        itself = drawn.candidates[len(drawn.queries) :] == drawn.pseudo[:, None]
        np.testing.assert_array_equal(itself, drawn.ignore[len(drawn.queries) :])
