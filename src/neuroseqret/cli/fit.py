"""`neuroseqret fit`: train a model on a data folder, or on a file of sequences without labels."""

from __future__ import annotations

import math
import os
import shlex
import shutil
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from neuroseqret.cli.console import print_json, remarks
from neuroseqret.cli.event_files import ANY_FORMAT, FORCE
from neuroseqret.cli.numbers import finite, seed_number
from neuroseqret.cli.places import device_named
from neuroseqret.errors import DataError, UserError

if TYPE_CHECKING:
    from neuroseqret.models.base import RelevanceModel
    from neuroseqret.models.card import ModelCard
    from neuroseqret.readers.data_folder import DataFolder


def fit(
    data: Path = typer.Argument(
        ..., metavar="DATA", help=f"Data folder, or a file of sequences without labels {ANY_FORMAT}."
    ),
    model: str = typer.Option("self", "--model", metavar="NAME", help="Method to train: {methods}."),
    out: Path = typer.Option(..., "--out", metavar="MODEL", help="Model folder to write."),
    first: Path | None = typer.Option(
        None,
        "--first",
        metavar="MODEL",
        help="Model folder of the trained first stage, for 'cross' and 'hash-cross'. By default one is trained too.",
    ),
    preset: str = typer.Option(
        "default",
        "--preset",
        metavar="NAME",
        help="Settings of the model: default; neural (with a neural point process, slower); paper or paper-literal, or "
        "those of one of the paper's data sets (paper-health). Baselines have no presets.",
    ),
    seed: int = typer.Option(
        0,
        "--seed",
        metavar="N",
        callback=seed_number,
        help="Random seed. The same seed gives the same weights on the same machine, unless --max-seconds is given.",
    ),
    feedback: Path | None = typer.Option(
        None, "--feedback", metavar="INDEX", help="Index folder whose stored judgements are learned from as well."
    ),
    max_seconds: float | None = typer.Option(
        None, "--max-seconds", metavar="SECONDS", min=1, callback=finite, help="Train for at most about this long."
    ),
    value: list[str] = typer.Option(
        [],
        "--value",
        metavar="COLUMN",
        help="Learn from this column too, which has one number per event (an amount, a speed). Repeat the option for "
        "each column. For --model self, preset default or neural.",
    ),
    device: str | None = typer.Option(
        None, "--device", metavar="NAME", help="Device to train networks on: cpu, cuda or mps. GPUs are untested."
    ),
    force: bool = FORCE,
    as_json: bool = typer.Option(False, "--json", help="Print what was learned, and where it is, as JSON."),
) -> None:
    """Train a model and write it to a folder.

    Trains on the queries with split 'train', chooses the best weights by those with split 'validation', and does not
    use the others. Without labels, parts of the same sequence count as relevant to each other. If training is
    interrupted, run the same command again: it continues where it stopped. Several processes share the work with
    'torchrun --nproc-per-node N -m neuroseqret fit ...'.
    """
    from neuroseqret.methods import registry as methods
    from neuroseqret.models.base import Resumable
    from neuroseqret.models.model_folder import CONFIG, HOLDS
    from neuroseqret.storage.files import check_replaceable
    from neuroseqret.training import ranks

    with ranks.started():
        if not ranks.is_first():  # the first process says and writes everything
            remarks.quiet = True
            os.environ["NEUROSEQRET_PROGRESS"] = "off"
        check_replaceable(out, *HOLDS)  # before the work, not after it
        chosen = None if device is None else device_named(device)
        if not out.parent.is_dir():
            raise UserError(f"{out.parent}: no such folder; create it or choose another --out")
        if preset != "default" and model in methods.BASELINES:
            raise UserError(f"the baseline {model!r} has no preset {preset!r}; leave out --preset")
        options = {**_first_stage(model, first), **_values(model, value)}
        folder = _read(data) if feedback is None else _with_feedback(_read(data), feedback, seed)
        method = methods.make(model, preset, **options)
        if not force and (out / CONFIG).exists():
            _check_same(out, method, folder, seed, max_seconds)
        if ranks.number() > 1 and not method.shares_training:
            raise UserError(f"the training of {model!r} cannot be shared by several processes; run it without torchrun")
        remarks.print(_task_in_words(folder, model, preset), markup=False)
        begun = time.monotonic()
        checkpoint = out.resolve().with_name(out.resolve().name + ".checkpoint")
        if checkpoint.is_dir():
            remarks.print(f"continuing the run that was interrupted (its state is in {checkpoint})", markup=False)
        try:
            method.fit(
                folder,  # without queries, a method that needs labels learns from sub-sequences
                seed=seed,
                max_seconds=max_seconds,
                checkpoint=checkpoint if isinstance(method, Resumable) else None,
                device=chosen,
            )
        except KeyboardInterrupt:
            if checkpoint.is_dir():
                remarks.print("stopped; run the same command again to go on from here", markup=False)
            else:
                remarks.print(
                    "stopped; nothing was saved yet, so the same command starts from the beginning", markup=False
                )
            raise
        if not ranks.is_first():
            return
        method.save(out)
        shutil.rmtree(checkpoint, ignore_errors=True)
    _report(method, data, out, time.monotonic() - begun, as_json, model=model, preset=preset, seed=seed)


def _check_same(out: Path, method: RelevanceModel, folder: DataFolder, seed: int, max_seconds: float | None) -> None:
    """Say that a model is replaced if the same command wrote it; raise a `UserError` if it is another one."""
    from neuroseqret.models.model_folder import read_card

    try:
        card = read_card(out)
    except UserError as error:
        raise UserError(f"{error}; add --force to replace it, or choose another --out") from error
    asked = (method.name, method.preset, method.settings.model_dump(mode="json"), seed, folder.corpus.fingerprint())
    other = None
    if (card.model, card.preset, card.settings, card.seed, card.corpus_fingerprint) != asked:
        other = "other settings, seed or data"
    elif card.max_seconds != max_seconds:
        limits = [f"--max-seconds {limit:g}" if limit else "no time limit" for limit in (card.max_seconds, max_seconds)]
        other = f"{limits[0]}, not {limits[1]}"
    if other is not None:
        kind = f"{card.model!r} model" + (f" (preset {card.preset})" if card.preset else "")
        raise UserError(f"{out}: holds a {kind} with {other}; add --force to replace it, or choose another --out")
    remarks.print(f"{out}: the model there was made with the same settings, seed and data; replacing it", markup=False)


def _report(method: RelevanceModel, data: Path, out: Path, seconds: float, as_json: bool, **chosen: Any) -> None:
    """Say what was learned, where it is, and what one usually does next."""
    card = method.to_state().card
    if (clock := _clock(card)) is not None:
        remarks.print(clock, markup=False)
    for measure, value in card.validation.items():
        seen = " (in the corpus that was learned from)" if card.train_queries else ""
        remarks.print(f"{measure} of the validation queries: {100 * value:.1f} %{seen}", markup=False)
    remarks.print(f"{chosen['model']} ({chosen['preset']}) trained in {seconds:.0f} s, written to {out}", markup=False)
    following = next_command(method, data, out)
    if as_json:
        found = {"validation": card.validation, "seconds": round(seconds, 1), "next": following}
        chosen = {"method": chosen["model"], "preset": chosen["preset"], "seed": chosen["seed"]}
        print_json({"model": str(out), **chosen, **found})
    else:
        remarks.print(f"next: {following}", markup=False)


def next_command(method: RelevanceModel, data: Path, out: Path) -> str:
    """Return the command that one usually runs after this one."""
    from neuroseqret.models.base import Embedder

    quoted = shlex.quote(str(out))
    if isinstance(method, Embedder):
        return f"neuroseqret index create {quoted} {shlex.quote(str(data))} --out index"
    return f"neuroseqret evaluate {shlex.quote(str(data))} --method {quoted}"


def _first_stage(model: str, first: Path | None) -> dict[str, Any]:
    """Return the options of a method that is given a trained first stage."""
    if first is None:
        return {}
    from neuroseqret.methods import registry
    from neuroseqret.models.self_attention.model import SelfAttention

    if model not in ("cross", "hash-cross"):
        raise UserError(f"--first is for --model cross and hash-cross; {model!r} has no first stage")
    loaded = registry.load(first)
    if not isinstance(loaded, SelfAttention):
        raise UserError(f"{first}: a {loaded.name!r} model cannot be a first stage; name a 'self' model")
    return {"first_stage": loaded}


def _values(model: str, columns: list[str]) -> dict[str, Any]:
    """Return the option of a method that learns from values of events."""
    if not columns:
        return {}
    if model in ("cross", "hash-cross"):
        raise UserError(
            f"{model!r} reads values through its first stage; fit a 'self' model with --value and name it by --first"
        )
    if model != "self":
        raise UserError(f"{model!r} reads times and marks only; leave out --value")
    return {"values": columns}


def _with_feedback(folder: DataFolder, place: Path, seed: int) -> DataFolder:
    """Return the data with the judgements of an index as further labels."""
    from dataclasses import replace

    from neuroseqret.cli.places import open_folder
    from neuroseqret.feedback.labels import labels_of

    found = labels_of(open_folder(place), folder.corpus, folder.queries, folder.relevance, seed)
    skipped = f", {found.skipped:,} of no use" if found.skipped else ""
    remarks.print(f"learning from {found.judgements:,} judgements in {place}{skipped}", markup=False)
    return replace(folder, queries=found.queries, relevance=found.relevance)


def _clock(card: ModelCard) -> str | None:
    """Describe the learned time scale, so that a wrong unit is noticed; None if the method has no time scale."""
    from neuroseqret.data.durations import duration, durations

    scale = card.time_scale if card.first_stage is None else card.first_stage.time_scale
    if scale is None:
        return None
    low, middle, high = (max(math.exp(scale.mean + k * scale.sd) - scale.eps, 0.0) for k in (-1, 0, 1))
    unit = card.time_unit
    return f"gaps between events: typically {duration(middle, unit)}, mostly {durations(low, high, unit)}"


def _read(data: Path) -> DataFolder:
    """Read a data folder, or a file of sequences as a data folder without queries; of a large corpus a random part."""
    from neuroseqret.readers import read, sniff
    from neuroseqret.readers.data_folder import DataFolder, read_folder
    from neuroseqret.readers.formats.canonical import is_data_folder
    from neuroseqret.readers.part_of_corpus import MOST_EVENTS, read_at_most

    if is_data_folder(data):
        return read_folder(data, most_events=MOST_EVENTS)
    try:
        corpus = read_at_most(data, MOST_EVENTS) if sniff(data) == "canonical" else read(data)
    except DataError as error:
        if "--column" not in str(error):
            raise
        raise UserError(
            f"{data}: say what its columns hold when you make a data folder of it, and fit that: neuroseqret data "
            f"prepare --from {shlex.quote(str(data))} --column id=... --column time=... --column mark=... --out data"
        ) from error
    return DataFolder(path=data, corpus=corpus)


def _task_in_words(folder: DataFolder, model: str, preset: str) -> str:
    """Return what is trained on what: the first line, because the first bar may take a while."""
    column = None if folder.queries is None else folder.queries.column("split")
    splits = [] if column is None else column.to_pylist()
    queries = " and ".join(f"{splits.count(name):,} {name}" for name in ("train", "validation") if name in splits)
    named = model if preset == "default" else f"{model} (preset {preset})"
    return f"training {named} on {len(folder.corpus):,} sequences" + (f" with {queries} queries" if queries else "")
