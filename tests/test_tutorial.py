"""Every command and program of docs/tutorial.md, in order, on the files that its first program makes."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from neuroseqret.cli.main import app

TUTORIAL = Path(__file__).resolve().parent.parent / "docs" / "tutorial.md"


def blocks(language, page=TUTORIAL):
    return re.findall(rf"```{language}\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)


def run(program):
    exec(compile(program, str(TUTORIAL), "exec"), {})


def commands():
    return [line[2:] for block in blocks("console") for line in block.splitlines()]


@pytest.fixture(scope="module")
def outputs(tmp_path_factory):
    """The output of every command, run in order in one folder."""
    folder = tmp_path_factory.mktemp("tutorial")
    said = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        run(blocks("python")[0])
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
    assert len(said) == len(commands()) >= 16
    assert "120 sequences" in find(said, "data info")
    assert "corpus sequences" in find(said, "data prepare")
    assert (folder / "model" / "config.json").exists()


def test_the_model_of_the_tutorial_is_good(outputs):
    figures = json.loads((outputs[0] / "figures.json").read_text())["methods"]
    assert figures["model"]["AP"] > figures["random"]["AP"] + 0.1


def test_searches_answer(outputs):
    folder, said = outputs
    answers = json.loads(find(said, "search index today.csv"))
    assert len(answers) == 6
    assert all(len(answer["hits"]) == 3 for answer in answers)
    # What is found are customers and parts of their histories, by their own names.
    assert len(re.findall(r"\bc\d{3}\b", find(said, "search index data/queries.parquet"))) >= 5
    assert re.fullmatch(r"c\d{3}\[\d+:\d+\]", find(said, "parts-index parts/queries").split()[2])
    indexed = json.loads((folder / "data" / "meta.json").read_text())["counts"]["corpus"] + 6
    assert str(indexed) in find(said, "index info")
    assert len(find(said, "parts-index parts/queries").splitlines()[0].split()) == 6  # a TREC run


def test_the_pages_show_the_json_that_is_written(outputs):
    folder, said = outputs
    (evaluated,) = (json.loads(text) for text in blocks("json", TUTORIAL.with_name("evaluation.md")))
    figures = json.loads((folder / "figures.json").read_text())
    assert evaluated.keys() == figures.keys()
    assert evaluated["methods"]["model"].keys() == figures["methods"]["model"].keys()
    assert evaluated["significance"].keys() == figures["significance"].keys()
    ((shown,),) = (json.loads(text) for text in blocks("json", TUTORIAL.with_name("search.md")))
    answer = json.loads(find(said, "search index today.csv"))[0]
    assert shown.keys() == answer.keys()
    assert shown["hits"][0].keys() == answer["hits"][0].keys()


def test_the_program_runs(outputs, monkeypatch, capsys):
    monkeypatch.chdir(outputs[0])
    _, program = blocks("python")
    run(program)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3
    assert lines[0].startswith("1 ")
    assert "t000" not in [line.split()[1] for line in lines]


def test_the_second_model_looks_at_the_hits_again(outputs):
    once, again = find(outputs[1], "data/queries.parquet -k 5"), find(outputs[1], "--rerank cross")
    hits = [len(re.findall(r"^ +\d+ +\d\.\d+ +c\d{3}", said, re.MULTILINE)) for said in (once, again)]
    assert hits[0] == hits[1] > 0


def test_a_day_without_a_mark_is_searched(outputs):
    """Its other marks have other numbers in the file than in the model."""
    events, today = ((outputs[0] / name).read_text() for name in ("events.csv", "today.csv"))
    assert ",buy," in events
    assert ",buy," not in today
    assert today.count("\n") > 100


def test_the_file_begins_as_the_page_shows(outputs):
    assert (outputs[0] / "events.csv").read_text().startswith(blocks("csv")[0])


def test_the_example_has_the_columns_that_the_commands_name():
    head = blocks("csv")[0].splitlines()[0].split(",")
    named = set(re.findall(r"--column \w+=(\w+)", TUTORIAL.read_text(encoding="utf-8")))
    assert named == set(head)
