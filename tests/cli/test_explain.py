"""From data to explained hits on the command line: fit, index, search, the stored sequences by id."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from cli.calling import call
from neuroseqret.data.sequences import EventSequences
from neuroseqret.errors import UserError
from neuroseqret.index import Index
from neuroseqret.methods.registry import make
from neuroseqret.models.cross.cross_attention import CrossAttention
from neuroseqret.models.self_attention.model import SelfAttention
from neuroseqret.readers import write
from simulated import simulate_retrieval


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, EventSequences]:
    folder = tmp_path_factory.mktemp("explain")
    corpus, queries = simulate_retrieval(groups=3, per_group=6, seed=2)
    short = {"warm_up": {"steps": 2}, "joint": {"steps": 2}, "head": {"steps": 5}, "selection": None}
    model = SelfAttention(**short).fit(queries, corpus)
    Index.create(model, folder / "whole", corpus)
    Index.create(model, folder / "windows", corpus, window_events=10)
    write(queries[:2].with_column("id", ["a/b c", "q2"]), folder / "queries.parquet")
    return folder, corpus


@pytest.mark.parametrize("index", ["whole", "windows"])
def test_search_explains_the_best_hit_of_each_query(made: tuple[Path, EventSequences], index: str) -> None:
    folder, _ = made
    done = call(
        "search", str(folder / index), str(folder / "queries.parquet"), "--explain", str(folder / f"why {index}")
    )
    assert done.returncode == 0, done.stderr
    written = sorted((folder / f"why {index}").iterdir())
    assert [path.name for path in written] == ["0-a_b_c.png", "1-q2.png"]
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in written)


def test_at_most_ten_are_explained_unless_more_are_asked_for(
    made: tuple[Path, EventSequences], monkeypatch: pytest.MonkeyPatch
) -> None:
    """How many files are written; drawing them takes long, and is tested above."""
    monkeypatch.setattr("neuroseqret.explanation.picture", lambda found, file: Path(file).touch())
    folder, corpus = made
    write(corpus[:12], folder / "twelve.parquet")
    search = ("search", str(folder / "whole"), str(folder / "twelve.parquet"), "-k", "1", "--explain")
    for words, number, said in (
        ((str(folder / "ten"),), 10, "10 of 12; choose others with --query or --explain-most"),
        ((str(folder / "all"), "--explain-most", "12"), 12, "explanations written to"),
        ((str(folder / "two"), "--limit", "2"), 2, "explanations written to"),
    ):
        done = call(*search, *words)
        assert done.returncode == 0, done.stderr
        assert said in done.stderr
        assert len(list(Path(words[0]).iterdir())) == number


def test_stored_sequences_come_back_by_id(made: tuple[Path, EventSequences]) -> None:
    folder, corpus = made
    index = Index.open(folder / "whole")
    wanted = [corpus[4].id, corpus[1].id]
    back = index.get(wanted)
    assert back.ids.to_pylist() == wanted
    assert back.to_lists() == corpus[[4, 1]].to_lists()
    assert back.groups is not None
    assert back.groups.to_pylist() == [corpus[4].group, corpus[1].group]
    with pytest.raises(UserError, match='holds no sequence "it\'s"'):
        index.get("it's")


def test_hits_are_printed_and_what_cannot_be_explained_is_told(made: tuple[Path, EventSequences]) -> None:
    folder, corpus = made
    make("random").fit(corpus, corpus).save(folder / "random")
    pairs = [(np.arange(2500.0), np.zeros(2500, int)), (corpus[0].times, corpus[0].marks)]
    write(EventSequences.from_lists(pairs, ids=["long", "$\\frac$"]), folder / "mixed.parquet")
    done = call("search", str(folder / "whole"), str(folder / "mixed.parquet"), "--explain", str(folder / "mixed"),
                "--format", "trec", "--rerank", str(folder / "random"))  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert {line.split()[0] for line in done.stdout.splitlines()} == {"long", "$\\frac$"}
    assert "no explanation for query long: sequence long: 2,500 events are too many" in done.stderr
    assert re.search(r"explanations written to .*: 1\n", done.stderr)
    assert "the score of the index's model, not that of" in done.stderr
    assert [path.name for path in (folder / "mixed").iterdir()] == ["1-_frac_.png"]


def test_a_reranked_hit_is_explained_by_the_model_that_reranked_it(
    made: tuple[Path, EventSequences],
) -> None:
    folder, corpus = made
    first = SelfAttention.load(folder / "whole" / "model")
    second = CrossAttention(first_stage=first, memory={"out_of_fold_steps": 3})
    _, queries = simulate_retrieval(groups=3, per_group=6, seed=2)
    second.fit(queries, corpus)
    second.correction.strength, second.correction.event_strength = 0.5, 0.3
    second.save(folder / "cross")
    drawn = folder / "why reranked"
    done = call("search", str(folder / "whole"), str(folder / "queries.parquet"), "--explain", str(drawn),
                "--rerank", str(folder / "cross"))  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "not that of" not in done.stderr
    assert len(list(drawn.iterdir())) == 2


def test_a_model_that_cannot_be_explained_is_told_before_the_search(made: tuple[Path, EventSequences]) -> None:
    folder, corpus = made
    Index.create(make("histogram").fit(corpus, corpus), folder / "histogram", corpus)
    done = call("search", str(folder / "histogram"), str(folder / "missing.parquet"), "--explain", str(folder / "why"))
    assert (done.returncode, done.stdout) == (2, "")
    assert "only a 'self' model and second stages" in done.stderr
    assert not (folder / "why").exists()
