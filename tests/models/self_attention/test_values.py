"""Values of events: a model that learns from them, kept with it and used wherever it embeds."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import neuroseqret as nsr
import small_settings
from neuroseqret import methods
from neuroseqret.cli.main import app
from neuroseqret.data.relevance import Relevance
from neuroseqret.data.sequences import EventSequences
from neuroseqret.errors import UserError
from neuroseqret.explanation import explain
from neuroseqret.index import Index
from neuroseqret.measures.ranking_measures import mean_average_precision
from neuroseqret.models.self_attention import SelfAttention
from neuroseqret.models.without_torch import SelfWithoutTorch

GROUPS = 4
SMALL = {**small_settings.SMALL, "projection": {"hidden": 32, "dimension": 8}, "vector": {"bank": 40}}


def sequences(kind: str, number: int, seed: int) -> EventSequences:
    """Times and marks are alike in all groups; only the amounts tell them apart: their level, or their rhythm."""
    rng = np.random.default_rng(seed)
    lists, amounts = [], []
    for row in range(number):
        n = int(rng.integers(20, 30))
        lists.append((np.cumsum(rng.exponential(1.0, n)), rng.integers(0, 3, n)))
        level, turning = divmod(row % GROUPS, 2)
        wave = rng.normal(0, 1, n) if turning else np.cumsum(rng.normal(0, 0.4, n))
        amounts.append(np.exp(1.5 * level + wave).tolist())
    names = {"ids": [f"{kind}{row}" for row in range(number)], "groups": [f"g{row % GROUPS}" for row in range(number)]}
    made = EventSequences.from_lists(lists, **names).with_column("amount", amounts)
    return (
        made
        if kind == "c"
        else made.with_column("split", [("train", "test")[row // GROUPS % 2] for row in range(number)])
    )


CORPUS, QUERIES = sequences("c", 80, 0), sequences("q", 64, 1)


def quality(model: SelfAttention) -> float:
    asked = QUERIES[np.array(QUERIES.column("split").to_pylist()) == "test"]
    return mean_average_precision(model.score(asked, CORPUS), Relevance.from_groups(asked, CORPUS))


@pytest.fixture(scope="module", params=["default", "neural"])
def model(request: pytest.FixtureRequest) -> SelfAttention:
    return SelfAttention(request.param, values=["amount"], **SMALL).fit(QUERIES, CORPUS, seed=1)


def test_groups_that_differ_in_their_values_alone_are_found(model: SelfAttention) -> None:
    assert quality(SelfAttention(**SMALL).fit(QUERIES, CORPUS, seed=1)) < 0.4  # chance is 0.25
    assert quality(model) > 0.7


@pytest.mark.parametrize("part", [{"bank": 0}, {"markov": False}], ids=["tables", "bank"])
def test_tables_and_bank_learn_from_values_each(part: dict[str, object]) -> None:
    settings = {**SMALL, "vector": {**SMALL["vector"], **part}}  # type: ignore[dict-item]
    assert quality(SelfAttention(values=["amount"], **settings).fit(QUERIES, CORPUS, seed=1)) > 0.6


def test_the_neural_process_reads_values(model: SelfAttention) -> None:
    if not model.settings.vector.neural:
        assert not hasattr(model.network, "process")
        return
    other = CORPUS.with_column("amount", [list(reversed(row)) for row in CORPUS.column("amount").to_pylist()])
    pooled = [model.network.raw(model.inputs(some)).pooled for some in (CORPUS, other)]
    assert (pooled[0] - pooled[1]).abs().max() > 1e-3


def test_values_are_kept_with_the_model(model: SelfAttention, tmp_path) -> None:
    folder = model.save(tmp_path / "m")
    assert methods.load(folder).settings.values == ("amount",)
    np.testing.assert_array_equal(methods.load(folder).embed(CORPUS), model.embed(CORPUS))
    if not model.settings.vector.neural:
        np.testing.assert_allclose(SelfWithoutTorch.load(folder).embed(CORPUS), model.embed(CORPUS), atol=1e-5)


def test_an_index_embeds_values(model: SelfAttention, tmp_path) -> None:
    index = Index.create(model, tmp_path / "index", CORPUS)
    found, again = (one.search(QUERIES[0], k=5) for one in (index, Index.open(tmp_path / "index")))
    assert [hit.id for hit in again] == [hit.id for hit in found]
    assert index.check() == []
    with pytest.raises(UserError, match="no column 'amount'"):
        index.search(QUERIES[:1].without_columns("amount"), k=5)


def test_explanations_sum_to_the_score(model: SelfAttention) -> None:
    found = explain(model, QUERIES[0], CORPUS[0])
    assert found.matrix.sum() == pytest.approx(float(model.score(QUERIES[0], CORPUS[:1])[0]), abs=1e-3)


def test_sequences_without_the_column_are_one_line(model: SelfAttention) -> None:
    with pytest.raises(UserError, match="there is no column 'amount', which the model learns from"):
        model.embed(CORPUS.without_columns("amount"))


def test_what_reads_no_values_says_so() -> None:
    with pytest.raises(UserError, match="reads times and marks only; leave out the values"):
        SelfAttention("paper", values=["amount"])


def frame() -> pd.DataFrame:
    """One row per event, with the amounts."""
    rows = CORPUS.lengths
    return pd.DataFrame(
        {
            "user": np.repeat(CORPUS.ids.to_pylist(), rows),
            "when": CORPUS.times,
            "what": CORPUS.marks,
            "amount": np.concatenate(CORPUS.column("amount").to_pylist()),
        }
    )


def test_a_frame_without_labels_and_the_command_line(tmp_path, monkeypatch) -> None:
    columns = {"id": "user", "time": "when", "mark": "what"}
    with pytest.warns(UserWarning, match="learning from sub-sequences"):
        model = SelfAttention(values=["amount"], **SMALL).fit(None, frame(), columns=columns)
    assert model.embed(nsr.read(frame(), columns=columns)).shape == (80, model.dimension)
    monkeypatch.chdir(tmp_path)
    frame().rename(columns={"user": "id", "when": "time", "what": "mark"}).to_csv("events.csv", index=False)
    run = CliRunner().invoke
    asked = ["fit", "events.csv", "--out", "model", "--value", "amount", "--max-seconds", "1", "--json"]
    assert run(app, asked).exception is None
    assert json.loads((tmp_path / "model" / "config.json").read_text())["settings"]["values"] == ["amount"]
    assert run(app, ["embed", "model", "events.csv", "--out", "vectors.parquet"]).exception is None
    frame().rename(columns={"user": "id", "when": "time", "what": "mark"}).drop(columns="amount").to_csv(
        "bare.csv", index=False
    )
    assert "no column 'amount'" in str(run(app, ["embed", "model", "bare.csv", "--out", "v.parquet"]).exception)


@pytest.mark.parametrize(("name", "line"), [("gru", "reads times and marks only"), ("cross", "name it by --first")])
def test_other_methods_do_not_take_values_on_the_command_line(name: str, line: str, tmp_path) -> None:
    asked = ["fit", str(tmp_path), "--model", name, "--out", str(tmp_path / "m"), "--value", "amount"]
    assert line in str(CliRunner().invoke(app, asked).exception)
