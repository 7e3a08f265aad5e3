"""Explanations: parts that sum to the score, whatever the model's head, and a picture that is one."""

from __future__ import annotations

import importlib
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from matplotlib.colors import to_hex

from neuroseqret.data.sequence import EventSequence
from neuroseqret.data.sequences import EventSequences
from neuroseqret.errors import DataError, UserError
from neuroseqret.explanation import Explanation, explain, picture
from neuroseqret.explanation.integrated_gradients import through, through_groups
from neuroseqret.explanation.shares import vector_shares
from neuroseqret.index import Index
from neuroseqret.models.cross.cross_attention import CrossAttention
from neuroseqret.models.cross.event_correction import EventAgreement
from neuroseqret.models.cross.hash_cross_attention import HashCrossAttention
from neuroseqret.models.cross.second_stage import SecondStage
from neuroseqret.models.self_attention.model import SelfAttention
from neuroseqret.models.self_attention.projection import Projection
from neuroseqret.processes.features import WHOLE
from neuroseqret.processes.local_states import MOST_EVENTS
from simulated import simulate_retrieval

SHORT: dict[str, Any] = {"warm_up": {"steps": 2}, "joint": {"steps": 3}, "head": {"steps": 5}, "selection": None}
LINEAR = {"projection": {"members": [{"kind": "linear"}, {"kind": "identity", "sees": ["markov"]}]}}
VARIANTS: dict[str, tuple[str, dict[str, Any]]] = {
    "default": ("default", {**SHORT, "head": {"steps": 20}}),
    "neural": ("neural", SHORT),
    "linear head": ("default", {**SHORT, **LINEAR}),
    "Fisher vector alone": ("neural", {**SHORT, "vector": {"pooled": False, "markov": False, "bank": 0}}),
    "blocks": ("neural", {**SHORT, "encoder": {"max_length": 8}}),
    "paper": ("paper-literal", {"joint": {"steps": 3}, "encoder": {"width": 16}}),
}


@pytest.fixture(scope="module")
def data() -> tuple[EventSequences, EventSequences]:
    return simulate_retrieval(groups=4, per_group=12, seed=3)


@pytest.fixture(scope="module", params=VARIANTS)
def model(request: pytest.FixtureRequest, data: tuple[EventSequences, EventSequences]) -> SelfAttention:
    corpus, queries = data
    preset, settings = VARIANTS[request.param]
    return SelfAttention(preset, **settings).fit(queries, corpus, seed=1)


def test_parts_sum_to_the_score(model: SelfAttention, data: tuple[EventSequences, EventSequences]) -> None:
    corpus, queries = data
    for row in range(3):
        query, hit = queries[row], corpus[5 * row]
        found = explain(model, query, hit)
        assert found.matrix.shape == (len(query) + 1, len(hit) + 1)
        assert found.score == pytest.approx(model.score(query, corpus[5 * row : 5 * row + 1])[0], abs=1e-6)
        kappa = float(model.embed(query, "query")[0] @ model.embed(hit, "corpus")[0])
        assert found.matrix.sum() == pytest.approx(kappa, abs=2e-5)
        assert sum(found.parts.values()) == pytest.approx(kappa, abs=2e-5)
        assert found.matrix.sum() + found.similarity == pytest.approx(found.score, abs=2e-5)
        assert np.isfinite(found.matrix).all()
        assert (found.unwarping is not None) == (model.network.unwarp is not None)
        assert f"score {found.score:.3f}: marks {found.parts['marks']:+.3f}" in repr(found)
        best = found.strongest(3)
        assert best[0][2] == found.pairs.max()
        assert [part for *_, part in best] == sorted((part for *_, part in best), reverse=True)


@pytest.mark.parametrize("kind", [CrossAttention, HashCrossAttention])
def test_parts_of_a_reranked_hit_sum_to_its_score(
    kind: type[SecondStage], data: tuple[EventSequences, EventSequences], tmp_path: Path
) -> None:
    corpus, queries = data
    preset, settings = VARIANTS["default"]
    first = SelfAttention(preset, **settings).fit(queries, corpus, seed=1)
    model = kind(first_stage=first, memory={"out_of_fold_steps": 5}).fit(queries, corpus, seed=1)
    correction = model.correction
    model.correction.strength = 0.7
    names = {"memory"}
    if isinstance(correction, EventAgreement):
        correction.event_strength = 0.4
        names.add("attention between events")
    long = EventSequence("long", np.cumsum(np.random.default_rng(0).exponential(1, 200)), np.arange(200) % 2)
    for query, hit in ((queries[0], corpus[0]), (queries[1], corpus[7]), (long, corpus[3])):
        found, plain = explain(model, query, hit), explain(first, query, hit)
        assert found.score == pytest.approx(float(model.score(query, hit)[0]), abs=1e-6)
        assert found.matrix.sum() == pytest.approx(found.score, abs=3e-5)
        assert sum(found.parts.values()) == pytest.approx(found.score, abs=3e-5)
        assert set(found.parts) - set(plain.parts) == names
        added = found.matrix - plain.matrix
        assert added[-1, -1] == pytest.approx(found.parts["memory"], abs=1e-6)
        if isinstance(correction, EventAgreement):
            assert found.parts["attention between events"] == pytest.approx(
                0.4 * float(correction.all_agreements(EventSequences.of(query), EventSequences.of(hit))[0, 0]), abs=1e-5
            )
            assert np.count_nonzero(added[:-1, :-1]) == min(len(query), MOST_EVENTS) * len(hit)
    query = queries[0]
    hits = Index.create(first, tmp_path / "index", corpus).search(query, 3, rerank=model)
    for hit in hits:
        assert explain(model, query, hit).matrix.sum() == pytest.approx(hit.score, abs=3e-5)


@pytest.mark.parametrize("variant", ["default", "neural"])
def test_what_the_corpus_has_in_common_is_shared_by_the_events_and_not_the_wholes(
    data: tuple[EventSequences, EventSequences], variant: str
) -> None:
    corpus, queries = data
    preset, settings = VARIANTS[variant]
    trained = SelfAttention(preset, **settings).fit(queries, corpus, seed=1)
    shares, kinds = vector_shares(trained, corpus[0], "corpus")
    begin = trained.network.layout.columns(["process"]).start  # of the Fisher vector
    counted = torch.arange(len(kinds)) < begin if begin else torch.ones(len(kinds), dtype=torch.bool)
    assert shares[-1, counted & (kinds != WHOLE)].abs().max() < 1e-9
    assert shares[:-1, kinds == WHOLE].abs().max() == 0
    ((_, whole),) = trained.vectors(corpus[:1])
    torch.testing.assert_close(shares.sum(0), whole[0].double().detach(), rtol=0, atol=1e-4)


def test_probabilities_of_groups_are_split_by_the_path_from_the_average_sequence(
    data: tuple[EventSequences, EventSequences],
) -> None:
    corpus, queries = data
    preset, settings = VARIANTS["default"]
    model = SelfAttention(preset, **settings).fit(queries, corpus, seed=1)
    metric = model.network.metric.double()
    shares, _ = vector_shares(model, corpus[0], "corpus")
    vector = shares.sum(0)

    def probabilities(at: torch.Tensor) -> torch.Tensor:
        return metric.units(at[None])[metric.group_member][0, :-1]

    steps = [(k + 0.5) / 300 for k in range(300)]
    slow = sum(torch.func.jvp(probabilities, (a * vector,), (shares[3],))[1] for a in steps) / len(steps)
    fast, whole = through_groups(metric, torch.stack([shares[3], vector]), vector)
    torch.testing.assert_close(fast[0], slow, rtol=0, atol=1e-3)
    torch.testing.assert_close(whole, probabilities(vector), rtol=0, atol=1e-9)
    torch.testing.assert_close(fast[1], whole - probabilities(0 * vector), rtol=0, atol=2e-2)


def test_integrated_gradients_in_closed_form_equal_a_fine_sum_along_the_path() -> None:
    torch.manual_seed(0)
    head = Projection(7, "mlp", hidden=11, dimension=5, members=2).eval().double()
    torch.nn.init.normal_(head.first_bias)
    vector, direction = torch.randn(7, dtype=torch.float64), torch.randn(7, dtype=torch.float64)
    final = torch.relu(vector[None] @ head.first + head.first_bias) @ head.second + head.second_bias
    path = (torch.arange(20_000, dtype=torch.float64)[:, None] + 0.5) / 20_000 * vector
    open_units = (path @ head.first + head.first_bias > 0).double().mean(1, keepdim=True)  # (members, 1, hidden)
    along = ((direction[None] @ head.first) * open_units) @ head.second
    expected = (along / final.norm(dim=-1, keepdim=True)).flatten() * 2**-0.5
    assert torch.allclose(through(head, direction[None], vector)[0], expected, atol=1e-4)


def test_other_models_and_endless_sequences_are_refused(data: tuple[EventSequences, EventSequences]) -> None:
    from neuroseqret.methods.registry import make

    corpus, queries = data
    with pytest.raises(UserError, match=r"only a 'self' model and second stages.*; search with a 'self' model$"):
        explain(make("random"), queries[0], corpus[0])
    with pytest.raises(UserError, match=r"takes a model first, such as index\.model, not EventSequences"):
        explain(corpus, queries[0], corpus[0])  # type: ignore[arg-type]
    with pytest.raises(UserError, match="do not split over events"):
        explain(SelfAttention("neural", vector={"fisher": "all"}), queries[0], corpus[0])
    preset, settings = VARIANTS["linear head"]
    model = SelfAttention(preset, **settings).fit(queries, corpus)
    endless = EventSequences.from_lists([(np.arange(3000.0), np.zeros(3000, int))], ids=["long"])
    with pytest.raises(UserError, match=r"sequence long: 3,000 events are too many"):
        explain(model, endless[0], corpus[0])


def test_the_picture_is_a_png(
    model: SelfAttention, data: tuple[EventSequences, EventSequences], tmp_path: Path
) -> None:
    corpus, queries = data
    picture(explain(model, queries[0], corpus[0]), tmp_path / "why.png")
    assert (tmp_path / "why.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("where", ["id", "mark", "unit"])
def test_dollars_and_underscores_are_no_formulas(tmp_path: Path, where: str) -> None:
    given = {"id": "a", "mark": "b", "unit": "c"} | {where: "$\\frac$"}
    names = (given["mark"], "_start", "US$")
    query, hit = (
        EventSequence(name, [0.0, 1.0, 2.0], [0, 1, 2], mark_names=names, time_unit=given["unit"])
        for name in ("query", given["id"])
    )
    found = Explanation(query, hit, 0.5, np.full((4, 4), 0.03), {"marks": 0.2, "times": 0.28})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        picture(found, tmp_path / "why.png")
    assert (tmp_path / "why.png").read_bytes().startswith(b"\x89PNG")


def test_what_search_refuses_explain_refuses(data: tuple[EventSequences, EventSequences]) -> None:
    corpus, queries = data
    preset, settings = VARIANTS["linear head"]
    model = SelfAttention(preset, **settings).fit(queries, corpus)
    assert isinstance(model.marks, int)
    strange = EventSequence("strange", [0.0, 1.0], [0, model.marks])
    for pair in ((strange, corpus[0]), (queries[0], strange)):
        with pytest.raises(DataError, match=r"sequence strange: event 1: mark '\d+' is unknown to the model"):
            explain(model, *pair)
    with pytest.raises(DataError, match="times are in years, the model's in seconds"):
        explain(model, EventSequence("q", [0.0, 1.0], [0, 1], time_unit="years"), corpus[0])


def test_a_picture_says_what_matters_and_what_is_no_match() -> None:
    """The title tells what one learns; colours of marks are not those of for and against; durations have units."""
    events = EventSequences.from_lists([([0.0, 3600.0, 9000.0], [0, 1, 1])], ids=["a"], time_unit="seconds")
    sequence = events.with_meaning(["walk", "run"])[0]
    drawn = importlib.import_module("neuroseqret.explanation.picture")
    for score, words in ((0.9, "Why a matches a: score 0.900"), (0.02, "a does not match a: score 0.020")):
        matrix = np.zeros((4, 4))
        matrix[:3, 1] = score / 3  # pairs with the second event of the hit
        found = Explanation(sequence, sequence, score, matrix, {"marks": score, "times": 0.0}, 0.0, None)
        figure = drawn.figure_of(found)
        title = figure.get_suptitle()
        assert title.startswith(words)
        said = title.replace("\n", " ")
        assert f"Most comes from the marks ({score:+.2f}). Of the hit's marks, 'run' adds most" in said
        assert "typically 75 minutes after the event before it, as in the query (75)." in said
        shades = figure.axes[1].images[0].get_cmap()
        assert [to_hex(shades(share)) for share in (0.0, 1.0)] == [drawn._AGAINST, drawn._FOR]
        labels = [label.get_text() for label in figure.axes[0].get_yticklabels()]
        assert labels == ["query\n2.5 h", "hit\n2.5 h"]
    assert not {drawn._FOR, drawn._AGAINST, drawn._UNWARPED} & set(drawn._COLOURS)


def test_pairs_as_a_frame_have_marks_and_times() -> None:
    events = EventSequences.from_lists([([0.0, 3600.0, 9000.0], [0, 1, 1])], ids=["a"], time_unit="seconds")
    sequence = events.with_meaning(["walk", "run"])[0]
    matrix = np.zeros((4, 4))
    matrix[1, 2] = 0.5
    frame = Explanation(sequence, sequence, 0.5, matrix, {"marks": 0.5}).to_pandas(2)
    assert len(frame) == 2
    assert frame.iloc[0].to_dict() == {
        **{"query event": 1, "query mark": "run", "query time": "60 min"},
        **{"hit event": 2, "hit mark": "run", "hit time": "2.5 h", "part": 0.5},
    }


def test_nothing_in_a_picture_is_cut_off() -> None:
    """Ids, groups and marks may be long, and what matters may be a mark with a long name."""
    long = "shop.example/visitor/0001/a-rather-long-identifier-of-a-session-on-a-telephone"
    marks = [f"a mark with a long name, number {n}, which says much" for n in range(9)]
    events = EventSequences.from_lists(
        [(np.arange(9.0), np.arange(9))], ids=[long], groups=["people who only look and never buy"], time_unit="days"
    )
    sequence = events.with_meaning(marks)[0]
    generator = np.random.default_rng(0)
    parts = {"marks": 12.5, "times": -3.25, "marks and times": 1.0, "whole sequence": 0.1}
    unwarping = np.arange(9.0), np.sqrt(np.arange(9.0))
    matrix = generator.normal(size=(10, 10))
    found = Explanation(sequence, sequence, float(matrix.sum()), matrix, parts, 0.0, unwarping)
    figure = found.plot()
    figure.canvas.draw()
    drawn, (width, height) = figure.get_tightbbox(), figure.get_size_inches()  # all that is drawn, in inches
    assert min(drawn.x0, drawn.y0) >= 0
    assert (drawn.x1 <= width, drawn.y1 <= height) == (True, True)


def test_one_name_for_one_number() -> None:
    """The rest that pairs of events leave is not called as a part of the score by what was compared."""
    events = EventSequences.from_lists([([0.0, 1.0], [0, 0])], ids=["a"])
    matrix = np.full((3, 3), 0.1)
    found = Explanation(events[0], events[0], 0.9, matrix, {"marks": 0.6, "whole sequence": 0.3})
    lines, pairs, _, parts = found.plot().axes
    assert pairs.get_title() == "pairs of events: +0.400 of the score; not from pairs: +0.500"
    assert [label.get_text() for label in parts.get_yticklabels()] == ["whole sequence", "marks"]
    assert "whole" not in lines.get_title() + pairs.get_title()
