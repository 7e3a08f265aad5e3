"""Of a corpus that is larger than memory, `fit` reads a random part, batch by batch."""

from __future__ import annotations

import numpy as np
import pytest

import neuroseqret as nsr
from neuroseqret.cli import fit as command
from neuroseqret.data.sequences import EventSequences
from neuroseqret.readers import part_of_corpus, read_folder, write_folder
from neuroseqret.readers.part_of_corpus import random_part, relevant_to


def corpus(number: int = 400) -> EventSequences:
    rng = np.random.default_rng(3)
    lists = [(np.sort(rng.random(size)), np.zeros(size, int)) for size in rng.integers(1, 20, number)]
    ids = [f"s{row}" for row in range(number)]
    return EventSequences.from_lists(lists, ids=ids, groups=[f"g{row % 40}" for row in range(number)])


def queries(groups: list[str]) -> EventSequences:
    made = EventSequences.from_lists([([0.0], [0])] * len(groups), ids=[f"q{g}" for g in groups], groups=groups)
    return made.with_column("split", ["train"] * len(groups))


def cut(sequences: EventSequences, size: int):
    return (sequences[begin : begin + size] for begin in range(0, len(sequences), size))


def smallest_numbers(sequences: EventSequences, most: int, relevant: np.ndarray) -> list[str]:
    """The slow way: one number per row, the smallest first, until there is no more room."""
    drawn = np.random.default_rng(0).random(len(sequences)) / np.where(relevant, 8, 1)
    kept, events = [], 0
    for row in np.argsort(drawn).tolist():
        events += int(sequences.lengths[row])
        if events > most:
            break
        kept.append(row)
    return [sequences.ids[row].as_py() for row in sorted(kept)]


@pytest.mark.parametrize("most", [50, 600, 3000])
@pytest.mark.parametrize("size", [7, 64, 400])
def test_the_same_part_whatever_the_batches(most, size):
    whole, asked = corpus(), relevant_to(queries(["g1", "g7"]), None)
    part = random_part(cut(whole, size), most, asked)
    assert part.ids.to_pylist() == smallest_numbers(whole, most, asked(whole))
    assert len(part.times) <= most


def test_no_more_is_held_than_there_is_room_for(monkeypatch):
    held, concat = [], EventSequences.concat
    monkeypatch.setattr(
        EventSequences, "concat", lambda some: held.append(sum(len(s.times) for s in some)) or concat(some)
    )
    random_part(cut(corpus(2000), 10), 1000, relevant_to(None, None))
    assert max(held) < 1.25 * 1000 + 10 * 20


def test_what_is_relevant_is_kept_sooner():
    whole, asked = corpus(), relevant_to(queries(["g1", "g7"]), None)
    part = random_part(cut(whole, 50), 600, asked)
    assert asked(part).mean() > 3 * asked(whole).mean()
    judged = relevant_to(queries(["g1"]), {"qg1": {"s3": 1, "s4": 0}})(whole)
    assert np.flatnonzero(judged).tolist() == [3]


@pytest.mark.parametrize("with_qrels", [False, True])
def test_a_folder_in_part(tmp_path, with_qrels):
    asked = queries(["g1", "g7"])
    qrels = {name: {f"s{row}": 1 for row in range(number, 400, 40)} for name, number in (("qg1", 1), ("qg7", 7))}
    write_folder(tmp_path / "data", corpus(), asked, qrels if with_qrels else None)
    whole = read_folder(tmp_path / "data", most_events=10**6)
    assert whole.corpus == read_folder(tmp_path / "data").corpus
    with pytest.warns(UserWarning, match=r"corpus.parquet: has 3,982 events; a random part of"):
        part = read_folder(tmp_path / "data", most_events=1000)
    assert len(part.corpus.times) <= 1000
    place = {name: row for row, name in enumerate(part.corpus.ids.to_pylist())}
    for query, number in ((0, 1), (1, 7)):
        there = [place[name] for row in range(number, 400, 40) if (name := f"s{row}") in place]
        assert there == part.relevance.of(query).tolist()


def test_fit_reads_a_part(tmp_path, monkeypatch):
    monkeypatch.setattr(part_of_corpus, "MOST_EVENTS", 500)
    data = nsr.simulate(3, 30, 6, seed=2)
    write_folder(tmp_path / "data", data.corpus, data.queries)
    with pytest.warns(UserWarning, match="a random part"):
        folder = command._read(tmp_path / "data")
    assert 0 < len(folder.corpus) < len(data.corpus)
    with pytest.warns(UserWarning, match="a random part"):
        assert len(command._read(tmp_path / "data" / "corpus.parquet").corpus) < len(data.corpus)
