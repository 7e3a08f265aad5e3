"""Threads may read files at once, the same one or others."""

from __future__ import annotations

import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import neuroseqret as nsr
from naive.index import some_sequences
from neuroseqret.errors import UserError
from neuroseqret.readers import FORMATS


def test_32_threads_read_files_of_every_format(tmp_path: Path) -> None:
    paths = {}
    for name, format in FORMATS.items():
        paths[name] = tmp_path / f"{name}{(*format.suffixes, '.bin')[0]}"
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                nsr.write(some_sequences(20), paths[name], format=name)
        except UserError:  # a format that is only read
            del paths[name]
    assert len(paths) >= 8
    serial = {name: nsr.read(path, format=name, allow_pickle=True) for name, path in paths.items()}
    with ThreadPoolExecutor(32) as threads:
        for _ in range(4):
            read = [threads.submit(nsr.read, path, format=name, allow_pickle=True) for name, path in paths.items()]
            for (name, expected), found in zip(serial.items(), read, strict=True):
                assert found.result() == expected, name
