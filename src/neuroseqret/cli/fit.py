"""`neuroseqret fit`: learn a model from a data folder, or from any file of sequences without labels."""

from __future__ import annotations

import math
import shutil
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from neuroseqret.cli.console import remarks
from neuroseqret.cli.data import ANY_FORMAT
from neuroseqret.cli.numbers import finite
from neuroseqret.errors import UserError

if TYPE_CHECKING:
    from neuroseqret.models.base import RelevanceModel
    from neuroseqret.readers.data_folder import DataFolder


def fit(
    data: Path = typer.Argument(
        ..., metavar="DATA", help=f"Data folder, or a file of sequences without labels, {ANY_FORMAT}."
    ),
    model: str = typer.Option("self", "--model", metavar="NAME", help="{methods}."),
    out: Path = typer.Option(..., "--out", metavar="MODEL", help="Model folder to write."),
    preset: str = typer.Option(
        "default", "--preset", metavar="NAME", help="default, paper, or paper-NAME for a set of the paper."
    ),
    seed: int = typer.Option(
        0,
        "--seed",
        metavar="N",
        min=0,
        max=2**32 - 1,
        help="Same seed, same machine: same weights (without --max-seconds).",
    ),
    max_seconds: float | None = typer.Option(
        None, "--max-seconds", metavar="SECONDS", min=1, callback=finite, help="Wall-clock budget of the training."
    ),
) -> None:
    """Train a model and write its folder.

    Learns from the queries whose split is 'train', selects on those whose split is 'validation' and never looks at the
    others. Without labels it learns from sub-sequences: parts of one sequence are relevant to one another. A run that
    is cut off goes on where it was when the same command is given again.
    """
    from neuroseqret import methods
    from neuroseqret.models.model_folder import HOLDS
    from neuroseqret.storage.files import check_replaceable

    check_replaceable(out, *HOLDS)  # now, not after the training
    if not out.parent.is_dir():
        raise UserError(f"{out.parent}: no such folder; make it or choose another --out")
    if preset != "default" and model in methods.BASELINES:
        raise UserError(f"the baseline {model!r} has no preset {preset!r}; leave out --preset")
    folder = _read(data)
    method = methods.make(model, preset)
    begun = time.monotonic()
    checkpoint = out.resolve().with_name(out.resolve().name + ".checkpoint")
    options: dict[str, Any] = {"checkpoint": checkpoint} if model in methods.MODELS else {}
    if folder.queries is None and model not in methods.MODELS:
        raise UserError(f"{data}: has no queries, and {model!r} cannot learn without; use --model self")
    queries: Any = folder.queries  # None where the models learn from sub-sequences
    method.fit(queries, folder.corpus, folder.relevance, seed=seed, max_seconds=max_seconds, **options)
    method.save(out)
    shutil.rmtree(checkpoint, ignore_errors=True)
    if (clock := _clock(method, folder.corpus.time_unit)) is not None:
        remarks.print(clock, markup=False)
    remarks.print(f"{model} ({preset}) trained in {time.monotonic() - begun:.0f} s, written to {out}", markup=False)


def _clock(method: RelevanceModel, unit: str | None) -> str | None:
    """The time scale that was learned, in words, so that a wrong unit is seen; None where a method has none."""
    from neuroseqret.processes.time_scale import TimeScale

    scale = getattr(getattr(method, "first_stage", method), "scale", None)
    if not isinstance(scale, TimeScale):
        return None
    low, middle, high = (max(math.exp(scale.mean + k * scale.sd) - scale.eps, 0.0) for k in (-1, 0, 1))
    return f"gaps between events: typically {middle:.3g}{f' {unit}' if unit else ''}, mostly {low:.3g} to {high:.3g}"


def _read(data: Path) -> DataFolder:
    from neuroseqret.readers import read
    from neuroseqret.readers.data_folder import DataFolder, read_folder
    from neuroseqret.readers.formats.canonical import is_data_folder

    if is_data_folder(data):
        return read_folder(data)
    return DataFolder(path=data, corpus=read(data), queries=None, relevance=None, meta={})
