"""`--device`: where vectors are computed, and one line if the device is absent."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
from typer.testing import CliRunner

from neuroseqret.cli.main import app
from neuroseqret.errors import UserError
from neuroseqret.index import Index
from neuroseqret.methods.registry import make
from neuroseqret.models.self_attention.model import SelfAttention
from neuroseqret.readers import write
from neuroseqret.training.task import TrainingTask
from simulated import simulate_retrieval

COMMANDS = {
    "embed": "embed model queries.parquet --out vectors.parquet",
    "create": "index create model queries.parquet --out new",
    "add": "index add index queries.parquet",
    "search": "search index queries.parquet",
}
FIT = "fit queries.parquet --model histogram-metric --out new --max-seconds 1"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("device")
    corpus, queries = simulate_retrieval(groups=3, per_group=6, seed=2)
    model = SelfAttention().fit(queries, corpus, max_seconds=1)
    model.save(made / "model")
    Index.create(model, made / "index", corpus)
    write(queries, made / "queries.parquet")
    return made


@pytest.fixture(autouse=True)
def inside(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)


def failure(command: str, device: str) -> BaseException | None:
    return CliRunner().invoke(app, [*command.split(), "--device", device]).exception


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_vectors_are_computed_on_the_device(
    command: str, folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A tensor on "meta" has no numbers: computing goes well, and only the copy of the result to the CPU fails."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr("neuroseqret.models.self_attention.model.usable", lambda _: torch.device("meta"))
    found = failure(command.replace("--out new", f"--out {tmp_path / 'new'}"), "cuda")
    assert isinstance(found, NotImplementedError)
    assert "Cannot copy out of meta tensor" in str(found)


@pytest.mark.parametrize("command", [*COMMANDS.values(), FIT], ids=[*COMMANDS, "fit"])
@pytest.mark.parametrize(("device", "line"), [("cuda", "finds no 'cuda' device"), ("tpu", "no device is called 'tpu'")])
def test_an_absent_device_is_one_line(
    command: str, device: str, line: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    found = failure(command, device)
    assert isinstance(found, UserError)
    assert line in str(found)
    assert "\n" not in str(found)
    assert not (folder / "new").exists()
    assert not (folder / "vectors.parquet").exists()


def test_training_is_on_the_device(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    moved: list[object] = []
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(TrainingTask, "of", lambda *_, device, **__: moved.append(device) or stop())
    found = failure(FIT.replace("--out new", f"--out {tmp_path / 'new'}"), "cuda")
    assert isinstance(found, KeyError)
    assert moved == ["cuda"]


def stop() -> None:
    raise KeyError("far enough")


def test_the_cpu_gives_the_same_vectors(folder: Path, tmp_path: Path) -> None:
    vectors = []
    for more in ([], ["--device", "cpu"]):
        out = tmp_path / f"{len(more)}.parquet"
        assert CliRunner().invoke(app, ["embed", "model", "queries.parquet", "--out", str(out), *more]).exit_code == 0
        vectors.append(np.array(pq.read_table(out)["embedding"].to_pylist()))
    assert np.array_equal(*vectors)


def test_a_method_of_the_cpu_says_so() -> None:
    assert make("histogram").to("cpu").name == "histogram"
    with pytest.raises(UserError, match="computes on the CPU only"):
        make("histogram").to("cuda")


def test_names_of_torch_that_do_not_exist() -> None:
    from neuroseqret.models.devices import usable

    with pytest.raises(UserError, match="choose one of cpu, cuda, mps"):
        usable("gpu")
    assert usable("cpu") == torch.device("cpu")
