"""Every verb that takes sequences takes frames, lists and sequences, one or many, or says in one line what to pass."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import neuroseqret as nsr
from neuroseqret.errors import DataError, UserError
from neuroseqret.readers.coercion import as_sequences, one_or_many

TINY = {"warm_up": {"steps": 2}, "joint": {"steps": 2}, "head": {"steps": 5}, "selection": None}
KINDS = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "arrow": pa.table}
frames = pytest.mark.parametrize("kind", KINDS.values(), ids=list(KINDS))


def log(people=24, events=8, seed=0):
    """The columns of an event log: who did what, when; the people of a team do things alike."""
    rng = np.random.default_rng(seed)
    rows = {"user": [], "when": [], "action": [], "team": []}
    for person in range(people):
        likes = ("open", "read", "shut") if person % 2 else ("buy", "look")
        at = np.datetime64("2024-03-01T09:00:00") + np.cumsum(rng.integers(1, 600, events)).astype("timedelta64[s]")
        rows["user"] += [f"u{person}"] * events
        rows["when"] += at.tolist()
        rows["action"] += rng.choice(likes, events).tolist()
        rows["team"] += [f"team {person % 2}"] * events
    return rows


COLUMNS = {"id": "user", "time": "when", "mark": "action", "group": "team"}


@pytest.fixture(scope="module")
def data():
    return nsr.prepare(pd.DataFrame(log()), **COLUMNS, query_share=0.5)


@pytest.fixture(scope="module")
def model(data):
    return nsr.make("histogram").fit(data)


@pytest.fixture(scope="module")
def index(data, model, tmp_path_factory):
    return nsr.Index.create(model, tmp_path_factory.mktemp("made") / "index", data.corpus)


@frames
def test_prepare_gives_a_data_folder_in_memory(kind, data, tmp_path):
    made = nsr.prepare(kind(log()), **COLUMNS, query_share=0.5)
    assert made.corpus == data.corpus
    assert made.queries == data.queries
    assert made.path is None
    assert len(made.corpus) + len(made.queries) == 24
    assert made.relevance is not None
    assert made.corpus.time_unit == "seconds"
    assert "DataFolder 'data in memory'" in repr(made)
    kept = nsr.prepare(kind(log()), **COLUMNS, query_share=0.5, out=tmp_path / "data")
    assert nsr.read_folder(tmp_path / "data").corpus == kept.corpus == data.corpus


def test_prepare_repairs_what_is_asked(data):
    shuffled = pd.DataFrame(log()).sample(frac=1, random_state=0)
    with pytest.raises(DataError, match="repair with 'sort'"):
        nsr.prepare(shuffled, **COLUMNS, query_share=0.5)
    with pytest.warns(UserWarning, match="repaired: 24 sequences sorted"):
        made = nsr.prepare(shuffled, **COLUMNS, query_share=0.5, repair="sort")
    before, after = ({*one.corpus.ids.tolist(), *one.queries.ids.tolist()} for one in (data, made))
    assert before == after
    for sequence in made.corpus:
        assert np.all(np.diff(sequence.times) >= 0)


def test_prepare_takes_files_and_sequences_and_warns_without_groups(data, tmp_path):
    pd.DataFrame(log()).to_csv(tmp_path / "log.csv", index=False)
    assert nsr.prepare(tmp_path / "log.csv", **COLUMNS, query_share=0.5).queries.ids == data.queries.ids
    whole = nsr.read(pd.DataFrame(log(events=40)), columns={k: v for k, v in COLUMNS.items() if k != "group"})
    with pytest.warns(UserWarning, match="relevance is made from sub-sequences"):
        made = nsr.prepare(whole.without_columns("team"))
    assert made.meta["relevance"] == "subsequences"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        nsr.prepare(whole.without_columns("team"), relevance="subsequences")


@frames
def test_prepare_reads_dates_in_other_formats(kind, data, tmp_path):
    rows = log()
    rows["when"] = [f"{when:%d.%m.%Y %H:%M:%S}" for when in rows["when"]]
    made = nsr.prepare(kind(rows), **COLUMNS, query_share=0.5, time_format="%d.%m.%Y %H:%M:%S")
    assert made.corpus == data.corpus
    pd.DataFrame(rows).to_csv(tmp_path / "log.csv", index=False)
    with pytest.raises(UserError, match=r"time_format=\.\.\. of read or prepare"):
        nsr.prepare(tmp_path / "log.csv", **COLUMNS)


@frames
def test_fit_add_search_score_and_embed_take_frames(kind, tmp_path):
    frame = kind(log())
    model = nsr.make("histogram").fit(frame, frame, columns=COLUMNS)
    made = nsr.Index.create(model, tmp_path / "index", frame, columns=COLUMNS)
    assert len(made) == 24
    assert made.add(frame, columns=COLUMNS).already_there == 24
    hits = made.search(frame, k=3, columns=COLUMNS)
    assert [one.query for one in hits] == [f"u{n}" for n in range(24)]
    assert hits[5][0].id == "u5"
    plain = nsr.read(frame, columns=COLUMNS)
    named = kind({"id": log()["user"], "time": log()["when"], "mark": log()["action"]})
    assert np.array_equal(model.embed(named), model.embed(plain))
    assert np.array_equal(model.score(named, named), model.score(plain, plain))


@frames
def test_an_index_knows_the_columns_of_the_training_data(kind, data, index, tmp_path):
    frame = kind(log(seed=1))
    told = index.search(frame, k=2, columns=COLUMNS)
    assert [[hit.id for hit in hits] for hits in index.search(frame, k=2)] == [
        [hit.id for hit in hits] for hits in told
    ]
    made = nsr.Index.create(index.model, tmp_path / "index")
    assert made.add(kind(log())).added == 24
    other = kind({"id": ["a", "a"], "time": [1.7e9, 1.7e9 + 60], "mark": ["buy", "look"]})  # understood as it is
    assert index.search(other, k=2)[0].query == "a"


def test_lists_of_pairs_arrays_and_frames_without_ids_are_one_query(index, data):
    query = data.queries[0]
    names = [data.queries.mark_names[mark] for mark in query.marks]
    pairs = list(zip(query.times.tolist(), names, strict=True))
    expected = [hit.id for hit in index.search(query, k=5)]
    dates = [(pd.Timestamp(time, unit="s"), name) for time, name in pairs]
    frame = pd.DataFrame(pairs, columns=["time", "mark"])
    for one in (pairs, dates, (query.times, names), (frame["time"], frame["mark"]), frame, pl.DataFrame(frame)):
        hits = index.search(one, k=5)
        assert isinstance(hits, nsr.Hits)
        assert [hit.id for hit in hits] == expected
    for many in ([pairs, pairs], [query, query], {"a": pairs, "b": pairs}, [(query.times, names), pairs]):
        found = index.search(many, k=5)
        assert [[hit.id for hit in hits] for hits in found] == [expected, expected]
    assert index.search({"a": pairs})[0].query == "a"
    assert index.model.score(pairs, data.corpus).shape == (len(data.corpus),)


@pytest.mark.parametrize(
    ("given", "one"),
    [
        ([(0.0, 1), (1.0, 0)], True),
        ([[0.0, 1], [1.0, 0]], True),
        (np.array([[0.0, 1], [1.0, 0]]), True),
        (([0.0, 1.0], [1, 0]), True),
        ((np.array([0.0, 1.0]), np.array([1, 0])), True),
        ([[(0.0, 1), (1.0, 0)]], False),
        ([([0.0, 1.0], [1, 0])], False),
        ([[(np.float64(0), np.int64(1)), (1, 0)]], False),
        (iter([[(0.0, 1), (1.0, 0)]]), False),
    ],
)
def test_shapes_of_lists(given, one):
    sequences, is_one = one_or_many(given)
    assert sequences.to_lists() == [([0.0, 1.0], [1, 0])]
    assert is_one is one


def test_no_sequences_are_no_sequences():
    assert len(as_sequences([])) == 0
    assert len(as_sequences({})) == 0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda m, i, d: i.search("u1"), "search(id='u1') searches with a sequence of the index"),
        (lambda m, i, d: i.search(5), "int (5) is not a sequence of events; pass EventSequences"),
        (lambda m, i, d: i.search([1, 2, 3]), "an event is a pair (time, mark), not 1"),
        (lambda m, i, d: i.search([(0.0, "open", 3)]), "an event is a pair (time, mark)"),
        (lambda m, i, d: i.search([(0.0, "open"), ("x", "read")]), "times of events are of different types"),
        (lambda m, i, d: i.search([[]]), "has no events; leave it out"),
        (
            lambda m, i, d: i.search(pd.DataFrame(log()).drop(columns=["user", "action"])),
            "no column for id, time and mark; say --column id=...",
        ),
        (
            lambda m, i, d: i.search(pd.DataFrame({"at": [1.0], "mark": ["a"]})),
            "if all rows are one sequence, --column id= or {'id': None}",
        ),
        (lambda m, i, d: i.search(d), "this is a data folder; pass its .queries or its .corpus"),
        (lambda m, i, d: i.search(d.queries, columns={"id": "x"}), "columns names the columns of a data frame"),
        (lambda m, i, d: i.add("corpus.parquet"), "read a file with neuroseqret.read"),
        (lambda m, i, d: m.embed(None), "None is not a sequence of events"),
        (lambda m, i, d: m.score({"times": [0.0], "marks": [0]}, d.corpus), "a dictionary of columns is not a frame"),
        (lambda m, i, d: nsr.make("histogram").fit(d.queries), "fit needs a corpus"),
        (lambda m, i, d: nsr.make("histogram").fit(d, d.corpus), "a data folder, or queries and corpus; not both"),
        (lambda m, i, d: nsr.evaluate(pd.DataFrame(log()), "histogram"), "neuroseqret.prepare makes a data folder"),
        (lambda m, i, d: nsr.evaluate(d, [3]), "a method is a name, a model folder or a model, not int"),
        (lambda m, i, d: nsr.evaluate(d, nsr.SelfAttention), "not a class; make one: SelfAttention()"),
        (
            lambda m, i, d: nsr.prepare({"a": [1]}, id="a"),
            "a dictionary of columns is not a frame; pass EventSequences",
        ),
        (lambda m, i, d: nsr.prepare([(0.0, "a")], time_format="%d"), "leave it out for sequences"),
        (
            lambda m, i, d: nsr.prepare(pd.DataFrame(log()), time="when"),
            "no column for id and mark; say prepare(..., id=..., mark=...); give '' for a column that does not exist",
        ),
        (lambda m, i, d: nsr.prepare(pd.DataFrame(log())[:0]), "the frame has no rows"),
        (lambda m, i, d: nsr.explain(nsr.SelfAttention(), d.queries[0], "u1"), "with index.get(id)"),
        (lambda m, i, d: nsr.evaluate("nowhere", "histogram"), "nowhere: not a data folder"),
        (lambda m, i, d: nsr.evaluate(d, "nothing"), "no method is called 'nothing'"),
    ],
)
def test_what_cannot_be_taken_is_explained_in_one_line(call, message, model, index, data):
    with pytest.raises(UserError) as caught:
        call(model, index, data)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_explain_takes_a_hit_a_list_of_pairs_and_a_frame(data, tmp_path):
    model = nsr.SelfAttention(**TINY).fit(data)
    made = nsr.Index.create(model, tmp_path / "index", data.corpus)
    query = data.queries[0]
    hits = made.search(query, k=2)
    why = nsr.explain(model, query, hits[0])
    assert why.score == pytest.approx(hits[0].score, abs=1e-4)
    assert why.hit.id == hits[0].id
    by_hand = nsr.explain(model, query, made.get(hits[0].id))
    assert np.array_equal(by_hand.matrix, why.matrix)
    names = [data.queries.mark_names[mark] for mark in query.marks]
    frame = pd.DataFrame({"time": query.times, "mark": names})
    assert nsr.explain(model, frame, hits[0]).score == pytest.approx(why.score)
    own = frame.rename(columns={"time": "when", "mark": "action"}).assign(user=query.id)
    columns = {"id": "user", "time": "when", "mark": "action"}
    assert nsr.explain(model, own, hits[0], columns=columns).score == pytest.approx(why.score)
    assert nsr.explain(model, query, own, columns=columns).hit.id == query.id
    with pytest.raises(UserError, match=r"explain takes one hit, not 2; choose one of the hits, such as hits\[0\]"):
        nsr.explain(model, query, hits)
    with pytest.raises(UserError, match="explain takes one query, not"):
        nsr.explain(model, data.queries, hits[0])


def test_a_hit_of_windows_knows_its_window(data, model, tmp_path):
    made = nsr.Index.create(model, tmp_path / "index", data.corpus, window_events=4)
    hit = made.search(data.queries[0], k=1)[0]
    assert hit.sequence.id == hit.window
    assert len(hit.sequence) == 4


def test_evaluate_takes_models_in_memory(data, model, tmp_path):
    model.save(tmp_path / "model")
    report = nsr.evaluate(
        data, [model, nsr.make("gru", hidden=4, loop={"steps": 2}), "histogram", tmp_path / "model"], cache=False
    )
    names = [result.name for result in report.results]
    assert names == ["random", "histogram-2", "gru", "histogram", str(tmp_path / "model")]
    by_name = {result.name: result.means() for result in report.results}
    assert by_name["histogram-2"] == by_name["histogram"] == by_name[str(tmp_path / "model")]
    assert not any(result.error for result in report.results)
    alone = nsr.evaluate(data, model, cache=False)
    assert [result.name for result in alone.results] == ["random", "histogram", "histogram-2"]
    nsr.write_folder(tmp_path / "data", data.corpus, data.queries)
    from_disk = nsr.evaluate(tmp_path / "data", str(tmp_path / "model"), cache=False)
    assert from_disk.results[-1].means() == by_name["histogram"]


def test_prepare_takes_events_without_marks():
    made = nsr.prepare(pd.DataFrame(log()).drop(columns="action"), **{**COLUMNS, "mark": ""})
    assert made.corpus.num_marks == 1


def test_data_that_leaves_nothing_to_judge_gives_a_warning():
    few = pd.DataFrame(log(people=4)).assign(team="a")
    with pytest.warns(UserWarning, match="of 1 query, none is for .*; all queries of one source are in the same split"):
        nsr.prepare(few, **COLUMNS, query_share=0.25)
    with pytest.warns(UserWarning, match="there is one group only"):
        nsr.prepare(few, **COLUMNS, query_share=0.25)


def test_a_model_in_memory_that_learned_the_whole_corpus_is_not_unseen(data, model):
    report = nsr.evaluate(data, [model], corpus="unseen", cache=False)
    assert "none of it is unseen" in report.results[-1].error


def test_methods_lists_what_each_method_can_do():
    methods = nsr.methods()
    assert len(methods) == 16
    assert methods["self"].embeds
    assert methods["self"].needs_labels
    assert not methods["cross"].embeds
    assert methods["cross"].reranks
    assert not methods["histogram"].needs_labels
    assert "gru" in methods
    assert "nothing" not in methods
    assert "histogram-metric" in repr(methods)
    assert "<td" in methods._repr_html_()
    assert list(methods.to_pandas()["name"]) == [method.name for method in methods]
    with pytest.raises(UserError, match="no method is called 'nothing'"):
        methods["nothing"]
    for method in methods:
        assert nsr.make(method.name).name == method.name
    from neuroseqret.methods import is_method

    assert is_method("gru")
    with pytest.raises(UserError, match="'gru' has no setting 'max_steps'; `fit` takes seed and max_seconds"):
        nsr.make("gru", max_steps=2)
