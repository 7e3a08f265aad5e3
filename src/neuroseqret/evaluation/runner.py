"""Evaluate methods on a task: fit or load each, let it answer, keep what it answered, say why where it failed.

    from neuroseqret import methods
    task = make_task(queries, corpus, protocol="sampled")
    results = run(task, ["histogram", "models/mine"], methods)

A method is a name (made and fitted on the task's training data) or a model folder (loaded). `random` and `histogram`
are always among the results: a figure means nothing without chance and without the simple strong baseline.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

import numpy as np

from neuroseqret.data.meaning import in_terms_of
from neuroseqret.errors import UserError
from neuroseqret.evaluation.cache import ResultCache, folder_fingerprint, result_key, task_fingerprint
from neuroseqret.evaluation.code import code_version
from neuroseqret.evaluation.protocol import Task
from neuroseqret.evaluation.scoring import Answers, Progress, answer, silent
from neuroseqret.measures.table import MEASURES
from neuroseqret.models.base import RelevanceModel
from neuroseqret.models.model_folder import read_config

ALWAYS = ("random", "histogram")
Remark = Callable[[str], None]


class Registry(Protocol):
    """Methods by name and by folder; the module `neuroseqret.methods.registry` is one."""

    MODELS: dict[str, str]
    BASELINES: dict[str, str]

    def method_class(self, name: str) -> type[RelevanceModel]: ...

    def make(self, name: str) -> RelevanceModel: ...

    def load(self, folder: str) -> RelevanceModel: ...


@dataclass(frozen=True)
class Result:
    """One row of the table: either answers or the reason why there are none."""

    name: str
    answers: Answers | None
    seconds: float  # fitting and answering, wall clock, when it was computed
    error: str | None = None
    cached: bool = False

    def mean(self, measure: str) -> float:
        """Mean of a measure over all queries of the task; NaN for a method that failed."""
        return float("nan") if self.answers is None else float(np.mean(self.answers.measures[measure]))

    def means(self) -> dict[str, float]:
        return {measure: self.mean(measure) for measure in MEASURES}


def run(
    task: Task,
    names: Sequence[str],
    registry: Registry,
    *,
    max_seconds: float | None = None,
    cache: ResultCache | None = None,
    progress: Progress = silent,
    remark: Remark = lambda line: None,
) -> list[Result]:
    """The results of all methods, in the order given, `random` and `histogram` before them if not named.

    Every method is fitted with the task's seed; `max_seconds` bounds the fitting of each. Unknown names and folders
    are errors before anything is computed; a method that fails later is a result with an `error`.
    """
    ordered = [name for name in ALWAYS if name not in names] + list(dict.fromkeys(names))
    for name in ordered:
        check_name(name, registry)
    fingerprint = task_fingerprint(task)
    return [
        _result(
            name, task, fingerprint, registry, max_seconds=max_seconds, cache=cache, progress=progress, remark=remark
        )
        for name in ordered
    ]


def is_name(name: str, registry: Registry) -> bool:
    """Whether a method is given by its name; a folder that is called like a method is meant by `./name` only."""
    return name in registry.MODELS or name in registry.BASELINES


def check_name(name: str, registry: Registry) -> None:
    """Raise a `UserError` if a method is neither a known name nor a readable model folder."""
    if is_name(name, registry):
        return
    if "/" in name or Path(name).is_dir():
        name = str(read_config(name).get("model"))
    registry.method_class(name)


def _result(
    name: str,
    task: Task,
    fingerprint: str,
    registry: Registry,
    *,
    max_seconds: float | None,
    cache: ResultCache | None,
    progress: Progress,
    remark: Remark,
) -> Result:
    named = is_name(name, registry)
    method = name if named else folder_fingerprint(name)
    kind = name if named else str(read_config(name).get("model"))
    code = code_version(registry.method_class(kind).__module__)
    try:
        told = task if named else _in_terms_of(task, name)
    except UserError as error:
        return Result(name, None, 0.0, error=str(error))
    fingerprint = fingerprint if told is task else task_fingerprint(told)
    key = result_key(task=fingerprint, method=method, max_seconds=max_seconds, code=code)
    if cache is not None and (kept := cache.get(key, task)) is not None:
        answers, notes = kept
        return Result(name, answers, float(notes["seconds"]), cached=True)
    begun = time.monotonic()
    try:
        if named:
            model = registry.make(name).fit(
                task.training_queries,
                task.training_corpus,
                task.training_relevance,
                seed=task.seed,
                max_seconds=max_seconds,
            )
        else:
            model = registry.load(name)
            _check_unseen(name, task, remark)
        answers = answer(model, told, progress, what=name)
    except UserError as error:
        return Result(name, None, time.monotonic() - begun, error=str(error))
    except Exception as error:  # one method's bug must not cost the others' results; it is shown, not hidden
        return Result(name, None, time.monotonic() - begun, error=f"{type(error).__name__}: {error}")
    seconds = time.monotonic() - begun
    if cache is not None:
        try:
            cache.put(key, answers, {"name": name, "seconds": seconds})
        except UserError as error:
            remark(f"the result of {name} is not kept for next time: {error}")
    return Result(name, answers, seconds)


def _in_terms_of(task: Task, folder: str) -> Task:
    """The task with what is asked and ranked in the terms of a model folder; itself if it is so already."""
    learned = read_config(folder)
    queries, corpus = (in_terms_of(sequences, learned) for sequences in (task.queries, task.corpus))
    same = queries is task.queries and corpus is task.corpus
    return task if same else replace(task, queries=queries, corpus=corpus)


def _check_unseen(name: str, task: Task, remark: Remark) -> None:
    """A model folder may answer in `unseen` only if it was not trained with the ranked half.

    It was not if its training corpus is the task's training half. A model that was trained with this whole corpus has
    seen everything. Of any other corpus only its hash is known, so whether it shares sequences with the ranked half
    cannot be told, and that is said.
    """
    if task.condition != "unseen":
        return
    config = read_config(name)
    places = (config, config.get("info", {}), config.get("first_stage", {}))
    trained_on = {place["corpus_fingerprint"] for place in places if "corpus_fingerprint" in place}
    if task.whole_corpus.fingerprint() in trained_on:
        raise UserError(
            "was trained with this whole corpus, so none of it is unseen; name the method instead of the folder "
            "to have it trained with one half"
        )
    if trained_on != {task.training_corpus.fingerprint()}:
        remark(
            f"{name} was trained with another corpus; if that holds sequences of the ranked half, they are not unseen"
        )
