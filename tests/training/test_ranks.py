"""Training on several processes gives what one process gives with the same batches."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import neuroseqret as nsr
from neuroseqret.cli.fit import fit
from neuroseqret.errors import UserError
from neuroseqret.readers import write_folder
from neuroseqret.training import ranks
from training import ranks_process

TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]


def torchrun(*arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*TORCHRUN, *map(str, arguments)], capture_output=True, text=True, timeout=600)


@pytest.mark.filterwarnings("ignore")
def test_two_processes_give_what_one_gives(tmp_path):
    done = torchrun(ranks_process.__file__, tmp_path / "two.npz")
    assert done.returncode == 0, done.stderr[-3000:]
    two = np.load(tmp_path / "two.npz")
    assert int(two["ranks"]) == 2
    for name, alone in ranks_process.embeddings(tmp_path / "alone").items():
        np.testing.assert_allclose(two[name], alone, atol=2e-3, err_msg=name)
    assert not list(tmp_path.glob("*.checkpoints-1"))  # the first process alone writes
    # Its checkpoints hold the finished run: nothing is learned again.
    again = ranks_process.embeddings(tmp_path / "two.checkpoints-0")
    for name, found in again.items():
        np.testing.assert_allclose(two[name], found, atol=1e-4, err_msg=name)


def test_the_command(tmp_path):
    data = nsr.simulate(3, 10, 6, seed=2)
    folder = write_folder(tmp_path / "data", data.corpus, data.queries).path
    command = ["-m", "neuroseqret", "fit", folder, "--out", tmp_path / "model", "--max-seconds", "2", "--json"]
    done = torchrun(*command)
    assert done.returncode == 0, done.stderr[-3000:]
    assert json.loads(done.stdout)["method"] == "self"  # printed once
    assert done.stderr.count("written to") == 1
    assert nsr.evaluate(folder, tmp_path / "model", cache=False).results[-1].mean("AP") > 0.4
    assert not list(Path(tmp_path).glob("*.checkpoint"))


def test_methods_that_cannot_share_say_so(tmp_path, monkeypatch):
    data = nsr.simulate(3, 4, 6, seed=2)
    folder = write_folder(tmp_path / "data", data.corpus, data.queries).path
    monkeypatch.setattr(ranks, "number", lambda: 2)
    monkeypatch.setattr(ranks, "own", lambda: 0)
    with pytest.raises(UserError, match="the training of 'cross' cannot be shared by several processes"):
        fit(folder, "cross", tmp_path / "model", None, "default", 0, None, None, [], None, False)


def test_alone_nothing_is_shared():
    with ranks.started():
        assert (ranks.number(), ranks.own(), ranks.is_first()) == (1, 0, True)
        assert ranks.share(5) == slice(0, 5)
        assert ranks.of_first("value") == "value"
