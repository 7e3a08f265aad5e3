from __future__ import annotations

import numpy as np
import pytest
from typer.testing import CliRunner

from neuroseqret.data.sequences import EventSequences
from neuroseqret.datasets import prepare as recipes
from neuroseqret.datasets.prepare import RECIPES, divide, options_of, prepare, prepare_sequences, tail_of_groups
from neuroseqret.errors import DataError, UserError
from neuroseqret.readers import read_folder, write


def labelled(groups=4, sources=5, each=3, length=12, seed=0):
    rng = np.random.default_rng(seed)
    n = groups * sources * each
    rows = np.arange(n)
    return EventSequences.from_lists(
        [(np.cumsum(rng.exponential(size=length)), rng.integers(0, 3, length)) for _ in range(n)],
        groups=[f"g{r // (sources * each)}" for r in rows],
        metadata={"source": [f"s{r // each}" for r in rows], "position": (rows % each).tolist()},
        mark_names=["a", "b", "c"],
        time_unit="seconds",
    )


def pairs(sequences):
    return {(s.group, s.metadata["source"]) for s in sequences}


def test_queries_and_corpus_of_a_group_share_no_source_and_ids_tell_nothing(tmp_path):
    made = prepare_sequences(labelled(), tmp_path / "d", query_share=0.2, anonymous=True)
    again = read_folder(tmp_path / "d")
    assert again.corpus == made.corpus
    assert (len(made.corpus), len(made.queries)) == (48, 12)
    assert not pairs(made.corpus) & pairs(made.queries)
    assert set(made.queries.column("split").to_pylist()) <= {"train", "validation", "test"}
    numbers = [int(i.split("-")[1]) for i in made.corpus.ids.to_pylist() + made.queries.ids.to_pylist()]
    assert sorted(numbers) == list(range(60))
    assert numbers != sorted(numbers)
    assert made.meta["counts"]["corpus"] == 48
    assert made.meta["mark_names"] == ["a", "b", "c"]


def test_a_source_that_groups_share_is_divided_group_by_group():
    some = labelled(groups=6)
    corpus, queries = divide(some.with_column("source", [f"s{row % 15 // 3}" for row in range(len(some))]), 0.2)
    assert not pairs(corpus) & pairs(queries)
    assert {source for _, source in pairs(corpus)} & {source for _, source in pairs(queries)}


def test_sequences_of_a_file_keep_their_ids(tmp_path):
    some = labelled(length=60).without_columns("source", "position")
    some = some.with_column("id", [f"customer {row}" for row in range(len(some))])
    write(some, tmp_path / "events.parquet")
    assert run("--from", tmp_path / "events.parquet", "--out", tmp_path / "d").exit_code == 0
    made = read_folder(tmp_path / "d")
    original = dict(zip(some.ids.to_pylist(), some.to_lists(), strict=True))
    both = {s.id: (s.times.tolist(), s.marks.tolist()) for part in (made.corpus, made.queries) for s in part}
    assert both == original
    assert made.corpus.ids.to_pylist() != sorted(made.corpus.ids.to_pylist(), key=list(original).index)  # no order
    done = run("--from", tmp_path / "events.parquet", "--relevance", "subsequences", "--out", tmp_path / "p")
    assert done.exit_code == 0, done.exception
    assert set(read_folder(tmp_path / "p").corpus.ids.to_pylist()) >= {"customer 0[0:12]", "customer 59[24:36]"}


def test_what_is_left_out_is_told(tmp_path):
    some = labelled(groups=1, sources=20, each=1)
    pairs_of_two = labelled(groups=20, sources=2, each=1, seed=1)
    few = pairs_of_two.with_column("group", [f"pair {row // 2}" for row in range(40)])
    again = some[:2].with_column("id", ["x", "y"])
    parts = [some, few.with_column("id", [f"f{row}" for row in range(40)]), again]
    write(EventSequences.concat(parts).without_columns("source", "position"), tmp_path / "events.parquet")
    done = run("--from", tmp_path / "events.parquet", "--out", tmp_path / "d")
    assert "17 corpus sequences, 3 queries" in done.output
    wanted = {"sequences equal to another one": 2, "sequences of groups with fewer than 3 in the corpus": 40}
    assert read_folder(tmp_path / "d").meta["left_out"] == wanted
    told = " ".join(done.output.split())
    assert f"left out: {', '.join(f'{number} {what}' for what, number in wanted.items())}" in told
    whole = prepare_sequences(labelled(), tmp_path / "whole", query_share=0.2)
    assert whole.meta["left_out"] == {}
    last = labelled(groups=2, sources=1, each=9)
    tail = prepare_sequences(last, tmp_path / "tail", last_third=True)
    assert tail.meta["left_out"] == {"sequences next to the queries of their group": 2}


def test_equal_histories_count_once_without_labels_too(tmp_path):
    some = labelled(length=63).without_columns("group", "source", "position")
    short = labelled(groups=1, sources=1, each=2, length=7, seed=3).without_columns("group", "source", "position")
    parts = [some, some.with_column("id", [f"x{i}" for i in range(60)]), short.with_column("id", ["a", "b"])]
    doubled = EventSequences.concat(parts)
    made = prepare_sequences(doubled, tmp_path / "d", relevance="subsequences", window_events=12)
    assert len(set(made.corpus.groups.to_pylist())) == 60
    assert made.meta["left_out"] == {
        "sequences equal to another one": 60,
        "sequences of fewer than 12 events": 2,
        "events outside the windows": 60 * (12 + 3),
    }
    paper = prepare_sequences(doubled, tmp_path / "p", relevance="overlapping")
    assert len(paper.queries) == 60
    assert paper.meta["left_out"] == {
        "sequences equal to another one": 60,
        "sequences with too few events for two windows": 2,
    }


def test_equal_sequences_count_once_and_small_groups_are_dropped():
    some = labelled(groups=2)
    doubled = EventSequences.concat([some, some.with_column("id", [f"x{i}" for i in range(len(some))])])
    corpus, queries = divide(doubled, 0.2)
    assert len(corpus) + len(queries) == len(some)
    lonely = labelled(groups=3)[np.r_[0:30, 30:32]]  # two sequences of the third group
    corpus, queries = divide(lonely, 0.2)
    assert set(corpus.groups.to_pylist()) == {"g0", "g1"}


def test_groups_that_are_all_too_small_are_told_by_their_size():
    small = labelled(groups=4, sources=1, each=2)
    with pytest.raises(DataError, match="a query and 3 other sequences from other sources; the largest has 2"):
        divide(small, 0.2)
    with pytest.raises(DataError, match=r"a query and 3 other sequences; .*use --relevance subsequences"):
        divide(small.without_columns("source"), 0.2)


def test_a_file_may_be_mended_on_the_way(tmp_path):
    lines = [f"{s},{10 - t + t * s / 100},x,{'ab'[s % 2]}" for s in range(20) for t in range(4)]
    (tmp_path / "back.csv").write_text("\n".join(["id,time,mark,group", *lines]) + "\n")
    words = ("--from", tmp_path / "back.csv", "--out", tmp_path / "data")
    assert "repair with 'sort'" in str(run(*words).exception)
    assert run(*words, "--repair", "sort").exit_code == 0
    assert (np.diff(read_folder(tmp_path / "data").corpus[0].times) > 0).all()
    assert "--repair is for --from" in str(
        run("sports", tmp_path, "--out", tmp_path / "d", "--repair", "sort").exception
    )


def test_tail_of_groups():
    one = labelled(groups=1, sources=1, each=9)
    is_query, is_corpus = tail_of_groups(one)
    assert np.flatnonzero(is_query).tolist() == [6, 7, 8]
    assert np.flatnonzero(is_corpus).tolist() == [0, 1, 2, 3, 4]  # window 5 is left out
    two = labelled(groups=1, sources=2, each=6)
    is_query, is_corpus = tail_of_groups(two)
    assert np.flatnonzero(is_query).tolist() == [10, 11]
    assert np.flatnonzero(is_corpus).tolist() == list(range(6))


def test_unlabelled_sequences(tmp_path):
    some = labelled(length=60).without_columns("group", "source", "position")
    with pytest.raises(DataError, match="use --relevance subsequences"):
        prepare_sequences(some, tmp_path / "d", relevance="groups")
    made = prepare_sequences(some, tmp_path / "d", relevance="subsequences")
    assert made.meta["window_events"] == 12
    assert made.relevance.counts.min() >= 3
    paper = prepare_sequences(some, tmp_path / "p", relevance="overlapping")
    assert len(paper.queries) == len(some)
    with pytest.raises(UserError, match="relevance is 'nothing'; choose from groups"):
        prepare_sequences(some, tmp_path / "x", relevance="nothing")
    assert not (tmp_path / "x").exists()


def test_every_set_documents_itself_and_its_options():
    for name in RECIPES:
        text = recipes.module(name).__doc__
        assert "Download" in text
        assert set(options_of(name)) >= {"events"} or name == "audio"
    with pytest.raises(UserError, match="no data set is called 'healt'; choose from audio"):
        options_of("healt")
    with pytest.raises(UserError, match="twitter has no option --marks; it has --events, --min-events, --allow-pickle"):
        prepare("twitter", "raw", "out", marks=3)


def run(*words):
    import typer

    from neuroseqret.cli.data_prepare import prepare as command

    app = typer.Typer()
    app.command()(command)
    return CliRunner().invoke(app, [str(w) for w in words])


def test_command(tmp_path, shared_raw):
    done = run("twitter", shared_raw / "twitter15", "--out", tmp_path / "t", "--events", 50, "--query-share", 0.3)
    assert done.exit_code == 0, done.exception
    made = read_folder(tmp_path / "t")
    assert f"{len(made.corpus)} corpus sequences, {len(made.queries)} queries" in done.output.replace("\n", " ")
    assert len(made.corpus) + len(made.queries) == 30
    assert made.corpus.lengths.max() == 50
    assert made.meta["query_share"] == 0.3
    assert isinstance(run("--out", tmp_path / "x").exception, UserError)
    assert "give the folder" in str(run("health", "--out", tmp_path / "x").exception)
    assert "for a file say --from" in str(run("events.csv", "--out", tmp_path / "x").exception)
    assert "--column is for --from" in str(run("health", ".", "--column", "id=x", "--out", tmp_path / "x").exception)
    for words in (["health"], ["audio", "--relevance", "overlapping"]):
        done = run(words[0], shared_raw, *words[1:], "--query-share", 0.2, "--out", tmp_path / "x")
        assert "leave out --query-share" in str(done.exception)
    assert "for the named sets" in str(run("--from", "f.csv", "--marks", 3, "--out", tmp_path / "x").exception)


def test_command_on_any_file(tmp_path):
    some = labelled(length=60).without_columns("source", "position")
    write(some, tmp_path / "labelled.parquet")
    write(some.without_columns("group"), tmp_path / "plain.parquet")
    assert run("--from", tmp_path / "labelled.parquet", "--out", tmp_path / "a").exit_code == 0
    assert set(read_folder(tmp_path / "a").corpus.groups.to_pylist()) == {"g0", "g1", "g2", "g3"}
    done = run(
        "--from", tmp_path / "plain.parquet", "--relevance", "subsequences", "--events", 10, "--out", tmp_path / "b"
    )
    assert done.exit_code == 0, done.exception
    assert read_folder(tmp_path / "b").corpus.lengths.max() == 10
    done = run("--from", tmp_path / "plain.parquet", "--query-share", 0.2, "--out", tmp_path / "c")
    assert "(--query-share) is for relevance 'groups'" in str(done.exception)


def test_sequences_without_a_group_stay_as_distractors():
    some = labelled(groups=2)
    groups = some.groups.to_pylist()
    corpus, queries = divide(some.with_column("group", [None, None, *groups[2:]]), 0.2)
    assert corpus.groups.null_count == 2
    assert queries.groups.null_count == 0


def test_a_group_called_none_is_not_the_lack_of_one():
    some = labelled(groups=3)
    groups = some.groups.to_pylist()
    corpus, queries = divide(some.with_column("group", [None] * 4 + ["None"] * 2 + groups[6:]), 0.2)
    assert corpus.groups.null_count == 4
    assert "None" not in corpus.groups.to_pylist()  # too few
    assert set(queries.groups.to_pylist()) == {"g0", "g1", "g2"}


def test_a_source_of_events_is_none_of_sequences(tmp_path):
    some = labelled().without_columns("source", "position")
    some = some.with_column("source", [["web"] * 6 + ["app"] * 6] * len(some))
    for relevance in ("groups", "subsequences"):
        with pytest.raises(DataError, match=r"column 'source' has one value per event.*; rename it"):
            prepare_sequences(some, tmp_path / "d", relevance=relevance)


def test_a_bad_out_is_told_before_anything_is_read(tmp_path):
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "letter.txt").write_text("dear")
    for words in (["--from", tmp_path / "nothing.csv"], ["health", tmp_path / "nothing"]):
        assert "home: exists and holds no corpus.parquet" in str(run(*words, "--out", tmp_path / "home").exception)


def test_preparing_again_in_the_folder_itself(tmp_path, monkeypatch):
    write(labelled().without_columns("source", "position"), tmp_path / "events.parquet")
    assert run("--from", tmp_path / "events.parquet", "--out", tmp_path / "data").exit_code == 0
    monkeypatch.chdir(tmp_path / "data")
    other = ("--from", "../events.parquet", "--out", ".", "--seed", 1)
    assert "made with other options; add --force" in str(run(*other).exception)
    assert read_folder(".").meta["seed"] == 0
    done = run(*other, "--force")
    assert done.exit_code == 0, done.exception
    assert run(*other).exit_code == 0  # the same command again
    assert read_folder(".").meta["seed"] == 1
    assert read_folder(".").name == "data"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data", "events.parquet"]
    (tmp_path / "data" / "notes.txt").write_text("mine")
    assert "holds 'notes.txt'" in str(run(*other).exception)
