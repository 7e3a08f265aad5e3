"""Paths that the system refuses, damaged JSON and small numpy numbers: one line or an answer, never a traceback."""

from __future__ import annotations

import errno
from pathlib import Path

import numpy as np
import pytest

import neuroseqret as nsr
from naive import index as naive
from neuroseqret import Index, UserError

TOO_LONG = "x" * 300


@pytest.fixture
def made(tiny, tmp_path):
    Index.create(tiny, tmp_path / "index", naive.some_sequences(5))
    return tmp_path / "index"


@pytest.mark.parametrize(
    "use",
    [
        Index.open,
        lambda path: Index.create(naive.TinyEmbedder(), path),
        lambda path: Index.create(path, "index"),
        lambda path: naive.TinyEmbedder().save(path),
        nsr.load,
        nsr.read,
        lambda path: nsr.read(source=path),
        lambda path: list(nsr.scan(path)),
        nsr.read_folder,
    ],
)
def test_a_path_that_the_system_refuses_is_named(tmp_path, use):
    with pytest.raises(
        UserError, match=rf"{TOO_LONG}.*: cannot be used \(File name too long\); check the path"
    ) as caught:
        use(tmp_path / TOO_LONG)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("file", ["index.json", "model/config.json"])
def test_a_file_that_may_not_be_read_is_named(made, monkeypatch, file):
    refused = made / file

    def read_text(path, *args, **kwargs):
        if path == refused:
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return original(path, *args, **kwargs)

    original = Path.read_text
    monkeypatch.setattr(Path, "read_text", read_text)
    with pytest.raises(UserError, match=rf"{file}: cannot be used \(Permission denied\)"):
        Index.open(made)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[" * 100_000, "nested too deep"),
        ('{"a": ' * 200 + "1" + "}" * 200, "nested too deep"),
        ("[" * 900 + "]" * 900, "nested too deep"),
        ('{"format": 1' + "0" * 5000 + "}", "5001 digits"),
        ('{"format": ', "Expecting value"),
        (b"\xff", "invalid start byte"),
    ],
)
@pytest.mark.parametrize("file", ["index.json", "model/config.json"])
def test_damaged_json_is_one_line(made, file, text, message):
    (made / file).write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(UserError, match=rf"{file}: damaged \(.*{message}.*again") as caught:
        Index.open(made)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize(
    ("file", "format", "message"),
    [("index.json", "neuroseqret-index", "version 999"), ("model/config.json", "neuroseqret-model", "version 999")],
)
def test_a_version_of_thousands_of_digits_is_one_short_line(made, file, format, message):
    (made / file).write_text(f'{{"format": "{format}", "format_version": {"9" * 4000}}}')
    with pytest.raises(UserError, match=message) as caught:
        Index.open(made)
    assert len(str(caught.value)) < 500


def test_half_a_character_in_a_model_config_is_found_by_its_hash(made):
    (made / "model" / "config.json").write_text(
        '{"format": "neuroseqret-model", "format_version": 3, "model": "\\ud800"}'
    )
    with pytest.raises(UserError, match="changed since it was written"):
        Index.open(made)


def test_small_numpy_numbers_do_not_overflow(tiny, tmp_path):
    corpus = naive.some_sequences(300)
    index = Index.create(tiny, tmp_path / "index", corpus)
    hits = index.search(corpus[0], np.int8(127), rerank=naive.LengthReranker(), rerank_top=np.uint8(255))
    assert hits == index.search(corpus[0], 127, rerank=naive.LengthReranker(), rerank_top=255)
    hits = index.search(corpus[0], np.int8(127), at_least=np.int8(100), fraction=np.float16(0.5))
    assert hits == index.search(corpus[0], 127)
    assert len(hits) == 127
