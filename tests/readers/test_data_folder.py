"""Data folders: what belongs together, what may be missing, and that a folder is replaced whole or not at all."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from neuroseqret.data.sequences import EventSequences
from neuroseqret.errors import DataError, UserError
from neuroseqret.readers import read, read_folder, write, write_folder


def batch(prefix: str, groups: list[str] | None, **more: object) -> EventSequences:
    number = len(groups) if groups else 3
    return EventSequences.from_lists(
        [([0.0, 1.0 + i], [0, 1]) for i in range(number)],
        ids=[f"{prefix}{i}" for i in range(number)],
        groups=groups,
        **{"mark_names": ["x", "y"], "time_unit": "days", **more},
    )


CORPUS = batch("c", ["a", "b", "a"])
QUERIES = batch("q", ["a", "b", "b"]).with_column("split", ["train", "validation", "test"])


def test_a_folder_comes_back_whole(tmp_path: Path) -> None:
    made = write_folder(tmp_path / "set", CORPUS, QUERIES, meta={"name": "toy", "seed": 3})
    back = read_folder(tmp_path / "set")
    assert (back.corpus, back.queries, back.name) == (CORPUS, QUERIES, "toy")
    assert back.meta == made.meta == {"name": "toy", "seed": 3, "time_unit": "days", "mark_names": ["x", "y"]}
    assert (back.train.tolist(), back.validation.tolist(), back.test.tolist()) == ([0], [1], [2])
    assert back.relevance is not None
    assert [back.relevance.of(q).tolist() for q in range(3)] == [[0, 2], [1], [1]]
    shown = f"DataFolder 'toy'\n  corpus   {CORPUS!r}\n  queries  {QUERIES!r}: 1 train, 1 validation, 1 test"
    assert repr(back) == shown


def test_qrels_win_over_groups(tmp_path: Path) -> None:
    write_folder(tmp_path / "set", CORPUS, QUERIES, qrels={"q0": {"c1": 2, "c0": 0}})
    relevance = read_folder(tmp_path / "set").relevance
    assert relevance is not None
    assert [relevance.of(q).tolist() for q in range(3)] == [[1], [], []]


def test_a_corpus_alone_is_a_folder(tmp_path: Path) -> None:
    unlabelled = batch("c", None)
    write_folder(tmp_path / "set", unlabelled)
    back = read_folder(tmp_path / "set")
    assert (back.corpus, back.queries, back.relevance) == (unlabelled, None, None)
    assert back.name == "set"
    with pytest.raises(DataError, match=r"has no queries; add queries\.parquet"):
        _ = back.train


def test_without_labels_there_is_no_relevance(tmp_path: Path) -> None:
    write_folder(tmp_path / "set", batch("c", None), batch("q", None))
    back = read_folder(tmp_path / "set")
    assert back.relevance is None
    with pytest.raises(DataError, match="queries have no column 'split'"):
        _ = back.test
    with pytest.raises(DataError, match="no split is called 'dev'; choose from train, validation, test"):
        back.rows("dev")


def test_meta_json_says_what_the_files_do_not(tmp_path: Path) -> None:
    write(CORPUS, tmp_path / "set" / "corpus.parquet")
    bare = EventSequences(CORPUS.table)
    import pyarrow.parquet as pq

    pq.write_table(bare.table.replace_schema_metadata(), tmp_path / "set" / "corpus.parquet")
    assert read(tmp_path / "set" / "corpus.parquet") == bare
    (tmp_path / "set" / "meta.json").write_text(json.dumps({"mark_names": ["x", "y"], "time_unit": "days"}))
    assert read(tmp_path / "set" / "corpus.parquet") == CORPUS
    assert read_folder(tmp_path / "set").corpus == CORPUS
    for bad, message in (
        ("[", "not readable as JSON"),
        ("[]", "not a JSON object"),
        ('{"mark_names": "x"}', "list of"),
    ):
        (tmp_path / "set" / "meta.json").write_text(bad)
        with pytest.raises(DataError, match=f"meta.json: .*{message}"):
            read_folder(tmp_path / "set")


@pytest.mark.parametrize(
    ("corpus", "queries", "message"),
    [
        (CORPUS, batch("c", ["a", "b", "b"]), "sequence c0: is in both corpus and queries"),
        (CORPUS, QUERIES.with_column("split", ["train", "dev", "test"]), "sequence q1: split is 'dev'; use train"),
        (CORPUS, batch("q", ["a"], time_unit="hours"), "time is in days in the corpus but in hours in the queries"),
        (CORPUS, batch("q", ["a"], mark_names=["y", "x"]), "different mark names"),
        (CORPUS, batch("q", None), "the queries have no groups"),
        (CORPUS, QUERIES[[0, 0]], "the id occurs more than once"),
    ],
)
def test_what_does_not_belong_together_is_refused(
    tmp_path: Path, corpus: EventSequences, queries: EventSequences, message: str
) -> None:
    write_folder(tmp_path / "set", CORPUS, QUERIES)
    before = {p.name: p.read_bytes() for p in (tmp_path / "set").iterdir()}
    with pytest.raises(DataError, match=message):
        write_folder(tmp_path / "set", corpus, queries)
    assert {p.name: p.read_bytes() for p in (tmp_path / "set").iterdir()} == before
    assert [p.name for p in tmp_path.iterdir()] == ["set"]
    write(corpus, tmp_path / "set" / "corpus.parquet")
    write(queries, tmp_path / "set" / "queries.parquet")
    with pytest.raises(DataError, match=message) as caught:
        read_folder(tmp_path / "set")
    assert str(tmp_path / "set") in str(caught.value)


def test_qrels_need_queries(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="there are qrels but no queries"):
        write_folder(tmp_path / "set", CORPUS, qrels={"q0": {"c0": 1}})
    with pytest.raises(DataError, match="which is not in the corpus"):
        write_folder(tmp_path / "set", CORPUS, QUERIES, qrels={"q0": {"c9": 1}})
    assert not any(tmp_path.iterdir())


def test_only_a_data_folder_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "set").mkdir()
    write_folder(tmp_path / "set", CORPUS)
    write_folder(tmp_path / "set", CORPUS[:2])
    assert len(read_folder(tmp_path / "set").corpus) == 2
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "letter.txt").write_text("dear")
    with pytest.raises(UserError, match=r"home: exists and holds no corpus.parquet"):
        write_folder(tmp_path / "home", CORPUS)
    assert (tmp_path / "home" / "letter.txt").read_text() == "dear"
    with pytest.raises(DataError, match=r"home: not a data folder \(corpus.parquet is missing\)"):
        read_folder(tmp_path / "home")
    with pytest.raises(DataError, match=r"away: not a data folder \(there is no such folder\)"):
        read_folder(tmp_path / "away")
    with pytest.raises(UserError, match=r"is a data folder; name a file in it, such as .*corpus.parquet, or use"):
        read(tmp_path / "set")
    (tmp_path / "set" / "corpus.parquet").rename(tmp_path / "set" / "queries.parquet")
    with pytest.raises(UserError, match=r"is a data folder; name a file in it, such as .*queries.parquet, or use"):
        read(tmp_path / "set")  # queries that lost their corpus are not taken for one


def test_text_files_of_other_editors(tmp_path: Path) -> None:
    write_folder(tmp_path / "set", CORPUS, QUERIES, qrels={"q0": {"c1": 1}})
    for name in ("meta.json", "qrels.txt"):
        file = tmp_path / "set" / name
        file.write_bytes(b"\xef\xbb\xbf" + file.read_bytes().replace(b"\n", b"\r\n"))
    back = read_folder(tmp_path / "set")
    assert back.meta["mark_names"] == ["x", "y"]
    assert back.relevance is not None
    assert back.relevance.of(0).tolist() == [1]


def test_meta_that_is_not_json_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="meta is not JSON"):
        write_folder(tmp_path / "set", CORPUS, meta={"when": object()})
    assert not any(tmp_path.iterdir())


def test_one_sequence_is_a_corpus_too(tmp_path: Path) -> None:
    both = EventSequences.from_lists([([0.0, 1.0], [0, 1]), ([2.0], [1])], ids=["a", "b"], groups=["g", "g"])
    made = write_folder(tmp_path / "one", both[0], both[1])
    assert (made.corpus, made.queries) == (both[:1], both[1:])
    assert read_folder(tmp_path / "one").corpus == both[:1]
