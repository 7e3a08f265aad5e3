"""Numbers: finite scores or one clear error for every valid input; results depend on nothing but the two sequences."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch

from golden.golden_data import golden_data
from golden.golden_figures import fitted
from neuroseqret.data.sequences import EventSequences
from neuroseqret.errors import UserError
from neuroseqret.methods.registry import BASELINES
from neuroseqret.models.base import Embedder

NAMES = ["self", "cross", "hash-cross", *BASELINES]
EXTREMES = {
    "one event": [0.0],
    "one event, late": [1e300],
    "no gaps": [5.0] * 40,
    "huge": [0.0, 1.0, 1e150, 1e300],
    "negative": [-1e300, 0.0],
    "widest": [-1.7e308, 1.7e308],
    "tiny": [0.0, 5e-324, 1e-300, 1e-30],
    "both": [0.0, 1e-300, 1.0, 1e300],
}


def sequences(rows: list[list[float]]) -> EventSequences:
    return EventSequences.from_lists(
        [(times, [at % 4 for at in range(len(times))]) for times in rows],
        ids=[f"x{at}" for at in range(len(rows))],
        mark_names=("a", "b", "c", "d"),
        time_unit="seconds",
    )


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.filterwarnings("ignore")
def test_scores_of_extremes_are_finite_or_one_line(name: str) -> None:
    _, corpus = golden_data()
    for what, times in EXTREMES.items():
        odd = sequences([times])
        for ask in (
            lambda odd=odd: fitted(name).score(odd, corpus[:3]),
            lambda odd=odd: fitted(name).score(corpus[:2], odd),
        ):
            try:
                scores = ask()
            except UserError as error:
                scores = np.zeros(1)
                told = str(error)
            else:
                told = ""
            assert "\n" not in told
            assert np.isfinite(scores).all(), f"{name}: {what}"


EMBEDDERS = ("self", "histogram", "histogram-metric", "gru", "thp", "rank-rmtpp")


@pytest.mark.parametrize("name", EMBEDDERS)
def test_embeddings_do_not_depend_on_batch_order_or_threads(name: str) -> None:
    _, corpus = golden_data()
    model = fitted(name)
    assert isinstance(model, Embedder)
    whole = model.embed(corpus)
    order = np.random.default_rng(0).permutation(len(corpus))
    np.testing.assert_allclose(model.embed(corpus[order]), whole[order], atol=2e-6)
    np.testing.assert_allclose(
        np.concatenate([model.embed(corpus[at : at + 7]) for at in range(0, len(corpus), 7)]), whole, atol=2e-6
    )
    np.testing.assert_allclose(np.stack([model.embed(one)[0] for one in corpus[:5]]), whole[:5], atol=2e-6)
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(1 if before > 1 else 2)
        np.testing.assert_allclose(model.embed(corpus), whole, atol=2e-6)
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize("name", NAMES)
def test_scores_do_not_depend_on_batch_or_order_and_threads_may_share_a_model(name: str) -> None:
    queries, corpus = golden_data()
    queries, corpus, model = queries[:3], corpus[:8], fitted(name)
    whole = model.score(queries, corpus)
    near = {"rtol": 1e-4, "atol": 1e-5 * float(np.abs(whole).max())}
    order = np.array([5, 2, 7, 0, 1, 6, 3, 4])
    np.testing.assert_allclose(model.score(queries, corpus[order]), whole[:, order], **near)
    with ThreadPoolExecutor(32) as threads:
        alone = [threads.submit(model.score, queries[at % 3], corpus[at % 8 : at % 8 + 1]) for at in range(48)]
    for at, one in enumerate(alone):
        np.testing.assert_allclose(np.ravel(one.result()), whole[at % 3, at % 8], **near)


@pytest.mark.parametrize("name", ["histogram", "self"])
def test_a_sequence_of_a_million_events_has_a_finite_embedding(name: str) -> None:
    rng = np.random.default_rng(0)
    number = 1_000_000
    long = EventSequences.from_arrays(
        np.cumsum(rng.exponential(1, number)), rng.integers(0, 4, number), [0, number], mark_names=("a", "b", "c", "d")
    )
    model = fitted(name)
    assert isinstance(model, Embedder)
    assert np.isfinite(model.embed(long)).all()
