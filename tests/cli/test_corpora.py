"""What `embed` and `index` take for a corpus: any file, a folder of Parquet files, a data folder."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from cli.calling import call
from naive.index import TinyEmbedder, some_sequences
from neuroseqret import methods
from neuroseqret.index import Index
from neuroseqret.readers import LossWarning, write, write_folder

CORPUS = some_sequences(18)


@pytest.fixture(autouse=True)
def _tiny_method(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(methods.MODELS, "tiny", "naive.index:TinyEmbedder")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model, and the corpus in several forms."""
    made = tmp_path_factory.mktemp("corpora")
    TinyEmbedder().save(made / "model")
    write_folder(made / "data", CORPUS)
    write(CORPUS[:9], made / "parts" / "part-0.parquet")
    write(CORPUS[9:], made / "parts" / "part-1.parquet")
    write(CORPUS, made / "corpus.json", "easytpp-json")
    return made


@pytest.mark.parametrize("corpus", ["data", "parts", "corpus.json"])
def test_index_and_embed(folder: Path, corpus: str, tmp_path: Path) -> None:
    given = str(folder / "model"), str(folder / corpus)
    done = call("index", "create", *given, "--out", str(tmp_path / "index"))
    assert done.returncode == 0, done.stderr
    assert len(Index.open(tmp_path / "index")) == len(CORPUS)
    if corpus != "data":
        done = call("embed", *given, "--out", str(tmp_path / "e.parquet"))
        assert done.returncode == 0, done.stderr
        assert pq.read_metadata(tmp_path / "e.parquet").num_rows == len(CORPUS)


def test_ids_to_remove_from_a_file_of_another_editor(folder: Path, tmp_path: Path) -> None:
    given = str(folder / "model"), str(folder / "data")
    call("index", "create", *given, "--out", str(tmp_path / "index"))
    ids = CORPUS.ids.to_pylist()
    (tmp_path / "ids.txt").write_bytes(b"\xef\xbb\xbf" + f"{ids[0]}\r\n\r\n{ids[1]}".encode())
    done = call("index", "remove", str(tmp_path / "index"), "--ids", str(tmp_path / "ids.txt"))
    assert done.returncode == 0, done.stderr
    assert len(Index.open(tmp_path / "index")) == len(CORPUS) - 2
    (tmp_path / "ids.txt").write_bytes(b"\xff\xfe")
    done = call("index", "remove", str(tmp_path / "index"), "--ids", str(tmp_path / "ids.txt"))
    assert (done.returncode, len(done.stderr.strip().splitlines())) == (2, 1)
    assert "ids.txt: not UTF-8 text" in done.stderr


def test_what_needs_another_command_first_says_which(folder: Path, tmp_path: Path) -> None:
    with pytest.warns(LossWarning):
        write(CORPUS, tmp_path / "a.pkl")
    (tmp_path / "a.csv").write_text("who,time,mark\na,1,0\n")
    call("index", "create", str(folder / "model"), str(folder / "data"), "--out", str(tmp_path / "index"))
    advice = {
        str(tmp_path / "a.pkl"): "run 'neuroseqret data convert --allow-pickle' first",
        str(tmp_path / "a.csv"): "say --column id=...",
        str(folder / "data"): f"name a file in it, such as {folder / 'data' / 'corpus.parquet'}",
    }
    for given, words in advice.items():
        for done in (
            call("embed", str(folder / "model"), given, "--out", str(tmp_path / "e.parquet")),
            call("search", str(tmp_path / "index"), given),
        ):
            assert (done.returncode, len(done.stderr.strip().splitlines())) == (2, 1)
            assert words in done.stderr
