"""The simulated set: what it promises, and that `docs/datasets.md` shows it as it is."""

from __future__ import annotations

import inspect
import re
import time

import numpy as np
import pytest

import neuroseqret as nsr
from conftest import REPOSITORY
from naive.relevance import sources_of
from neuroseqret.data.relevance import Relevance
from neuroseqret.datasets.simulate import warp_times
from neuroseqret.datasets.simulated_processes import KINDS
from neuroseqret.errors import UserError


def test_a_warp_is_monotone_and_keeps_the_window():
    rng = np.random.default_rng(0)
    times = np.concatenate([np.linspace(0, 10, 101), np.linspace(0, 10, 51)])
    offsets = np.array([0, 101, 152])
    assert warp_times(times, offsets, 10.0, 0.0, rng) == pytest.approx(times)
    warped = warp_times(times, offsets, 10.0, 0.8, rng)
    for begin, stop in ((0, 101), (101, 152)):
        part = warped[begin:stop]
        assert (np.diff(part) > 0).all()
        assert (part[0], part[-1]) == pytest.approx((0, 10))
    assert np.abs(warped[:101] - np.interp(times[:101], times[101:], warped[101:])).max() > 0.2


def test_the_set_is_what_it_says():
    data = nsr.simulate(6, 10, 6, marks=4, events=30, min_events=5, seed=3)
    corpus, queries = data.corpus, data.queries
    for part, number in ((corpus, 60), (queries, 36)):
        part.validate()
        assert len(part) == number
        assert part.lengths.min() >= 5
        assert abs(part.lengths.mean() - 30) < 15
        assert part.num_marks == 4
        assert len(part.groups.unique()) == 6
    assert not set(sources_of(corpus)) & set(sources_of(queries))
    assert set(queries.column("split").to_pylist()) == {"train", "validation", "test"}
    assert (data.relevance.counts == 10).all()
    assert data.relevance.fingerprint() == Relevance.from_groups(queries, corpus).fingerprint()
    again = nsr.simulate(6, 10, 6, marks=4, events=30, min_events=5, seed=3)
    assert (again.corpus, again.queries) == (corpus, queries)
    assert nsr.simulate(6, 10, 6, marks=4, events=30, min_events=5, seed=4).corpus != corpus


def test_the_set_is_in_memory_and_can_be_written(tmp_path):
    data = nsr.simulate(3, 4, 5)
    assert (data.path, data.name) == (None, "simulated")
    assert len(data.train) + len(data.validation) + len(data.test) == 15
    nsr.write_folder(tmp_path / "example", data.corpus, data.queries, meta=data.meta)
    back = nsr.read_folder(tmp_path / "example")
    assert (back.corpus, back.queries, back.name) == (data.corpus, data.queries, "simulated")


def test_the_kinds_of_process_take_turns():
    chosen = nsr.simulate(2, 4, 2, kinds=["renewal"], seed=5)
    assert len(chosen.corpus) == 8
    with pytest.raises(UserError, match="there is no process 'poisson'; choose from hawkes"):
        nsr.simulate(2, 4, 2, kinds=["renewal", "poisson"])


def test_groups_can_be_told_apart_but_not_by_everything():
    """Mark counts and gap moments, scaled, rank better than chance and worse than perfectly."""
    data = nsr.simulate(seed=1)

    def features(part):
        rows = []
        for row in part:
            gaps = np.log(np.diff(row.times) + 1e-3)
            rows.append(
                [*(np.bincount(row.marks, minlength=5) / len(row)), gaps.std(), np.corrcoef(gaps[1:], gaps[:-1])[0, 1]]
            )
        return np.array(rows)

    both = features(data.corpus), features(data.queries)
    mean, sd = both[0].mean(0), both[0].std(0)
    far = np.linalg.norm(((both[1] - mean) / sd)[:, None] - ((both[0] - mean) / sd)[None], axis=2)
    relevant = data.relevance.matrix()
    first = np.take_along_axis(relevant, far.argsort(axis=1)[:, :10], 1).mean()
    assert 3 / 12 < first < 0.9


def test_it_is_fast():
    nsr.simulate(2, 4, 2)  # imports
    began = time.process_time()
    nsr.simulate(20, 20, 10)
    assert time.process_time() - began < 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"groups": 0}, "at least one group"),
        ({"per_group": 0}, "one sequence per group"),
        ({"marks": 0}, "one mark"),
        ({"kinds": []}, "event and kind"),
        ({"events": 10, "min_events": 8}, "ask for at most 5 min_events or for more events"),
    ],
)
def test_impossible_sets_are_refused(options, message):
    with pytest.raises(UserError, match=message):
        nsr.simulate(**options)


def test_the_page_shows_it_as_it_is(tmp_path, monkeypatch):
    page = (REPOSITORY / "docs" / "datasets.md").read_text(encoding="utf-8")
    section = page.split("## Simulated data")[1].split("\n## ")[0]
    (program,) = re.findall(r"```python\n(.*?)```", section, re.DOTALL)
    monkeypatch.chdir(tmp_path)
    names = {}
    exec(compile(program, "docs/datasets.md", "exec"), names)
    data = names["data"]
    assert (len(data.corpus), len(data.queries)) == (60, 30)
    shown = repr(data).splitlines()
    assert shown[:2] == ["DataFolder 'simulated'", f"  corpus   {data.corpus!r}"]
    assert shown[2].startswith(f"  queries  {data.queries!r}: ")
    figures = {result.name: result.means()["AP"] for result in names["report"].results}
    assert figures["histogram"] > figures["random"] + 0.2
    assert nsr.read_folder(tmp_path / "example").corpus == data.corpus
    assert [kind for kind in KINDS if f"- `{kind}`:" not in section] == []
    options = inspect.signature(nsr.simulate).parameters
    assert [option for option in options if option not in section] == []
