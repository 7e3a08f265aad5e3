"""What stands at `--out` already: the same command may run again, another one needs `--force`."""

from __future__ import annotations

from pathlib import Path

import pytest

from cli.calling import Done, call
from neuroseqret.models.model_folder import read_card
from neuroseqret.readers import read_folder, write, write_folder
from simulated import simulate_retrieval


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def check_refused(done: Done, folder: Path, before: dict[str, bytes]) -> None:
    assert (done.returncode, done.stdout, len(done.stderr.splitlines())) == (2, "", 1), done.stderr
    assert f"{folder}: holds a" in done.stderr
    assert "add --force to replace it, or choose another --out" in done.stderr
    assert contents(folder) == before


def test_fit_replaces_its_own_model_and_no_other(tmp_path: Path) -> None:
    out = tmp_path / "model"
    for name, seed in (("data", 1), ("other", 2)):
        write_folder(tmp_path / name, *simulate_retrieval(groups=3, per_group=4, seed=seed))
    fit = ("fit", str(tmp_path / "data"), "--model", "histogram", "--out", str(out))
    assert "replacing" not in call(*fit).stderr
    before = contents(out)
    done = call(*fit)
    assert done.returncode == 0, done.stderr
    assert f"{out}: the model there was made with the same settings, seed and data; replacing it" in done.stderr
    assert contents(out) == before
    of_other_data = ("fit", str(tmp_path / "other"), *fit[2:])
    for other in (("fit", fit[1], "--model", "random", "--out", str(out)), (*fit, "--seed", "1"), of_other_data):
        done = call(*other)
        check_refused(done, out, before)
        assert f"{out}: holds a 'histogram' model with other settings, seed or data" in done.stderr
    done = call(*fit, "--max-seconds", "5")
    check_refused(done, out, before)
    assert "holds a 'histogram' model with no time limit, not --max-seconds 5;" in done.stderr
    done = call(*of_other_data, "--force")
    assert (done.returncode, "replacing" in done.stderr) == (0, False), done.stderr
    assert read_card(out).corpus_fingerprint == read_folder(tmp_path / "other").corpus.fingerprint()


def test_a_damaged_model_is_replaced_with_force(tmp_path: Path) -> None:
    out = tmp_path / "model"
    write_folder(tmp_path / "data", *simulate_retrieval(groups=3, per_group=4, seed=1))
    fit = ("fit", str(tmp_path / "data"), "--model", "histogram", "--out", str(out))
    call(*fit)
    (out / "config.json").write_text("{")
    done = call(*fit)
    assert (done.returncode, "add --force to replace it" in done.stderr) == (2, True), done.stderr
    assert call(*fit, "--force").returncode == 0
    assert read_card(out).model == "histogram"


@pytest.mark.parametrize("relevance", [(), ("--relevance", "subsequences")])
def test_prepare_replaces_its_own_folder_and_no_other(tmp_path: Path, relevance: tuple[str, ...]) -> None:
    out, file = tmp_path / "data", tmp_path / "events.parquet"
    corpus, _ = simulate_retrieval(groups=3, per_group=12, seed=1)
    write(corpus, file)
    prepare = ("data", "prepare", "--from", str(file), "--out", str(out), *relevance)
    assert "replacing" not in call(*prepare).stderr
    before = contents(out)
    done = call(*prepare)
    assert done.returncode == 0, done.stderr
    assert f"{out}: the data folder there was made by the same command; replacing it" in done.stderr
    assert contents(out) == before
    check_refused(call(*prepare, "--seed", "1"), out, before)
    done = call(*prepare, "--seed", "1", "--force")
    assert (done.returncode, "replacing" in done.stderr) == (0, False), done.stderr
    assert contents(out) != before
    write(corpus[:-1], file)  # the same command on newer events
    assert call(*prepare, "--seed", "1").returncode == 0


def test_prepare_does_not_replace_a_folder_of_someone_else(tmp_path: Path) -> None:
    corpus, queries = simulate_retrieval(groups=3, per_group=12, seed=1)
    write(corpus, tmp_path / "events.parquet")
    write_folder(tmp_path / "mine", corpus, queries)
    before = contents(tmp_path / "mine")
    prepare = ("data", "prepare", "--from", str(tmp_path / "events.parquet"), "--out", str(tmp_path / "mine"))
    check_refused(call(*prepare), tmp_path / "mine", before)
