"""The command line's frame: help, version, and mistakes that end in one line and exit code 2."""

from __future__ import annotations

import inspect
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import neuroseqret
from cli import calling
from neuroseqret import methods
from neuroseqret.cli.listing import FORMAT_NAMES, ORDER
from neuroseqret.cli.main import app
from neuroseqret.cli.numbers import finite, positive
from neuroseqret.readers import FORMATS

COMMAND = [sys.executable, "-c", "from neuroseqret.cli.main import run; run()"]


def call(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*COMMAND, *arguments], capture_output=True, text=True, timeout=120)


def test_version_and_help() -> None:
    assert call("--version").stdout.strip() == f"neuroseqret {neuroseqret.__version__}"
    done = call()
    assert done.returncode == 0
    assert re.findall(r"^  (\w+)  ", done.stdout.split("Commands:")[1], re.MULTILINE) == list(ORDER)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nonsense"], "No such command 'nonsense'"),
        (["fit"], "Missing argument"),
        (["fit", "--model"], "requires an argument"),
        (["fit", "no-such-folder", "--out", "model"], "no-such-folder"),
        (["fit", ".", "--model", "histogram", "--preset", "paper", "--out", "model"], "has no preset 'paper'"),
        (["fit", "no-such-folder", "--out", "tests"], "tests: exists and holds no config.json"),
        (["data", "info", "no-such-file"], "no-such-file"),
        (["embed", "no-such-model", "x.parquet", "--out", "e.parquet"], "no-such-model"),
        (["embed", "model", "x.parquet", "--out", "e.npy"], "e.npy: vectors are written as Parquet; call it e.parquet"),
        (["evaluate", "no-such-folder", "--method", "random"], "no-such-folder"),
        (["search", "no-such-index", "x.parquet"], "no-such-index"),
    ],
)
def test_a_mistake_is_one_line_and_code_2(arguments: list[str], words: str) -> None:
    done = calling.call(*arguments)
    assert done.returncode == 2
    assert done.stdout == ""
    assert len(done.stderr.strip().splitlines()) == 1
    assert words in done.stderr


def test_a_process_of_its_own_says_the_same() -> None:
    words = ("search", "no-such-index", "x.parquet")
    alone, here = call(*words), calling.call(*words)
    assert (alone.returncode, alone.stdout, alone.stderr) == (here.returncode, here.stdout, here.stderr)


@pytest.mark.parametrize(
    "command",
    [
        "search i x.parquet -k 0",
        "search i x.parquet --rerank-top -1",
        "index create m x.parquet --out i --window 0",
        "index create m x.parquet --out i --window 5 --step 0",
        "data prepare --from x.csv --out d --seed -1",
        "fit data --out model --seed -1",
        "fit data --out model --seed 4294967296",
        "evaluate data --seed -1",
        "evaluate data --max-seconds nan",
        "evaluate data --max-seconds inf",
        "fit data --out model --max-seconds nan",
        "data prepare --from x.csv --out d --query-share nan",
    ],
)
def test_a_number_out_of_range_names_its_option(command: str) -> None:
    option = command.split()[-2]
    done = calling.call(*command.split())
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)
    assert f"Invalid value for '{option}'" in done.stderr


def commands() -> dict[str, Any]:
    """Every command's function, by the words that call it."""
    groups = {"": app} | {f"{group.name} ": group.typer_instance for group in app.registered_groups}
    return {
        words + command.callback.__name__: command.callback
        for words, group in groups.items()
        for command in group.registered_commands
    }


@pytest.mark.parametrize("words", ["", "index", "data", *commands()])
def test_help_fits_and_calls_values_by_upper_case_words(words: str) -> None:
    said = calling.call(*words.split(), "--help").stdout
    assert "..." not in said.split("Commands:")[-1] or words not in ("", "index", "data")  # no summary is cut
    assert "{" not in said
    assert not re.search(r"<\w", said)
    for line in re.findall(r"^  -[^ ].*?(?=  |$)", said, re.MULTILINE):
        assert re.fullmatch(r"(--?[a-z-]+(, | / )?)+( [A-Z_=]+)?", line.strip()), line


def test_help_lists_the_names_there_are() -> None:
    for command in ("fit", "evaluate"):
        said = "".join(calling.call(command, "--help").stdout.split())
        assert ",".join([*methods.MODELS, *methods.BASELINES]) in said
    assert tuple(FORMATS) == FORMAT_NAMES
    for command in ("info", "convert", "prepare"):
        assert ",".join(FORMATS) in "".join(calling.call("data", command, "--help").stdout.split())


def test_every_command_that_a_script_may_call_gives_json() -> None:
    for words, function in commands().items():
        options = [
            getattr(one.default, "param_decls", None) or () for one in inspect.signature(function).parameters.values()
        ]
        assert any("--json" in names for names in options) is (words not in ("serve", "demo")), words


def test_keys_in_json_show_no_hash(tmp_path: Path) -> None:
    file = str(tmp_path / "keys.json")
    made = json.loads(calling.call("keys", "create", file, "--name", "anna", "--days", "2", "--json").stdout)
    assert made.pop("key").startswith(f"nsr_{made['id']}_")
    listed = json.loads(calling.call("keys", "list", file, "--json").stdout)
    assert listed == [made]
    assert (made["name"], made["scopes"], made["expired"], "hash" in made) == ("anna", ["read"], False, False)
    assert json.loads(calling.call("keys", "revoke", file, "anna", "--json").stdout) == {"revoked": made}
    assert json.loads(calling.call("keys", "list", file, "--json").stdout) == []


def test_keys_fit_into_eighty_columns(tmp_path: Path) -> None:
    file = str(tmp_path / "keys.json")
    scopes = [word for scope in ("read", "write", "admin") for word in ("--scope", scope)]
    made = calling.call("keys", "create", file, "--name", "anna", "--days", "2", *scopes, "--json")
    key = json.loads(made.stdout)
    heading, line = calling.call_in_terminal("keys", "list", file).stdout.splitlines()
    assert heading.split() == ["id", "name", "scopes", "created", "expires"]
    assert len(line) <= 80
    ends = key["expires"][:16].replace("T", " ")
    assert line.split("  ") == [key["id"], "anna", "read, write, admin", key["created"][:10], f"{ends} UTC"]


@pytest.mark.parametrize("words", ["data", "index", "keys"])
def test_a_group_without_its_command_shows_the_help(words: str) -> None:
    done = calling.call(words)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.strip() == calling.call(words, "--help").stdout.strip()


def test_every_option_that_is_a_float_must_be_finite() -> None:
    every = [option for function in commands().values() for option in inspect.signature(function).parameters.values()]
    floats = [option for option in every if "float" in str(option.annotation)]
    assert len(floats) >= 3
    assert [option.name for option in floats if option.default.callback not in (finite, positive)] == []


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
def test_a_full_disk_behind_the_output_is_one_line() -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run([*COMMAND, "--version"], stdout=full, stderr=subprocess.PIPE, text=True, timeout=120)
    assert done.returncode == 2
    assert done.stderr.strip() == "neuroseqret: No space left on device"
