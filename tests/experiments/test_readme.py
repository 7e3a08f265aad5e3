"""The README's summary of the results: every figure in it comes from the committed cells."""

from __future__ import annotations

import re
from functools import cache

import numpy as np
import pytest

from conftest import REPOSITORY
from experiments import ablation, plan, second_stages, standing
from experiments.accuracy import NINE, marks
from experiments.markdown import listed
from experiments.measured import DIFFERENT, LEVEL, Measured, row_fit
from experiments.plan import View
from experiments.result_cells import ResultCells
from neuroseqret.methods.registry import BASELINES

cached_marks = cache(marks)
WORDS = ("none", "one", "two", "three", "four", "five", "six", "seven", "eight")
BEST = "histogram-metric"


@pytest.fixture(scope="module")
def committed():
    folder = REPOSITORY / "results" / "cells"
    if not folder.exists():
        pytest.skip("no committed results")
    return Measured(ResultCells(folder))


@pytest.fixture(scope="module")
def summary():
    """The section, each run of white space one blank."""
    text = (REPOSITORY / "README.md").read_text(encoding="utf-8")
    return " ".join(text.split("## What to expect\n")[1].split("\n## ")[0].split())


def test_the_readme_says_what_the_cells_say(committed, summary):
    for says in sentences(committed):
        assert says in summary, f"README.md, 'What to expect': it should say: {says}"
        summary = summary.replace(says, "")
    left = re.sub(r"`[^`]*`", "", summary)
    figures = re.findall(rf"\d+|\b(?:{'|'.join(WORDS[2:])}) (?:of|sets)\b", left)
    assert not figures, f"README.md, 'What to expect': no test knows where {figures} come from"


def test_the_ablation_is_told_right(committed):
    committed = committed.with_seeds({0})

    def change(name):
        gains = [ablation.gain(committed, data, name, "default") for data in committed.data]
        return np.nanmean(gains)

    assert max(change(name) for name in ("no-projection", "no-head-phase", "no-markov")) < -3
    for name in ("no-fisher", "no-pooled"):
        assert -2 < change(name) < 0
        assert (
            min(committed.data, key=lambda data, name=name: ablation.gain(committed, data, name, "default")) == "audio"
        )
    assert all(change(name) < 0.5 for name in ("unwarping", "similarity"))


def sentences(measured):
    """What the README has to say, with the figures of these cells."""
    yield from trained_seeds(measured)
    yield from baselines(measured)
    yield from first_stage(measured)
    yield from second_stage(measured)
    yield from first_hit(measured)
    yield from changed_by_unseen(measured)
    yield from best_of_unseen(measured)
    best = max(
        mean(measured, "soccer", row) for row in plan.rows() if measured.answered(row_fit("soccer", row), View())
    )
    yield f"hardly works for any method (MAP {best:.1f} at best)"


def trained_seeds(measured):
    yield f"every method on {WORDS[len(measured.data)]} real sets"
    rows = [row for row in plan.rows() if row[0] not in plan.DETERMINISTIC]
    found = {
        corpus: {len(measured.answered(row_fit(data, row, corpus), View())) for data in measured.data for row in rows}
        - {0}
        for corpus in plan.CORPORA
    }
    seen, unseen = (" to ".join(WORDS[n] for n in sorted({min(one), max(one)})) for one in found.values())
    yield f"What is trained has {seen} seeds there, {unseen} where the corpus was unseen in training"


def baselines(measured):
    assert all(measured.baselines(data, View())[0] == BEST for data in measured.data)
    yield f"is the best baseline on all {WORDS[len(measured.data)]} sets"
    nine = {data: max(mean(measured, data, (name, "default")) for name in NINE) for data in measured.data}
    top = nine.pop("sports")
    yield f"whose best has MAP {top:.0f} on sports and at most {max(nine.values()):.0f} elsewhere"


def first_stage(measured):
    gains = {d: mean(measured, d, ("self", "default")) - mean(measured, d, (BEST, "default")) for d in measured.data}
    up, down = ([data for data in gains if (gains[data] > 0) == above] for above in (True, False))
    (below,) = down
    yield (
        f"`self` is above it on {of(up, measured)} sets, by {min(gains[d] for d in up):.1f} to "
        f"{max(gains.values()):.1f} points of MAP, significantly on {counted(significant(measured, 'self'))}; on "
        f"{below} it is {-gains[below]:.1f} below."
    )


def second_stage(measured):
    found, p = (x[:, second_stages.SECOND.index("cross"), 0] for x in second_stages.compare(measured, "default"))
    gains, p = dict(zip(measured.data, found, strict=True)), dict(zip(measured.data, p, strict=True))
    better = sorted((d for d in gains if gains[d] > 0 and p[d] <= LEVEL), key=lambda d: -gains[d])
    points = {better[0]: " points of MAP"}
    doubts = {d: f", p = {p[d]:.3f}" for d in better if p[d] > 0.01}
    shown = [f"{d} (+{gains[d]:.1f}{points.get(d, '')}{doubts.get(d, '')})" for d in better]
    others = max(abs(gains[d]) for d in gains if d not in better)
    yield (
        f"`cross` puts the best hundred of `self` in a new order: significantly better on {of(better, measured)} sets, "
        f"{listed(shown)}; elsewhere it differs by at most {others:.1f}."
    )
    assert all(
        mean(measured, d, ("cross", "default")) > mean(measured, d, (measured.baselines(d, View())[0], "default"))
        for d in measured.data
    )
    yield (
        f"It is above every baseline on all {WORDS[len(measured.data)]} sets, significantly on "
        f"{counted(significant(measured, 'cross'))}."
    )


def first_hit(measured):
    def ahead(view):
        leads = {data: standing.lead(measured, data, "seen", view, "RR") for data in measured.data}
        return {data: found for data, found in leads.items() if found[1] >= DIFFERENT}

    whole, lists = ahead(View()), ahead(View(protocol="sampled"))
    shown = [f"{data} (`{who}`, +{by:.1f} points)" for data, (who, by) in whole.items()]
    yield (
        f"a simple baseline finds the first relevant sequence sooner (RR) on {of(whole, measured)} sets, "
        f"{listed(shown)}, and on {WORDS[len(lists)]} where lists as the paper's are ranked"
    )


def changed_by_unseen(measured):
    both = {
        name: {d: mean(measured, d, (name, "default"), "unseen") - mean(measured, d, (name, "default"))
               for d in measured.data if measured.answered(row_fit(d, (name, "default"), "unseen"), View())}
        for name in (*BASELINES, "self", "cross")
    }  # fmt: skip
    levels = [
        f"{mean(measured, d, ('cross', 'default'), 'unseen'):.0f} instead of "
        f"{mean(measured, d, ('cross', 'default')):.0f} on {d}"
        for d in ("health", "sports", "twitter")
    ]
    yield f"the strongest learned methods lose: `cross` has MAP {listed(levels)}"
    assert max(both["cross"].values()) < 0
    assert max(both[BEST].values()) < 0
    yield (
        f"`{BEST}` loses on all {WORDS[len(both[BEST])]} sets, by up to {-min(both[BEST].values()):.1f} points. "
        "Weaker ones may gain"
    )
    trained = {(n, d): g for n in both if n not in plan.DETERMINISTIC for d, g in both[n].items()}
    name, data = max(trained, key=lambda key: trained[key])
    yield f"(at most {trained[name, data]:.1f} points, `{name}` on {data})"
    untaught = both["histogram"].values()
    yield f"`histogram`, which learns nothing from relevance, changes by {min(untaught):+.1f} to {max(untaught):+.1f}"


def best_of_unseen(measured):
    def over_best(name):
        return {
            d: mean(measured, d, (name, "default"), "unseen")
            - mean(measured, d, (measured.baselines(d, View(), "unseen")[0], "default"), "unseen")
            for d in measured.data
        }

    gains = {name: over_best(name) for name in ("self", "cross")}
    assert all(gain > 0 for one in gains.values() for gain in one.values())
    (largest,) = {max(one, key=one.get) for one in gains.values()}
    self_above, cross_above = (significant(measured, name, "unseen") for name in gains)
    yield (
        f"There `self` and `cross` are above every measured baseline on all {WORDS[len(measured.data)]} sets, `self` "
        f"significantly on {counted(self_above)}, `cross` on {counted(cross_above)}, with the largest gain on "
        f"{largest} (+{gains['self'][largest]:.1f} and +{gains['cross'][largest]:.1f} points)."
    )


def mean(measured, data, row, corpus="seen"):
    return measured.mean(row_fit(data, row, corpus), View())


def significant(measured, name, corpus="seen"):
    signs = cached_marks(measured, "AP", corpus, View())
    return [data for data in measured.data if signs.get((data, (name, "default"))) == "▲"]


def counted(sets):
    return f"{WORDS[len(sets)]} ({listed(sets)})"


def of(sets, measured):
    return f"{WORDS[len(sets)]} of {WORDS[len(measured.data)]}"
