"""The search structure built in a process of its own is the one that is built here."""

from __future__ import annotations

import pytest

from naive import index as naive
from neuroseqret.errors import UserError
from neuroseqret.index import Index, building_apart, hot, reader


def test_a_server_changes_over_to_a_structure_that_another_process_built(tiny, tmp_path, monkeypatch):
    monkeypatch.setattr(reader, "REBUILD_ROWS", 10)
    corpus, queries = naive.some_sequences(80), naive.some_sequences(5, seed=9)
    index = Index.create(tiny, tmp_path / "index", corpus[:60], candidates="cells")
    index.watch(60, apart=True)
    pinned, folder = index._store.pinned(), tmp_path / "index" / "hot"
    index.add(corpus[60:])
    monkeypatch.setattr(reader.hot_builder, "build", lambda *_: pytest.fail("built in this process"))
    index.refresh(wait=True)
    info = index.info()
    assert (info["sequences"], info["not_yet_in_structure"]) == (80, 0)
    assert hot.verify(folder, index.config.dimension) == []
    monkeypatch.undo()
    found = [[(hit.id, hit.score) for hit in hits] for hits in index.search(queries, 10)]
    index.compact()
    assert [[(hit.id, hit.score) for hit in hits] for hits in index.search(queries, 10)] == found
    assert len(building_apart.build(folder, pinned, index.config)) == 60  # of the version that it was told


def test_what_goes_wrong_in_the_other_process_is_one_line(tiny, tmp_path):
    index = Index.create(tiny, tmp_path / "index", naive.some_sequences(10))
    (tmp_path / "index" / "index.json").write_text("{")
    with pytest.raises(UserError, match=r"index\.json"):
        building_apart.build(tmp_path / "index" / "hot", index._store.pinned(), index.config)
