"""`fit`, called as a user would."""

from __future__ import annotations

from pathlib import Path

import pytest

from cli.calling import call
from neuroseqret.cli.fit import _clock
from neuroseqret.data.sequences import EventSequences
from neuroseqret.methods.registry import make
from neuroseqret.readers import write_folder
from simulated import simulate_retrieval


def test_fit_into_the_folder_one_is_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_folder(tmp_path / "data", *simulate_retrieval(groups=3, per_group=4, seed=1))
    (tmp_path / "model").mkdir()
    monkeypatch.chdir(tmp_path / "model")
    for _ in range(2):  # the second replaces the first
        done = call("fit", "../data", "--model", "histogram", "--out", ".")
        assert done.returncode == 0, done.stderr
        assert sorted(path.name for path in Path().iterdir()) == ["config.json", "model.safetensors"]
    (tmp_path / "model" / "notes.txt").write_text("mine")
    done = call("fit", "no-such-folder", "--model", "histogram", "--out", ".")
    assert ".: holds 'notes.txt', which would be lost; move it away or choose another name" in done.stderr


def test_fit_says_how_the_clock_runs() -> None:
    corpus = EventSequences.from_lists([([0.0, 2.0, 4.0, 6.0], [0, 1, 0, 1])] * 3, time_unit="days")
    histogram, random = (make(name).fit(None, corpus).to_state().card for name in ("histogram", "random"))
    assert _clock(histogram) == "gaps between events: typically 2 days, mostly 2 to 2"
    assert _clock(histogram.model_copy(update={"first_stage": histogram, "time_scale": None})) == _clock(histogram)
    assert _clock(random) is None
