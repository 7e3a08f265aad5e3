"""Typical gaps against a loop, and the warning about a wrong time unit, from Python and on the command line."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given

import neuroseqret as nsr
from cli.calling import call
from neuroseqret.data.gaps import TimeUnitWarning, check_gaps, gaps_of, typical_gaps
from neuroseqret.errors import DataError
from neuroseqret.readers import write, write_folder
from strategies import event_sequences


@given(event_sequences(min_events=0, limit=30))
def test_the_gap_of_a_sequence_is_the_median_of_its_positive_gaps(batch):
    gaps = [np.diff(one.times) for one in batch]
    expected = [np.median(some[some > 0]) for some in gaps if (some > 0).any()]
    assert np.allclose(gaps_of(batch), expected)


def regular(gap, n=30, unit="seconds", prefix="s"):
    rng = np.random.default_rng(0)
    rows = [(np.cumsum(rng.exponential(gap, 20)), rng.integers(0, 3, 20)) for _ in range(n)]
    return nsr.EventSequences.from_lists(rows, ids=[f"{prefix}{row}" for row in range(n)], time_unit=unit)


def test_only_a_factor_of_100_outside_what_the_corpus_had_is_suspicious():
    known = typical_gaps(regular(2.0))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for gap in (0.05, 2.0, 60.0):
            assert check_gaps(regular(gap), known, "seconds")
        assert check_gaps(regular(2000.0), (0.1, 2.0, 5000.0), "seconds")  # gaps differ widely by nature
        assert check_gaps(regular(2000.0)[:0], known, "seconds")
        assert check_gaps(regular(2000.0), None, "seconds")
    with pytest.warns(
        TimeUnitWarning,
        match=r"gap between events is [\d,]+ seconds \(.* min\), .*times longer than the [\d.]+ seconds",
    ):
        assert not check_gaps(regular(2000.0, unit=None), known, "seconds")
    with pytest.raises(DataError, match=r"a.csv: the typical gap .* shorter than the .* check the unit of the times"):
        check_gaps(regular(0.002), known, "seconds", strict=True, file="a.csv")


@pytest.fixture(scope="module")
def model():
    return nsr.make("histogram").fit(None, regular(2.0))


def test_search_and_add_warn_and_strict_refuses(model, tmp_path):
    index = nsr.Index.create(model, tmp_path / "index", regular(2.0))
    wrong = regular(2000.0, n=2, prefix="w")  # milliseconds
    with pytest.warns(TimeUnitWarning, match="times longer than"):
        index.search(wrong)
    with pytest.raises(DataError, match="typical gap"):
        index.search(wrong[0], strict=True)
    with pytest.raises(DataError, match="typical gap"):
        index.add(wrong, strict=True)
    assert len(index) == 30
    with pytest.warns(TimeUnitWarning) as caught:
        index.add(iter([wrong[:1], wrong[1:]]))
    assert len(caught) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        index.search(id="w0")
        index.search(regular(2.0), strict=True)


def test_the_model_remembers_and_tells(model, tmp_path):
    again = nsr.load(model.save(tmp_path / "model"))
    assert again.card.typical_gaps == typical_gaps(regular(2.0))
    assert "typical gap 1." in repr(again)


def test_on_the_command_line(model, tmp_path):
    model.save(tmp_path / "model")
    write(regular(2.0), tmp_path / "corpus.parquet")
    write(regular(2000.0, n=2, prefix="w"), tmp_path / "wrong.parquet")
    corpus, wrong, made = (str(tmp_path / name) for name in ("corpus.parquet", "wrong.parquet", "index"))
    assert call("index", "create", str(tmp_path / "model"), corpus, "--out", made).returncode == 0
    done = call("search", made, wrong)
    assert done.returncode == 0
    (line,) = [line for line in done.stderr.splitlines() if "typical gap" in line]
    assert line.startswith("neuroseqret: note: the typical gap between events is ")
    for command in (
        ("search", made, wrong, "--strict"),
        ("index", "add", made, wrong, "--strict"),
        ("index", "create", str(tmp_path / "model"), wrong, "--out", str(tmp_path / "other"), "--strict"),
        ("embed", str(tmp_path / "model"), wrong, "--out", str(tmp_path / "v.parquet"), "--strict"),
    ):
        done = call(*command)
        assert done.returncode == 2, command
        assert "typical gap" in done.stderr
    assert not (tmp_path / "other").exists()
    assert not (tmp_path / "v.parquet").exists()


def test_embed_and_evaluate_look_too(model, tmp_path):
    """`embed` and `evaluate` warn once, or refuse with `strict`."""
    wrong = regular(2000.0, n=20, prefix="w").with_column("group", ["a", "b"] * 10)
    with pytest.warns(TimeUnitWarning, match="times longer than"):
        model.embed(wrong)
    with pytest.raises(DataError, match="typical gap"):
        model.embed(wrong, strict=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.embed(wrong, strict=None)
        model.embed(regular(2.0))
    write_folder(tmp_path / "data", wrong[:10], wrong[10:].with_column("split", ["test"] * 10))
    with pytest.warns(TimeUnitWarning) as caught:
        nsr.evaluate(tmp_path / "data", model, cache=False)
    assert len(caught) == 1
    report = nsr.evaluate(tmp_path / "data", model, cache=False, strict=True)
    assert "typical gap" in str(report.results[-1].error)
    done = call("evaluate", str(tmp_path / "data"), "--method", str(model.save(tmp_path / "model")), "--strict")
    assert (done.returncode, "typical gap" in done.stdout) == (1, True)
