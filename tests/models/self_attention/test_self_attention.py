"""SelfAttention as a whole: invariances, awkward sequences, the model folder, what it learns from."""

from __future__ import annotations

import copy

import numpy as np
import pyarrow as pa
import pytest
import torch

import neuroseqret.models.self_attention.model as module
from naive import models as naive
from naive.random_sequences import random_sequences
from neuroseqret import methods
from neuroseqret.data.batching import pad
from neuroseqret.data.relevance import Relevance
from neuroseqret.data.sequences import EventSequences
from neuroseqret.errors import UserError
from neuroseqret.measures.ranking_measures import mean_average_precision
from neuroseqret.models import fixed_features
from neuroseqret.models.card import ModelState
from neuroseqret.models.model_folder import read_state, write_state
from neuroseqret.models.self_attention.model import SelfAttention
from neuroseqret.processes.time_scale import Inputs
from rhythms import CORPUS, PAPER, QUERIES, SMALL

GPUS = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
DEVICES = ["cpu", *(name for name, found in GPUS.items() if found)]  # a machine with a GPU tests it, too


@pytest.fixture(scope="module")
def model() -> SelfAttention:
    return SelfAttention(**SMALL).fit(QUERIES, CORPUS, seed=1)


@pytest.fixture(scope="module")
def neural() -> SelfAttention:
    return SelfAttention("neural", **SMALL).fit(QUERIES, CORPUS, seed=1)


@pytest.fixture(scope="module")
def paper() -> SelfAttention:
    return SelfAttention("paper-health", **PAPER).fit(QUERIES, CORPUS, seed=1)


@pytest.fixture(scope="module")
def literal() -> SelfAttention:
    return SelfAttention("paper-literal-health", **PAPER).fit(QUERIES, CORPUS, seed=1)


def test_it_learns_what_is_easy(model):
    test = np.array(QUERIES.column("split").to_pylist()) == "test"
    scores = model.score(QUERIES[test], CORPUS)
    assert mean_average_precision(scores, Relevance.from_groups(QUERIES[test], CORPUS)) > 0.8
    assert model.card.validation["AP"] > 0.8


@pytest.mark.parametrize("which", ["model", "neural", "paper", "literal"])
def test_embeddings_are_unit_and_kappa_is_a_cosine(which, request):
    trained = request.getfixturevalue(which)
    rows = trained.embed(CORPUS)
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-5)
    kappa = rows @ rows.T
    assert np.abs(kappa).max() <= 1 + 1e-5
    np.testing.assert_allclose(np.diag(kappa), 1, atol=1e-5)


def test_the_score_is_kappa_and_gamma_sim_pair_by_pair(paper):
    queries, corpus = QUERIES[:3], CORPUS[:4]
    asked, shown = paper.embed(queries, "query"), paper.embed(corpus)
    scores, moved = paper.score(queries, corpus), paper.unwarped(pad(queries), "query")
    starts = corpus.observed()[0]
    for q in range(3):
        for c in range(4):
            times, n = corpus[c].times - starts[c], int(queries.lengths[q])
            mine = moved.times[q, :n].detach().numpy(), queries[q].marks, float(moved.spans[q].detach())
            theirs = times, corpus[c].marks, float(corpus.observed()[1][c] - starts[c])
            distance = naive.deltas(*mine, *theirs, True, paper.horizon)
            expected = naive.relevance(asked[q], shown[c], paper.settings.similarity.gamma, *distance)
            assert scores[q, c] == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("which", ["model", "neural", "paper", "literal"])
def test_padding_batching_order_and_neighbours_do_not_matter(which, request, monkeypatch):
    trained = request.getfixturevalue(which)
    sequences = random_sequences(4, number=30, marks=4, longest=40)
    whole = trained.score(sequences, CORPUS)
    order = np.random.default_rng(0).permutation(30)
    np.testing.assert_allclose(trained.score(sequences[order], CORPUS), whole[order], atol=1e-5)
    np.testing.assert_allclose(trained.score(sequences, CORPUS[::3]), whole[:, ::3], atol=1e-5)
    np.testing.assert_allclose(trained.score(sequences[7], CORPUS[5:6]), whole[7, 5:6], atol=1e-5)
    monkeypatch.setattr(module, "MAX_EVENTS", 40)
    monkeypatch.setattr(module, "TOGETHER", 7)
    monkeypatch.setattr(fixed_features, "TOGETHER", 4)
    np.testing.assert_allclose(trained.score(sequences, CORPUS), whole, atol=1e-5)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("which", ["model", "neural", "paper", "literal"])
def test_the_device_does_not_matter(which, device, request, tmp_path):
    trained = request.getfixturevalue(which)
    moved = methods.load(trained.save(tmp_path / "m")).to(device)
    assert moved.device.type == device
    long = random_sequences(6, number=5, marks=4, longest=40)
    for sequences in (QUERIES, long):
        np.testing.assert_allclose(moved.score(sequences, CORPUS), trained.score(sequences, CORPUS), atol=1e-5)
    again = methods.load(moved.save(tmp_path / "again"))
    np.testing.assert_array_equal(again.embed(CORPUS), trained.embed(CORPUS))


def test_the_network_stays_on_its_device(neural):
    """Tensors on torch's "meta" device cannot be mixed with CPU tensors, so a tensor made on the CPU is an error."""
    inputs = neural.scale.inputs(pad(CORPUS)).to("meta")
    short = Inputs(*(x[:, :8] if x.ndim > 1 else x for x in vars(inputs).values()))
    network = copy.deepcopy(neural.network).to("meta")
    fixed = torch.zeros(len(CORPUS), neural.markov.size + neural.bank.size, device="meta")
    embedded = network.metric(network.vector(network.raw(short), fixed))
    assert embedded.device.type == "meta"
    assert embedded.shape == (len(CORPUS), neural.dimension)


def test_one_sequence_or_many(model):
    assert model.score(QUERIES[0], CORPUS).shape == (80,)
    assert model.score([QUERIES[0], QUERIES[1]], CORPUS).shape == (2, 80)
    assert model.embed(QUERIES[0]).shape == (1, model.dimension)
    assert model.embed([]).shape == (0, model.dimension)


def test_a_shift_of_the_clock_changes_nothing(model):
    moved = EventSequences.from_arrays(CORPUS.times + 1024.0, CORPUS.marks, CORPUS.offsets)
    np.testing.assert_allclose(model.embed(moved), model.embed(CORPUS), atol=2e-4)


@pytest.mark.parametrize("which", ["model", "neural", "paper", "literal"])
@pytest.mark.parametrize(
    ("times", "marks"),
    [
        ([3.0], [0]),
        ([3.0] * 5, [0, 1, 2, 3, 0]),
        ([0.0, 1e12, 2e12], [0, 1, 2]),
        ([0.0, 1e-9, 2e-9], [0, 1, 2]),
        ([1e12, 1e12 + 1, 1e12 + 2], [0, 1, 2]),
        ([0.0, 1.0, 2.0], [4, 1000, 7]),
        (np.arange(50_000.0), np.arange(50_000) % 4),
    ],
    ids=["one event", "ties", "far apart", "near", "late clock", "unseen marks", "50000 events"],
)
def test_awkward_sequences_have_finite_scores(which, times, marks, request):
    trained = request.getfixturevalue(which)
    strange = EventSequences.from_lists([(times, marks)])
    assert np.isfinite(trained.score(strange, CORPUS[:5], unknown_marks="keep")).all()
    assert np.isfinite(trained.score(QUERIES[:2], strange, unknown_marks="keep")).all()


def test_same_seed_same_weights_and_the_callers_generator_is_left_alone(model):
    torch.manual_seed(9)
    expected = torch.rand(2)
    torch.manual_seed(9)
    again = SelfAttention(**SMALL).fit(QUERIES, CORPUS, seed=1)
    assert torch.equal(torch.rand(2), expected)
    np.testing.assert_array_equal(again.embed(CORPUS), model.embed(CORPUS))


def test_test_queries_are_never_looked_at(model):
    split = np.array(QUERIES.column("split").to_pylist())
    blind = EventSequences.concat(
        [QUERIES[split != "test"], random_sequences(5, number=9).with_column("split", ["test"] * 9)]
    )
    again = SelfAttention(**SMALL).fit(blind, CORPUS, Relevance.from_groups(blind, CORPUS), seed=1)
    np.testing.assert_array_equal(again.embed(CORPUS), model.embed(CORPUS))


@pytest.mark.parametrize("which", ["model", "neural", "paper", "literal"])
def test_saved_and_loaded_scores_are_bit_equal(which, request, tmp_path):
    trained = request.getfixturevalue(which)
    trained.save(tmp_path / "m")
    loaded = methods.load(tmp_path / "m")
    assert isinstance(loaded, SelfAttention)
    np.testing.assert_array_equal(loaded.score(QUERIES, CORPUS), trained.score(QUERIES, CORPUS))
    assert loaded.settings == trained.settings
    assert loaded.card.validation == trained.card.validation
    assert (tmp_path / "m" / "training.jsonl").exists()
    assert (tmp_path / "m" / "training.png").exists()
    loaded.save(tmp_path / "again")
    np.testing.assert_array_equal(methods.load(tmp_path / "again").embed(CORPUS), trained.embed(CORPUS))


def test_a_folder_that_does_not_fit_together_is_one_clear_error(model, tmp_path):
    model.save(tmp_path / "m")
    state = read_state(tmp_path / "m", "self")
    settings = {**state.card.settings, "projection": {**state.card.settings["projection"], "hidden": 12}}
    write_state(tmp_path / "m", ModelState(state.card.model_copy(update={"settings": settings}), state.tensors))
    with pytest.raises(UserError, match="do not fit together"):
        SelfAttention.load(tmp_path / "m")


@pytest.mark.parametrize("head", [None, {"steps": 20, "evaluations": 1}])
def test_validation_is_of_the_score_that_the_model_gives(head):
    settings = {**SMALL, "joint": {"steps": 5, "evaluations": 1}, "head": head}
    settings |= {"similarity": {"form": "normalised", "gamma": 3.0}, "unwarp": {"hidden": 8}}
    trained = SelfAttention("neural", **settings).fit(QUERIES, CORPUS, seed=0)
    rows = np.flatnonzero(np.array(QUERIES.column("split").to_pylist()) == "validation")
    truth = Relevance.from_groups(QUERIES, CORPUS).select_queries(rows)
    scored = mean_average_precision(trained.score(QUERIES[rows], CORPUS), truth)
    # Without a head phase the last validation uses the running whitening, so ranks may differ a little.
    assert trained.card.validation["AP"] == pytest.approx(scored, abs=1e-6 if head else 0.02)


def test_fisher_vectors_over_all_parameters(tmp_path):
    everything = {**SMALL, "vector": {"fisher": "all", "bank": 5}, "joint": {"steps": 3}, "head": {"steps": 5}}
    trained = SelfAttention("neural", **everything).fit(QUERIES, CORPUS, seed=0)
    trained.save(tmp_path / "m")
    np.testing.assert_array_equal(methods.load(tmp_path / "m").embed(CORPUS[:5]), trained.embed(CORPUS[:5]))
    np.testing.assert_allclose(trained.embed(CORPUS[3:4])[0], trained.embed(CORPUS)[3], atol=1e-5)


def test_without_labels_it_learns_from_parts_and_says_so():
    unlabelled = CORPUS.without_columns("group")
    with pytest.warns(UserWarning, match=r"no queries .* learning from sub-sequences"):
        trained = SelfAttention(**SMALL).fit(None, unlabelled, seed=0)
    assert trained.card.unlabelled
    same_pace = mean_average_precision(trained.score(QUERIES, CORPUS), Relevance.from_groups(QUERIES, CORPUS))
    assert same_pace > 0.5  # by chance: 0.3


def test_relevance_from_qrels():
    relevance = Relevance.from_groups(QUERIES, CORPUS)
    bare = Relevance(relevance.offsets, relevance.rows, relevance.corpus_size)
    trained = SelfAttention(**SMALL).fit(QUERIES, CORPUS, bare, seed=0)
    assert trained.card.validation["AP"] > 0.7


def test_user_mistakes_are_one_clear_line():
    with pytest.raises(UserError, match="no preset is called 'best'"):
        SelfAttention("best")
    with pytest.raises(UserError, match=r"encoder\.width"):
        SelfAttention(encoder={"width": 1})
    with pytest.raises(UserError, match="there must be a head phase"):
        SelfAttention(head=None)
    with pytest.raises(UserError, match="not trained"):
        SelfAttention().embed(CORPUS)
    with pytest.raises(UserError, match="no query has split 'train'"):
        SelfAttention(**SMALL).fit(QUERIES.with_column("split", ["test"] * 48), CORPUS)


def test_a_corpus_of_many_groups_is_told_apart_by_probabilities():
    corpus, queries = (many_groups(seed, 3 - seed) for seed in (0, 1))
    queries = queries.with_column("split", pa.array((["train"] * 2 + ["test"]) * 200))
    model = SelfAttention(**{**SMALL, "selection": None}).fit(queries, corpus)
    assert model.network.metric.groups.groups == 300
    again = SelfAttention.from_state(model.to_state())
    np.testing.assert_array_equal(again.embed(corpus), model.embed(corpus))
    np.testing.assert_allclose(np.linalg.norm(model.embed(corpus), axis=1), 1, atol=1e-5)


def many_groups(seed: int, each: int, groups: int = 300) -> EventSequences:
    """Groups that differ in pace alone."""
    rng = np.random.default_rng(seed)
    lists = [(np.cumsum(rng.lognormal(0.02 * g, 0.1, 6)), np.zeros(6, int)) for g in range(groups) for _ in range(each)]
    names = [f"m{seed}-{i}" for i in range(len(lists))]
    return EventSequences.from_lists(lists, ids=names, groups=[f"g{i // each}" for i in range(len(lists))])


def test_paper_takes_the_gradient_by_all_parameters_too():
    tiny = {"encoder": {"width": 4}, "batch": {"size": 4, "negatives": 4}, "joint": {"steps": 2, "evaluations": 1}}
    tiny["warm_up"] = {"steps": 1}
    trained = SelfAttention("paper", vector={"fisher": "all"}, **tiny).fit(QUERIES, CORPUS, seed=0)
    assert trained.dimension == sum(p.numel() for p in trained.network.process.parameters())
    rows = trained.embed(CORPUS[:5])
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-5)
