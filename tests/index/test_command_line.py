from __future__ import annotations

import json

import pytest
import typer
from typer.testing import CliRunner

from naive import index as naive
from neuroseqret.cli.index import index_app
from neuroseqret.cli.search import search
from neuroseqret.errors import UserError
from neuroseqret.index import Index
from neuroseqret.readers import read_run, write

app = typer.Typer()
app.add_typer(index_app, name="index")
app.command()(search)


def call(*arguments):
    """Run a command; errors come through as they are."""
    result = CliRunner().invoke(app, [str(a) for a in arguments], catch_exceptions=False, standalone_mode=False)
    if result.exception:
        raise result.exception
    return result


@pytest.fixture
def made(tiny, tmp_path):
    tiny.save(tmp_path / "model")
    write(naive.some_sequences(40), tmp_path / "corpus.parquet")
    write(naive.some_sequences(3, seed=9, prefix="q").without_columns("role", "year"), tmp_path / "queries.parquet")
    call("index", "create", tmp_path / "model", tmp_path / "corpus.parquet", "--out", tmp_path / "index")
    return tmp_path


def test_create_add_remove_info(made):
    assert len(Index.open(made / "index")) == 40
    write(naive.some_sequences(45), made / "more.parquet")
    call("index", "add", made / "index", made / "more.parquet")
    assert len(Index.open(made / "index")) == 45
    (made / "ids.txt").write_text("s1\ns2\n")
    call("index", "remove", made / "index", "s0", "--ids", made / "ids.txt")
    told = json.loads(call("index", "info", made / "index", "--json").stdout)
    assert (told["sequences"], told["candidates"], told["dimension"]) == (42, "exhaustive", 16)
    assert "sequences: 42" in call("index", "info", made / "index").stdout


def test_search_in_three_formats(made):
    index, queries = Index.open(made / "index"), naive.some_sequences(3, seed=9, prefix="q")
    expected = {hits.query: [hit.id for hit in hits] for hits in index.search(queries, 4)}
    (made / "run").write_text(
        call("search", made / "index", made / "queries.parquet", "-k", 4, "--format", "trec").stdout
    )
    run = read_run(made / "run")
    assert {query: sorted(hits, key=lambda i: -hits[i]) for query, hits in run.items()} == expected
    answer = json.loads(call("search", made / "index", made / "queries.parquet", "-k", 4, "--format", "json").stdout)
    assert {one["query"]: [hit["id"] for hit in one["hits"]] for one in answer} == expected
    assert answer[0]["comparisons"] == 40
    assert answer[0]["hits"][0]["metadata"]["role"] in ("GK", "DF", "MF")
    table = call("search", made / "index", made / "queries.parquet", "-k", 4).stdout
    assert all(name in table for names in expected.values() for name in names)
    filtered = call("search", made / "index", made / "queries.parquet", "--format", "json", "--where", "role = 'GK'")
    assert {hit["metadata"]["role"] for one in json.loads(filtered.stdout) for hit in one["hits"]} == {"GK"}


def test_json_has_null_where_a_number_is_none(made, tiny):
    corpus = naive.some_sequences(3, prefix="x").with_column("size", [float("nan"), float("inf"), 1.5])
    corpus = corpus.with_column("sizes", [[float("nan"), 1.0]] * 3)
    Index.create(tiny, made / "sizes", corpus)
    told = call("search", made / "sizes", made / "queries.parquet", "--format", "json").stdout
    answer = json.loads(told, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))
    found = {hit["id"]: hit["metadata"] for hit in answer[0]["hits"]}
    assert [found[name]["size"] for name in ("x0", "x1", "x2")] == [None, None, 1.5]
    assert found["x0"]["sizes"] == [None, 1.0]


def test_windows_and_reranking(made):
    naive.LengthReranker().save(made / "reranker")
    call("index", "create", made / "model", made / "corpus.parquet", "--out", made / "parts", "--window", 5)
    reranked = call(
        "search", made / "parts", made / "queries.parquet", "--format", "json", "--rerank", made / "reranker"
    )
    hit = json.loads(reranked.stdout)[0]["hits"][0]
    assert hit["window"] == f"{hit['id']}[{hit['offset']}:{hit['stop']}]"
    assert "events" in call("search", made / "parts", made / "queries.parquet").stdout


def test_mistakes(made):
    with pytest.raises(UserError, match="no format is called 'xml'"):
        call("search", made / "index", made / "queries.parquet", "--format", "xml")
    with pytest.raises(UserError, match="no ids given"):
        call("index", "remove", made / "index")
    with pytest.raises(UserError, match="there is an index already"):
        call("index", "create", made / "model", made / "corpus.parquet", "--out", made / "index")
    with pytest.raises(UserError, match="--step needs --window"):
        call("index", "create", made / "model", made / "corpus.parquet", "--out", made / "x", "--step", 3)
    with pytest.raises(UserError, match="not a model folder"):
        call("index", "create", made / "nothing", made / "corpus.parquet", "--out", made / "x")
    with pytest.raises(UserError, match="nothing"):
        call("index", "create", made / "model", made / "nothing", "--out", made / "x")
    assert not (made / "x").exists()
