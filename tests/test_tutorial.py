"""Every command and program of docs/tutorial.md, in order, on a small simulated CSV."""

from __future__ import annotations

import json
import re
import shlex
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from neuroseqret.cli.main import app

TUTORIAL = Path(__file__).resolve().parent.parent / "docs" / "tutorial.md"
ACTIONS = ("buy", "search", "view")
#: What the customers of a segment do next after each action, and how long they take.
SEGMENTS = {
    "browser": ([[0.1, 0.1, 0.8], [0.1, 0.2, 0.7], [0.05, 0.15, 0.8]], 40.0),
    "hunter": ([[0.1, 0.8, 0.1], [0.3, 0.5, 0.2], [0.2, 0.7, 0.1]], 90.0),
    "regular": ([[0.4, 0.2, 0.4], [0.5, 0.1, 0.4], [0.6, 0.1, 0.3]], 400.0),
}


def write_events(path, customers, seed, prefix, without=""):
    rng = np.random.default_rng(seed)
    lines = ["customer,when,action,segment"]
    for number in range(customers):
        segment = list(SEGMENTS)[number % 3]
        chain, gap = SEGMENTS[segment]
        now, action = datetime(2024, 3, 1, 8), 2
        for _ in range(int(rng.integers(35, 70))):
            now += timedelta(seconds=float(rng.gamma(2.0, gap / 2)))
            action = rng.choice(3, p=chain[action])
            if ACTIONS[action] != without:
                lines.append(f"{prefix}{number:03d},{now:%Y-%m-%d %H:%M:%S},{ACTIONS[action]},{segment}")
    path.write_text("\n".join(lines) + "\n")


def blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", TUTORIAL.read_text(encoding="utf-8"), re.DOTALL)


def commands():
    return [line[2:] for block in blocks("console") for line in block.splitlines()]


@pytest.fixture(scope="module")
def outputs(tmp_path_factory):
    """The output of every command, run in order in one folder."""
    folder = tmp_path_factory.mktemp("tutorial")
    write_events(folder / "events.csv", 120, 0, "c")
    write_events(folder / "today.csv", 6, 1, "t", without="buy")  # other numbers for the other marks
    said = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("NEUROSEQRET_CACHE", str(folder / "cache"))
        for command in commands():
            program, *words = shlex.split(command)
            assert program == "neuroseqret"
            done = CliRunner().invoke(app, words)
            assert done.exit_code == 0, (command, done.exception, done.output)
            said[command] = done.stdout
    return folder, said


def find(said, text):
    return next(output for command, output in said.items() if text in command)


def test_every_command_runs(outputs):
    folder, said = outputs
    assert len(said) == len(commands()) >= 14
    assert "120 sequences" in find(said, "data info")
    assert "corpus sequences" in find(said, "data prepare")
    assert (folder / "model" / "config.json").exists()


def test_the_model_of_the_tutorial_is_good(outputs):
    figures = json.loads((outputs[0] / "figures.json").read_text())["methods"]
    assert figures["model"]["AP"] > figures["random"]["AP"] + 0.1


def test_searches_answer(outputs):
    folder, said = outputs
    answers = json.loads(find(said, "search index today.parquet"))
    assert len(answers) == 6
    assert all(len(answer["hits"]) == 3 for answer in answers)
    # What is found are customers and parts of their histories, by their own names.
    assert len(re.findall(r"\bc\d{3}\b", find(said, "search index data/queries.parquet"))) >= 5
    assert re.fullmatch(r"c\d{3}\[\d+:\d+\]", find(said, "parts-index parts/queries").split()[2])
    indexed = json.loads((folder / "data" / "meta.json").read_text())["counts"]["corpus"] + 6
    assert str(indexed) in find(said, "index info")
    assert len(find(said, "parts-index parts/queries").splitlines()[0].split()) == 6  # a TREC run


def test_the_program_runs(outputs, monkeypatch, capsys):
    monkeypatch.chdir(outputs[0])
    (program,) = blocks("python")
    exec(compile(program, str(TUTORIAL), "exec"), {})
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3
    assert lines[0].startswith("1 ")
    assert "t000" not in [line.split()[1] for line in lines]


def test_the_example_has_the_columns_that_the_commands_name():
    head = blocks("csv")[0].splitlines()[0].split(",")
    named = set(re.findall(r"--column \w+=(\w+)", TUTORIAL.read_text(encoding="utf-8")))
    assert named == set(head)
