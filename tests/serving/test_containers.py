"""The container files, as far as they can be checked without an engine that runs them."""

from __future__ import annotations

import re
import shlex

import yaml
from typer.main import get_command

from conftest import REPOSITORY
from neuroseqret.cli.main import app
from neuroseqret.serving.settings import PORT, Limits

FOLDER = REPOSITORY / "containers"


def instructions():
    """The instructions of the Dockerfile, each with its arguments on one line."""
    text = re.sub(r"\\\n\s*", " ", (FOLDER / "Dockerfile").read_text())
    return [tuple(line.split(None, 1)) for line in text.splitlines() if line.strip() and not line.startswith("#")]


def test_what_the_image_copies_exists():
    for name, rest in instructions():
        if name == "COPY" and not rest.startswith("--from"):
            *sources, _ = shlex.split(rest)
            for source in sources:
                assert (REPOSITORY / source).exists(), f"the Dockerfile copies {source}, which does not exist"


def test_the_image_serves_with_keys_as_a_user_without_rights():
    found = dict(instructions())
    assert found["USER"] not in ("root", "0")
    command = shlex.split(re.sub(r"[\[\],]", " ", found["ENTRYPOINT"] + found["CMD"]))
    options = {option for one in get_command(app).commands["serve"].params for option in one.opts}
    assert command[:2] == ["neuroseqret", "serve"]
    assert {word for word in command if word.startswith("--")} <= options
    assert "--keys" in command
    assert str(PORT) == found["EXPOSE"] == command[command.index("--port") + 1]
    assert "/health/ready" in found["HEALTHCHECK"]
    known = {"FROM", "WORKDIR", "COPY", "RUN", "ENV", "USER", "VOLUME", "EXPOSE", "STOPSIGNAL", "HEALTHCHECK"}
    assert {name for name, _ in instructions()} <= known | {"ENTRYPOINT", "CMD"}


def test_two_replicas_stand_behind_nginx():
    compose = yaml.safe_load((FOLDER / "compose.yaml").read_text())
    nginx = (FOLDER / "nginx.conf").read_text()
    replicas = re.findall(rf"server (\w+):{PORT}", nginx)
    assert len(replicas) == 2
    for name in replicas:
        service = compose["services"][name]
        context = (FOLDER / service["build"]["context"]).resolve()
        assert (context / service["build"]["dockerfile"]).is_file()
        assert service["read_only"]
    for volume in compose["services"]["nginx"]["volumes"]:
        assert (FOLDER / volume.split(":")[0]).is_file()
    assert nginx.count("{") == nginx.count("}")
    assert f"client_max_body_size {Limits().body_bytes >> 20}m" in nginx
