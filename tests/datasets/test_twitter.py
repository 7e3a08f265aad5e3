from __future__ import annotations

import json

import numpy as np
import pytest

from neuroseqret.datasets import twitter
from neuroseqret.datasets.prepare import prepare
from neuroseqret.errors import DataError
from neuroseqret.readers.data_folder import read_folder


def edge(above, node, minutes):
    return f"['{above}', '{above}t', '0.0']->['{node}', '{node}t', '{minutes}']\n"


def test_trees_are_those_of_the_benchmark_set(shared_raw, shared_data):
    made = twitter.read(shared_raw / "twitter15")
    folder = read_folder(shared_data / "twitter")
    wanted = {s.metadata["source"]: s for part in (folder.corpus, folder.queries) for s in part}
    assert len(made) == 30
    for sequence in made:
        same = wanted[sequence.metadata["source"]]
        assert sequence.group == same.group
        assert np.array_equal(sequence.times, same.times)
        assert np.array_equal(sequence.marks, same.marks)
        assert sequence.metadata["cascade_size"] == same.metadata["cascade_size"]


def test_data_folder_of_the_raw_sample(shared_raw, tmp_path):
    counts = prepare("twitter", shared_raw / "twitter15", tmp_path / "t").meta["counts"]
    assert (counts["corpus"], counts["queries"], counts["groups"], counts["events"]) == (24, 6, 4, 5055)


def test_cascade(tmp_path):
    path = tmp_path / "1.txt"
    path.write_text(
        "['ROOT', 'ROOT', '0.0']->['r', 'rt', '0.0']\n"
        + edge("r", "a", -0.5)  # a clock error
        + edge("a", "b", 2.0)
        + edge("b", "c", 3.0)
        + edge("c", "d", 4.0)
        + edge("r", "b", 5.0)  # listed twice: the earlier counts
        + edge("nobody", "e", 1.0)
        + "\n"
    )
    times, depths = twitter.cascade(path)
    assert times.tolist() == [0.0, 1.0, 2.0, 3.0, 4.0]
    assert depths.tolist() == [1, 1, 2, 3, 4]


def test_tweets_whose_labels_differ_are_left_out(tmp_path):
    for name, labels in (("twitter15", "true:1\nfalse:2\n"), ("twitter16", "false:1\nfalse:2\n")):
        (tmp_path / name / "tree").mkdir(parents=True)
        (tmp_path / name / "label.txt").write_text(labels)
        for tweet in "12":
            edges = "".join(edge("r", f"n{k}", k) for k in range(12))
            (tmp_path / name / "tree" / f"{tweet}.txt").write_text("['ROOT', 'ROOT', '0']->['r', 'rt', '0']\n" + edges)
    made = twitter.read(tmp_path)
    assert made.column("source").to_pylist() == ["2"]
    assert made.column("collection").to_pylist() == ["twitter15"]


def test_retweet_streams_get_relevance_from_subsequences(tmp_path):
    rng = np.random.default_rng(0)
    rows = [
        {
            "time_since_start": np.cumsum(rng.exponential(size=100)).round(3).tolist(),
            "time_since_last_event": [0.0] * 100,
            "type_event": rng.integers(0, 3, 100).tolist(),
            "seq_len": 100,
            "seq_idx": k,
            "dim_process": 3,
        }
        for k in range(12)
    ]
    (tmp_path / "raw").mkdir()
    (tmp_path / "raw" / "train.json").write_text(json.dumps(rows))
    made = prepare("twitter", tmp_path / "raw", tmp_path / "data")
    assert made.meta["relevance"] == "subsequences"
    assert made.corpus.mark_names == tuple(twitter.FAME)
    assert len(set(made.corpus.groups.to_pylist())) == 12
    assert made.corpus.lengths.tolist() == [20] * len(made.corpus)
    events = {(s.group, t) for part in (made.corpus, made.queries) for s in part for t in s.times.tolist()}
    assert len(events) == int(made.corpus.lengths.sum() + made.queries.lengths.sum())  # none in two sequences


def test_streams_in_two_forms_are_read_once(tmp_path):
    rows = [
        {"time_since_start": [k + 0.1 * n for n in range(12)], "type_event": [n % 3 for n in range(12)], "seq_idx": k}
        for k in (0, 0, 1)
    ]
    for number, row in enumerate(rows):
        row |= {"seq_idx": number, "seq_len": 12, "dim_process": 3, "time_since_last_event": [0.0] * 12}
    (tmp_path / "train.json").write_text(json.dumps(rows))
    once = twitter.read(tmp_path)
    assert len(once) == 3  # equal streams of one file are two
    (tmp_path / "train.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert twitter.read(tmp_path) == once
    rows[1]["time_since_start"][3] += 0.01
    (tmp_path / "train.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert len(twitter.read(tmp_path)) == 4


def test_pickled_streams_need_a_word(tmp_path):
    import pickle

    stream = [{"time_since_start": float(k), "time_since_last_event": 1.0, "type_event": k % 3} for k in range(30)]
    (tmp_path / "train.pkl").write_bytes(pickle.dumps({"dim_process": 3, "train": [stream, stream]}))
    with pytest.raises(Exception, match="pickle"):
        twitter.read(tmp_path)
    assert len(twitter.read(tmp_path, allow_pickle=True)) == 2


def test_broken_files(tmp_path):
    with pytest.raises(DataError, match=r"expected label\.txt"):
        twitter.read(tmp_path)
    (tmp_path / "tree").mkdir()
    (tmp_path / "label.txt").write_text("true:1\nfalse2\n")
    with pytest.raises(DataError, match=r"label\.txt: line 2: 'false2' is not label:tweet"):
        twitter.read(tmp_path)
    (tmp_path / "label.txt").write_text("true:1\n")
    with pytest.raises(DataError, match=r"expected tree/<tweet>\.txt"):
        twitter.read(tmp_path)
    (tmp_path / "tree" / "1.txt").write_text(edge("r", "a", "soon"))
    with pytest.raises(DataError, match=r"1\.txt: line 1: not an edge"):
        twitter.read(tmp_path)
    (tmp_path / "tree" / "1.txt").write_text(edge("r", "a", 1))
    with pytest.raises(DataError, match="no edge from ROOT"):
        twitter.read(tmp_path)
