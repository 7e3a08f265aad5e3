"""Evaluate methods on a task: fit or load each, let it score, keep the result, or the reason if it failed.

    task = make_task(queries, corpus, protocol="sampled")
    results = run(task, ["histogram", "models/mine"])

A method is a name (made and fitted on the task's training data), a model folder (loaded) or a model in memory.
`random` and `histogram` are always among the results: a figure means nothing without chance and without the strong
simple baseline.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path

import numpy as np

from neuroseqret.data.gaps import check_gaps
from neuroseqret.data.meaning import Meaning
from neuroseqret.data.sketch import check_not_learned
from neuroseqret.errors import UserError
from neuroseqret.evaluation.cache import ResultCache, folder_fingerprint, result_key, task_fingerprint, versions
from neuroseqret.evaluation.protocol import RankingTask
from neuroseqret.evaluation.scoring import Answering, Answers, Progress, answer, silent
from neuroseqret.measures.table import MEASURES
from neuroseqret.methods import registry as methods
from neuroseqret.models.base import RelevanceModel
from neuroseqret.models.card import ModelCard
from neuroseqret.models.model_folder import read_card

ALWAYS = ("random", "histogram")
Remark = Callable[[str], None]


@dataclass(frozen=True)
class Result:
    """One row of the table: the answers of a method, or the reason why there are none."""

    name: str
    answers: Answers | None
    seconds: float  # wall-clock time of fitting and scoring, when it was computed
    error: str | None = None
    cached: bool = False

    def mean(self, measure: str) -> float:
        """Return the mean of a measure over all queries of the task; NaN for a method that failed."""
        return float("nan") if self.answers is None else float(np.mean(self.answers.measures[measure]))

    def means(self) -> dict[str, float]:
        """Return the mean of every measure."""
        return {measure: self.mean(measure) for measure in MEASURES}


def run(
    task: RankingTask,
    chosen: Sequence[str | RelevanceModel],
    *,
    max_seconds: float | None = None,
    cache: ResultCache | None = None,
    progress: Progress = silent,
    remark: Remark = lambda line: None,
    strict: bool = False,
    answering: Answering = answer,
) -> list[Result]:
    """Return the results of all methods in the given order; `random` and `histogram` come first if not named.

    Every method is fitted with the task's seed, for at most `max_seconds`. An unknown name or folder raises a
    `UserError` before anything is computed. A method that fails later gives a result with an `error`. Times that look
    like another unit than a trained model's give a warning, with `strict` an error of that model. `answering` scores
    elsewhere than in this process.
    """
    ordered = [*(name for name in ALWAYS if name not in chosen), *_once(chosen)]
    for name in ordered:
        if isinstance(name, str):
            check_name(name)
    running = _Run(task, task_fingerprint(task), max_seconds, cache, progress, remark, strict, answering)
    names = _names(ordered)
    return [running.result(method, name) for method, name in zip(ordered, names, strict=True)]


def _once(chosen: Sequence[str | RelevanceModel]) -> list[str | RelevanceModel]:
    """Return the methods without repetitions; a model is the same only if it is the same object."""
    found: dict[str | int, str | RelevanceModel] = {}
    for method in chosen:
        found.setdefault(method if isinstance(method, str) else id(method), method)
    return list(found.values())


def _names(ordered: Sequence[str | RelevanceModel]) -> list[str]:
    """Return a name for every row: models in memory are called like their method, with a number if that is taken."""
    taken = {method for method in ordered if isinstance(method, str)}
    names = []
    for method in ordered:
        if isinstance(method, str):
            names.append(method)
            continue
        tries = (method.name if number == 1 else f"{method.name}-{number}" for number in count(1))
        names.append(next(name for name in tries if name not in taken))
        taken.add(names[-1])
    return names


def check_name(name: str) -> None:
    """Raise a `UserError` if this is neither the name of a method nor a readable model folder.

    A folder that is called like a method must be given as a path, `./random`.
    """
    if methods.is_method(name):
        return
    if "/" in name or Path(name).is_dir():
        methods.method_class(read_card(name).model)
        return
    known = ", ".join([*methods.MODELS, *methods.BASELINES])
    raise UserError(f"no method is called {name!r}, and there is no folder of this name; methods are {known}")


@dataclass(frozen=True)
class _Run:
    """What is the same for all methods of a run."""

    task: RankingTask
    fingerprint: str
    max_seconds: float | None
    cache: ResultCache | None
    progress: Progress
    remark: Remark
    strict: bool
    answering: Answering

    def result(self, method: str | RelevanceModel, name: str) -> Result:
        """Return the result of a name, a model folder or a model in memory."""
        if isinstance(method, RelevanceModel):
            return self.of_model(method, name)
        return self.of_name(method) if methods.is_method(method) else self.of_folder(method)

    def of_name(self, name: str) -> Result:
        """Fit a method by its name and score the task."""
        key = self._key(self.fingerprint, method=name, kind=name)
        return self._kept(name, key) or self._computed(name, key, lambda: self._fitted(methods.make(name)), self.task)

    def of_model(self, model: RelevanceModel, name: str) -> Result:
        """Score the task with a model in memory; nothing is kept, as nothing tells what is in it."""
        if (card := model.card) is None:
            return self._computed(name, None, lambda: self._fitted(deepcopy(model)), self.task)

        def checked() -> RelevanceModel:
            _check_unseen(name, card, self.task)
            return model

        try:
            return self._computed(name, None, checked, self._as_known(name, card))
        except UserError as error:
            return Result(name, None, 0.0, error=str(error))

    def _as_known(self, name: str, card: ModelCard) -> RankingTask:
        """Return the task with marks numbered as a trained model knows them; check its times and its queries."""
        task = _in_terms_of(self.task, card.meaning)
        if task.split == "test":
            check_not_learned(card.learned_from, task.queries, name)
        for sequences in (task.queries, task.corpus):
            if not check_gaps(sequences, card.typical_gaps, card.time_unit, strict=self.strict, file=name):
                break  # one warning is enough
        return task

    def _fitted(self, model: RelevanceModel) -> RelevanceModel:
        self.remark(f"fitting {model.name}")
        task = self.task
        return model.fit(
            task.training_queries,
            task.training_corpus,
            task.training_relevance,
            seed=task.seed,
            max_seconds=self.max_seconds,
        )

    def of_folder(self, name: str) -> Result:
        """Load a method from its folder and score the task with marks numbered as the model knows them."""
        try:
            renumbered = self._as_known(name, read_card(name))
        except UserError as error:
            return Result(name, None, 0.0, error=str(error))

        def loaded() -> RelevanceModel:
            model = methods.load(name)
            _check_unseen(name, read_card(name), self.task)
            return model

        fingerprint = self.fingerprint if renumbered is self.task else task_fingerprint(renumbered)
        key = self._key(fingerprint, method=folder_fingerprint(name), kind=read_card(name).model)
        return self._kept(name, key) or self._computed(name, key, loaded, renumbered)

    def _key(self, task: str, method: str, kind: str) -> str:
        known = versions(methods.method_class(kind))
        return result_key(task=task, method=method, max_seconds=self.max_seconds, versions=known)

    def _kept(self, name: str, key: str) -> Result | None:
        kept = None if self.cache is None else self.cache.get(key, self.task)
        return None if kept is None else Result(name, kept[0], float(kept[1]["seconds"]), cached=True)

    def _computed(self, name: str, key: str | None, trained: Callable[[], RelevanceModel], task: RankingTask) -> Result:
        begun = time.monotonic()
        try:
            answers = self.answering(trained(), task, self.progress, what=name)
        except UserError as error:
            return Result(name, None, time.monotonic() - begun, error=str(error))
        except Exception as error:  # the bug of one method must not cost the results of the others; it is shown
            return Result(name, None, time.monotonic() - begun, error=f"{type(error).__name__}: {error}")
        seconds = time.monotonic() - begun
        if self.cache is not None and key is not None:
            try:
                self.cache.put(key, answers, {"name": name, "seconds": seconds})
            except UserError as error:
                self.remark(f"the result of {name} is not kept for next time: {error}")
        return Result(name, answers, seconds)


def _in_terms_of(task: RankingTask, meaning: Meaning) -> RankingTask:
    """Return the task with marks numbered as a model knows them; the same object if they are already."""
    queries, corpus = (meaning.apply(sequences) for sequences in (task.queries, task.corpus))
    same = queries is task.queries and corpus is task.corpus
    return task if same else replace(task, queries=queries, corpus=corpus)


def _check_unseen(name: str, card: ModelCard, task: RankingTask) -> None:
    """Raise a `UserError` if a model was trained with the corpus that `unseen` holds back.

    A model that was trained with exactly the training half is fine. Of any other training corpus only the hash is
    known, so nobody can tell whether it shares sequences with the ranked half: a warning says so.
    """
    if task.condition != "unseen":
        return
    trained_on = {one.corpus_fingerprint for one in (card, card.first_stage) if one is not None}
    if task.whole_corpus.fingerprint() in trained_on:
        raise UserError(
            "was trained with this whole corpus, so none of it is unseen; name the method instead of the model "
            "to have it trained with one half"
        )
    if trained_on != {task.training_corpus.fingerprint()}:
        warnings.warn(
            f"{name} was trained with another corpus; if that holds sequences of the ranked half, they are not unseen",
            stacklevel=2,
        )
