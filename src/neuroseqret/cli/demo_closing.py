"""The end of the demo: commands that can be pasted as they are, and the file that they read."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from shutil import which
from typing import TYPE_CHECKING

from rich.markup import escape

from neuroseqret.cli.console import out as console

if TYPE_CHECKING:
    from neuroseqret.data.sequences import EventSequences


def next_commands(out: Path) -> None:
    """Print commands that can be pasted as they are."""
    folder = shlex.quote(str(out))
    if which("neuroseqret") is None:  # as after `make demo`
        console.print(f"\nThe command neuroseqret is in {Path(sys.executable).parent}.", markup=False)
    console.print("\n[bold]To see and hear the melodies[/] in a browser, and search with a part of one:")
    _command(f"neuroseqret serve {folder}/index")
    console.print("\n[bold]To see why[/] a hit was found (pictures in the folder):")
    _command(f"neuroseqret search {folder}/index {folder}/data/queries.parquet --limit 3 --explain {folder}/why")
    console.print(
        "\n[bold]To search your own data[/], put your file and the names of its columns in place of "
        f"{escape(folder)}/events.csv, which has one row per note. The group column says which sequences belong "
        "together; leave it out if you have none (docs/tutorial.md explains each step):"
    )
    for line in (
        f"neuroseqret data prepare --from {folder}/events.csv --column id=melody --column time=beat --column mark=step "
        f"--column group=kind --out {folder}/mine",
        f"neuroseqret fit {folder}/mine --model self --max-seconds 60 --out {folder}/my-model",
        f"neuroseqret index create {folder}/my-model {folder}/mine --out {folder}/my-index",
        f"neuroseqret search {folder}/my-index {folder}/mine/queries.parquet --limit 3",
    ):
        _command(line)


def _command(line: str) -> None:
    console.print(line, markup=False, soft_wrap=True)


def write_events(corpus: EventSequences, path: Path) -> None:
    """Write the melodies as a CSV file with one row per note, as people have their data."""
    import numpy as np
    import pyarrow as pa
    from pyarrow import csv

    names = corpus.mark_names or ()
    table = pa.table(
        {
            "melody": corpus.ids.take(pa.array(np.repeat(np.arange(len(corpus)), corpus.lengths))),
            "beat": corpus.times,
            "step": [names[mark] for mark in corpus.marks],
            "kind": np.repeat(np.array(corpus.groups.to_pylist() if corpus.groups is not None else []), corpus.lengths),
        }
    )
    csv.write_csv(table, path)
