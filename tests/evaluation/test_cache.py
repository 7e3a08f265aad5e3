"""A kept result is returned only if nothing behind it has changed."""

from __future__ import annotations

import neuroseqret
from neuroseqret.baselines.random import Random
from neuroseqret.evaluation.cache import ResultCache, folder_fingerprint, result_key, task_fingerprint, versions
from neuroseqret.evaluation.protocol import PROTOCOL_VERSION, make_task
from neuroseqret.evaluation.scoring import answer


def test_kept_and_read_back(sets, tmp_path):
    queries, corpus = sets()
    task = make_task(queries, corpus, protocol="sampled", negatives=30)
    answers = answer(Random(), task)
    kept = ResultCache(tmp_path / "new" / "cache")
    assert kept.get("k", task) is None
    kept.put("k", answers, {"seconds": 1.5})
    found, notes = kept.get("k", task)
    assert notes == {"seconds": 1.5}
    assert (found.top_rows == answers.top_rows).all()
    assert (found.top_scores == answers.top_scores).all()
    for measure, values in answers.measures.items():
        assert (found.measures[measure] == values).all()
    assert [p.name for p in (tmp_path / "new" / "cache").iterdir()] == ["k.parquet"]


def test_damaged_or_foreign_files_count_as_absent(sets, tmp_path):
    queries, corpus = sets()
    task = make_task(queries, corpus)
    kept = ResultCache(tmp_path)
    kept.put("k", answer(Random(), task), {})
    path = tmp_path / "k.parquet"
    path.write_bytes(path.read_bytes()[:-20])
    assert kept.get("k", task) is None
    path.write_text("no table")
    assert kept.get("k", task) is None
    kept.put("k", answer(Random(), make_task(queries, corpus, max_queries=3)), {})
    assert kept.get("k", task) is None


def test_every_part_of_the_task_changes_its_fingerprint(sets):
    queries, corpus = sets()
    other_queries, other_corpus = sets(seed=1)
    relabelled = queries.with_column("group", queries.groups.to_pylist()[::-1])
    resplit = queries.with_column("split", ["test"] * len(queries))
    swapped = corpus.with_column("source", corpus.column("source").to_pylist()[::-1])
    tasks = [
        make_task(queries, corpus),
        make_task(other_queries, corpus),
        make_task(queries, other_corpus),
        make_task(relabelled, corpus),
        make_task(resplit, corpus),
        make_task(queries, swapped),
        make_task(queries, corpus, seed=1),
        make_task(queries, corpus, split="validation"),
        make_task(queries, corpus, max_queries=3),
        make_task(queries, corpus, condition="unseen"),
        make_task(queries, corpus, protocol="sampled"),
        make_task(queries, corpus, protocol="sampled", negatives=5),
    ]
    assert len({task_fingerprint(task) for task in tasks}) == len(tasks)
    assert task_fingerprint(make_task(*sets())) == task_fingerprint(tasks[0])


def test_key_follows_every_part():
    parts = {"task": "t", "method": "histogram", "max_seconds": None, "versions": {"method": 1}}
    key = result_key(**parts)
    assert key == result_key(**dict(reversed(parts.items())))
    assert key != result_key(**{**parts, "max_seconds": 3.0})
    assert key != result_key(**{**parts, "versions": {"method": 2}})


def test_a_result_depends_on_the_versions_of_method_protocol_and_library():
    assert versions(Random) == {
        "method": Random.version,
        "protocol": PROTOCOL_VERSION,
        "library": neuroseqret.__version__,
    }


def test_folder_fingerprint_is_of_the_content(sets, tmp_path):
    queries, corpus = sets()
    model = Random().fit(queries, corpus)
    folder = model.save(tmp_path / "a")
    first = folder_fingerprint(folder)
    assert first == folder_fingerprint(model.save(tmp_path / "b"))
    model.fit(queries, corpus, seed=1)
    assert first != folder_fingerprint(model.save(tmp_path / "a"))
    tensors = tmp_path / "b" / "model.safetensors"
    tensors.write_bytes(tensors.read_bytes() + b"\0")  # a changed file whose config still claims the old hash
    assert first != folder_fingerprint(tmp_path / "b")
