"""SelfAttention as a whole: invariances, awkward sequences, the model folder, training."""

from __future__ import annotations

import copy

import numpy as np
import pyarrow as pa
import pytest
import torch

import neuroseqret.models.self_attention.model as module
import small_settings
from naive import models as naive
from naive.random_sequences import random_sequences
from neuroseqret import methods
from neuroseqret.data.batching import pad
from neuroseqret.data.relevance import Relevance
from neuroseqret.data.sequences import EventSequences
from neuroseqret.errors import UserError
from neuroseqret.measures.ranking_measures import mean_average_precision
from neuroseqret.models.card import ModelState
from neuroseqret.models.model_folder import read_state, write_state
from neuroseqret.models.self_attention import affordable
from neuroseqret.models.self_attention.model import SelfAttention
from neuroseqret.processes.time_scale import Inputs
from neuroseqret.training import budget

SMALL = {
    **small_settings.SMALL,
    "warm_up": {"steps": 5},
    "joint": {"steps": 10},
    "head_batch": 16,
    "head": {"steps": 40, "evaluations": 2},
}
PAPER = {**{k: SMALL[k] for k in ("encoder", "batch", "warm_up")}, "joint": {"steps": 10, "evaluations": 1}}


def rhythms(seed: int, number: int, groups: int = 4, **columns) -> EventSequences:
    """Groups that differ in pace and in their favourite mark: easy to tell apart."""
    rng = np.random.default_rng(seed)
    labels = np.arange(number) % groups
    lists = []
    for label in labels:
        n = int(rng.integers(8, 24))
        times = np.cumsum(rng.lognormal(0.5 * label, 0.3, n))
        lists.append((times, np.where(rng.random(n) < 0.7, label, rng.integers(0, groups, n))))
    names = [f"r{seed}-{i}" for i in range(number)]
    return EventSequences.from_lists(lists, ids=names, groups=[f"g{x}" for x in labels], **columns)


def splits(number: int) -> dict:
    return {"metadata": {"split": [("train", "train", "validation", "test")[i // 4 % 4] for i in range(number)]}}


GPUS = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
DEVICES = ["cpu", *(name for name, found in GPUS.items() if found)]  # a machine with a GPU tests it, too
CORPUS, QUERIES = rhythms(0, 80), rhythms(1, 48, **splits(48))


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
    monkeypatch.setattr(module, "_CHUNK", 7)
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


def test_a_run_that_was_cut_off_goes_on(neural, tmp_path, monkeypatch):
    from neuroseqret.models.self_attention import fitting

    def cut_off(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(fitting, "train_head", cut_off)
        with pytest.raises(KeyboardInterrupt):
            SelfAttention("neural", **SMALL).fit(QUERIES, CORPUS, seed=1, checkpoint=tmp_path / "c")
    monkeypatch.setattr(fitting.ProcessTraining, "joint_loss", cut_off)  # the first phases are not run again
    resumed = SelfAttention("neural", **SMALL).fit(QUERIES, CORPUS, seed=1, checkpoint=tmp_path / "c")
    np.testing.assert_array_equal(resumed.embed(CORPUS), neural.embed(CORPUS))


def test_a_checkpoint_of_other_relevance_is_refused(tmp_path, monkeypatch):
    from neuroseqret.models.self_attention import fitting

    def cut_off(*_, **__):
        raise KeyboardInterrupt

    known = Relevance.from_groups(QUERIES, CORPUS)
    with monkeypatch.context() as patch:
        patch.setattr(fitting, "train_head", cut_off)
        with pytest.raises(KeyboardInterrupt):
            SelfAttention(**SMALL).fit(QUERIES, CORPUS, known, seed=1, checkpoint=tmp_path / "c")
    rolled = pa.array(np.roll(np.array(CORPUS.groups.to_pylist()), 1))
    other = Relevance.from_groups(QUERIES, CORPUS.with_column("group", rolled))
    with pytest.raises(UserError, match="another run"):
        SelfAttention(**SMALL).fit(QUERIES, CORPUS, other, seed=1, checkpoint=tmp_path / "c")


def test_unwarping_learns_although_some_crops_are_over_in_no_time():
    tied = (np.concatenate([[1.0, 2.0, 3.0], np.full(60, 4.0)]), np.zeros(63, int))
    at_once = EventSequences.from_lists(
        [tied if k % 3 == 0 else (q.times, q.marks) for k, q in enumerate(QUERIES)],
        ids=QUERIES.ids.to_pylist(),
        groups=QUERIES.groups.to_pylist(),
        metadata={"split": QUERIES.column("split").to_pylist()},
    )
    trained = SelfAttention("paper-literal", **PAPER).fit(at_once, CORPUS, seed=0)
    assert np.isfinite(trained.score(at_once, CORPUS)).all()


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


def test_a_budget_is_kept():
    long = {**SMALL, "joint": {"steps": 100_000}, "head": {"steps": 100_000}, "selection": {"steps": 100_000}}
    trained = SelfAttention("neural", **long).fit(QUERIES, CORPUS, max_seconds=2.0)
    last = {r["phase"]: r["seconds"] for r in trained.log.records}
    assert list(last) == ["warm_up", "joint", "selection", "head"]
    assert sum(last.values()) < 4.0


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


@pytest.mark.parametrize("phase", ["warm_up", "joint"])
def test_the_likelihood_does_not_make_the_unwarping_collapse(phase):
    queries, corpus = random_sequences(1, number=12, groups=3), random_sequences(2, number=30, groups=3)
    queries = queries.with_column("split", ["train"] * 12)
    steps = {"warm_up": {"steps": 0}, "joint": {"steps": 0}, phase: {"steps": 60, "evaluations": 1}}
    settings = {**SMALL, **steps, "unwarp": {}, "head": None, "vector": {"markov": False, "bank": 0}}
    made = SelfAttention("neural", **settings)
    unwarp = made.fit(queries, corpus, seed=0).network.unwarp
    assert unwarp is not None
    with torch.no_grad():
        assert float((unwarp.rate(unwarp.points) - 1).abs().max()) < 0.05  # ties reward shrinking all other gaps


def test_the_budget_counts_features_crops_and_selection(monkeypatch):
    """On a clock that passes 20 ms per sequence described and 10 ms per look at it, `fit` ends within its budget."""
    clock, described = [0.0], SelfAttention.fixed_features

    def now() -> float:
        clock[0] += 0.01
        return clock[0]

    def slow(self: SelfAttention, sequences: EventSequences) -> torch.Tensor | None:
        clock[0] += 0.02 * len(sequences)
        return described(self, sequences)

    monkeypatch.setattr(budget, "_clock", now)
    monkeypatch.setattr(SelfAttention, "fixed_features", slow)
    monkeypatch.setattr(affordable, "TIMED", 4)
    corpus = rhythms(2, 2000)  # 40 s for the features alone, and three times as much for crops
    settings = {**SMALL, "head": {"steps": 100_000, "evaluations": 1}}
    model = SelfAttention(**settings).fit(QUERIES, corpus, max_seconds=20.0)
    assert 15 < clock[0] < 23
    assert model.card.notes["selection"]["weights"]
    clock[0] = 0.0
    model = SelfAttention(**settings).fit(QUERIES, corpus, max_seconds=2.0)
    assert clock[0] < 3  # all features would take 40 s, those of the 36 queries alone 0.7 s
    assert "the usual weights" in model.card.notes["selection"]["chosen"]


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
