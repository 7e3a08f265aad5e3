"""An `index.json` that does not describe the store is one clear line, whatever it says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from golden.golden_data import golden_data
from neuroseqret import methods
from neuroseqret.errors import UserError
from neuroseqret.index import Index


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    queries, corpus = golden_data()
    folder = tmp_path_factory.mktemp("forged") / "index"
    Index.create(methods.make("histogram").fit(queries, corpus), folder, corpus)
    return folder


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("dimension", 10**9, "says 1000000000 dimensions, the store holds"),
        ("dimension", 2**62, "dimensions, the store holds"),
        ("dimension", 0, "damaged"),
        ("dimension", -1, "damaged"),
        ("settings.bits", 10**9, "damaged .*1 to 1024 bits"),
        ("settings.tables", 10**9, "damaged .*bucket tables"),
        ("settings.fraction", float("nan"), "damaged"),
        ("settings.window_events", 10**9, "says that rows are windows, but the store holds sequences"),
        ("settings.window_duration", 1e300, "says that rows are windows"),
        ("settings.window_events", 0, "damaged"),
    ],
)
def test_forged_numbers_are_refused_when_the_index_is_opened(made: Path, name: str, value: Any, message: str) -> None:
    file = made / "index.json"
    before = file.read_text()
    config = json.loads(before)
    inner = config
    *outer, last = name.split(".")
    for part in outer:
        inner = inner[part]
    inner[last] = value
    file.write_text(json.dumps(config))
    try:
        with pytest.raises(UserError, match=message) as error:
            Index.open(made)
        assert "\n" not in str(error.value)
    finally:
        file.write_text(before)
    assert len(Index.open(made)) == len(golden_data()[1])
