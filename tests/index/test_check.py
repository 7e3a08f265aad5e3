"""`Index.check` and `neuroseqret index check`: damage is found and named, a sound index passes."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import naive.index as naive
from cli.calling import call
from neuroseqret.index import Index, check, rows
from neuroseqret.index.store import CHECK, EMBEDDING

CHANGED = "its embedding is not as it was written"  # a single bit


@pytest.fixture
def made(tiny, tmp_path):
    index = Index.create(tiny, tmp_path / "index", naive.some_sequences(60), candidates="cells")
    index.compact()
    return index


def damaged(index, monkeypatch, name, change):
    """Let the store give another value in the first row of a column."""
    scan = index._store.scan

    def scan_damaged(columns, *rest, **more):
        for batch in scan(columns, *rest, **more):
            values = batch.column(name).to_pylist()
            values[0] = change(values[0])
            yield batch.set_column(
                batch.schema.get_field_index(name), name, pa.array(values, batch.schema.field(name).type)
            )

    monkeypatch.setattr(index._store, "scan", scan_damaged)


def test_a_sound_index_passes(made):
    assert made.check() == []
    made.remove("s3")
    made.add(naive.some_sequences(5, seed=1, prefix="new"))
    assert made.check() == []


def test_windows_pass(tiny, tmp_path):
    index = Index.create(tiny, tmp_path / "index", naive.some_sequences(20), window_events=5, window_step=3)
    assert index.check() == []


@pytest.mark.parametrize(
    ("name", "change", "said"),
    [
        ("times", lambda times: [times[0], *(t + 1e-9 for t in times[1:])], "its events are not as they were written"),
        ("marks", lambda marks: [(marks[0] + 1) % 4, *marks[1:]], "its events are not as they were written"),
        ("id", lambda name: name + "x", "its id is not as it was written"),
        (EMBEDDING, lambda vector: [2 * x for x in vector], "its embedding is damaged"),
        (EMBEDDING, lambda vector: vector[::-1], "its embedding is not the model's"),
        (EMBEDDING, lambda vector: [np.nan, *vector[1:]], "its embedding is damaged"),
        (EMBEDDING, lambda vector: [*vector[:-1], float(np.nextafter(np.float32(vector[-1]), np.float32(9)))], CHANGED),
    ],
)
def test_damage_is_named(made, monkeypatch, name, change, said):
    damaged(made, monkeypatch, name, change)
    flaws = made.check()
    assert any(said in flaw for flaw in flaws), flaws
    assert all("sequence s" in flaw for flaw in flaws)


@pytest.mark.parametrize(
    ("name", "change"), [("times", lambda t: [*t[:-1], t[-1] + 1e-9]), (EMBEDDING, lambda v: v[::-1])]
)
def test_damage_of_a_window_is_named(tiny, tmp_path, monkeypatch, name, change):
    index = Index.create(tiny, tmp_path / "index", naive.some_sequences(20), window_events=5, window_step=3)
    damaged(index, monkeypatch, name, change)
    assert any("its events or its embedding are not as they were written" in flaw for flaw in index.check())


def test_rows_of_a_version_without_a_hash_of_the_row_go_on(tiny, tmp_path, monkeypatch):
    """Their column is missing, then it is null in the old rows and there in the new ones."""
    with monkeypatch.context() as before:
        schema, to_rows = rows.base_schema, rows.to_rows
        before.setattr(rows, "base_schema", lambda n: schema(n).remove(schema(n).get_field_index(CHECK)))
        before.setattr(rows, "to_rows", lambda *given: to_rows(*given).drop_columns([CHECK]))
        index = Index.create(tiny, tmp_path / "index", naive.some_sequences(20))
        assert CHECK not in index._store.schema.names
    assert index.get("s3").ids.to_pylist() == ["s3"]
    assert index.check() == []
    index.add(naive.some_sequences(5, seed=1, prefix="new"))
    index.refresh()
    assert CHECK in index._store.schema.names
    assert index.get(["s3", "new1"]).ids.to_pylist() == ["s3", "new1"]
    assert index.check() == []


def test_many_flaws_are_counted(made, monkeypatch):
    monkeypatch.setattr(check, "_CLOSE", -1.0)
    flaws = made.check()
    assert len(flaws) == 21
    assert flaws[-1] == "and 40 more"


def test_a_damaged_search_structure_is_found(made):
    target = made.folder / "hot" / (made.folder / "hot" / "CURRENT").read_text().strip() / "times.bin"
    content = bytearray(target.read_bytes())
    content[5] ^= 1
    target.write_bytes(content)
    assert any("hot" in flaw for flaw in made.check())


def test_the_command(made):
    done = call("index", "check", str(made.folder))
    assert (done.returncode, done.stdout) == (0, "")
    assert "no flaws found" in done.stderr
    (made.folder / "hot" / "CURRENT").write_text("nonsense")
    done = call("index", "check", str(made.folder))
    assert done.returncode == 1
    assert "cannot be opened" in done.stdout
