"""Fit a method once, ask it in every way that is wanted, and keep each answer as a cell."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from experiments import cutting
from experiments.cells import Cells, Config, Result
from experiments.cutting import Cut, cut_queries
from experiments.plan import Fit, View, views
from experiments.variants import VARIANTS, variant
from neuroseqret import methods
from neuroseqret.errors import DataError, UserError
from neuroseqret.evaluation.cache import folder_fingerprint, result_key
from neuroseqret.evaluation.code import code_version
from neuroseqret.evaluation.protocol import Task, make_task
from neuroseqret.evaluation.scoring import Answers, answer, answer_from
from neuroseqret.models.base import RelevanceModel, Scores
from neuroseqret.models.cross.second_stage import SecondStage
from neuroseqret.models.presets import PAPER_TABLE
from neuroseqret.models.self_attention.model import SelfAttention
from neuroseqret.readers.data_folder import CORPUS, QUERIES, DataFolder, read_folder
from neuroseqret.storage.files import new_file

TASK_SEED = 0  # of lists, drawn queries, halves and ties: the same for every seed of a method
QUIET = 0.85  # of a core: with less of it, a budget in seconds is unfair
SECOND_STAGES = ("cross", "hash-cross")
SECOND_STAGE = 0.5  # of the budget, on top of the first stage that a second stage reorders
KEPT = ("AP", "nDCG@10")  # measures that are kept query by query

Say = Callable[[str], None]
W = TypeVar("W")


@dataclass(frozen=True)
class Piece:
    """A cell that is no ranking of a fitted method: its name, what it depends on, and how it is measured."""

    name: str
    config: Config
    measure: Callable[[], Result]


@dataclass
class Lab:
    """Data folders by name, the budget, and where cells and fitted models are kept."""

    folders: dict[str, Path]
    cells: Cells
    models: Path  # fitted models that other work starts from; may be removed at any time
    methods: frozenset[str] = frozenset()  # only these; none: all
    seeds: int = 3
    max_seconds: float = 120.0
    max_queries: int = 500
    say: Say = lambda line: None
    _read: dict[str, DataFolder] = field(default_factory=dict)
    _contents: dict[str, str] = field(default_factory=dict)
    _codes: dict[tuple[str, ...], str] = field(default_factory=dict)

    @cached_property
    def data(self) -> list[str]:
        """Names of the data sets, smallest first, so that a mistake shows early."""
        return sorted(self.folders, key=lambda name: (self.folders[name] / CORPUS).stat().st_size)

    def folder(self, name: str) -> DataFolder:
        """A data folder; one is held at a time."""
        if name not in self._read:
            self._read.clear()
            self._read[name] = read_folder(self.folders[name])
        return self._read[name]

    def task(self, fit: Fit, view: View, split: str = "test") -> Task:
        """The task that a method is fitted for and asked with."""
        folder = self.folder(fit.data)
        if folder.queries is None or folder.relevance is None:
            raise DataError("has no queries with groups or qrels", file=folder.path, remedy="add them to experiment")
        return make_task(
            cut_queries(folder.queries, view.queries, TASK_SEED),
            folder.corpus,
            folder.relevance,
            protocol=view.protocol,
            condition=fit.corpus,
            split=split,
            seed=TASK_SEED,
            max_queries=self.max_queries,
        )

    def wanted(self, fit: Fit) -> bool:
        """Whether a method was asked for."""
        return not self.methods or fit.method in self.methods

    # ---------------------------------------------------------------- cells

    def config(self, fit: Fit, view: View) -> Config:
        """All that the figures of a cell depend on."""
        found = {**self.fit_config(fit), **view.model_dump(), "max_queries": self.max_queries}
        return found if view.queries == "whole" else found | {"code": self._code(fit, cutting.__name__)}

    def fit_config(self, fit: Fit) -> Config:
        """All that a fitted method depends on."""
        found = {
            **fit.model_dump(),
            "content": self._content(fit.data),
            "max_seconds": self.max_seconds,
            "code": self._code(fit),
        }
        if fit.variant:
            found["settings"] = VARIANTS[fit.variant][1]
        if fit.method in SECOND_STAGES:
            found["second_stage"] = SECOND_STAGE
        return found

    def _code(self, fit: Fit, *modules: str) -> str:
        behind = (methods.method_class(fit.method).__module__, *modules)
        if behind not in self._codes:  # some ten milliseconds, and there are thousands of cells
            self._codes[behind] = code_version(*behind)
        return self._codes[behind]

    def _content(self, data: str) -> str:
        if data not in self._contents:
            self._contents[data] = folder_fingerprint(self.folders[data])
        return self._contents[data]

    def piece_config(self, experiment: str, fit: Fit, *modules: str, **more: Any) -> Config:
        """All that a piece depends on: a fitted method, and the modules that look at it."""
        asked = {"experiment": experiment, "max_queries": self.max_queries, **more}
        return {**self.fit_config(fit), **asked, "code": self._code(fit, *modules)}

    def run(self, fits: Sequence[Fit]) -> None:
        """Measure every cell that is not fresh."""
        self._share(fits, self._run_one)

    def run_pieces(self, pieces: Sequence[Piece]) -> None:
        """The same for pieces."""
        self._share(pieces, self._run_piece)

    def _share(self, work: Sequence[W], do: Callable[[W], bool]) -> None:
        """Do all the work; what another process is at (False) is looked at again at the end."""
        waiting = list(work)
        while waiting:
            passed = [one for one in waiting if not do(one)]
            if len(passed) == len(waiting):
                time.sleep(5)
            waiting = passed

    def _run_piece(self, piece: Piece) -> bool:
        if self._measured(piece.name, piece.config):
            return True
        with self.cells.claimed(piece.name) as mine:
            if mine and not self._measured(piece.name, piece.config):
                begun = time.monotonic()
                try:
                    result = piece.measure()
                except Exception as error:
                    result = failure(error)
                    self.say(f"{piece.name} failed: {result['error']}")
                self.cells.put(piece.name, piece.config, result)
                self.say(f"{piece.name}: {time.monotonic() - begun:.0f} s")
        return mine

    def _run_one(self, fit: Fit) -> bool:
        """Whether the cells of a fit are there now; False where another process is at them."""
        wanted = self._missing(fit)
        if not wanted:
            return True
        with self.cells.claimed(fit.name) as mine:
            if not mine:
                return False
            wanted = self._missing(fit)  # another process may have been faster
            if wanted:
                begun = time.monotonic()
                for view, result in zip(wanted, self._measure(fit, wanted), strict=True):
                    self.cells.put(f"{fit.name}-{view.name}", self.config(fit, view), result)
                    if "error" in result:
                        self.say(f"{fit.name}-{view.name} failed: {result['error']}")
                self.say(f"{fit.name}: {len(wanted)} cells in {time.monotonic() - begun:.0f} s")
        return True

    def _missing(self, fit: Fit) -> list[View]:
        return [v for v in views(fit) if not self._measured(f"{fit.name}-{v.name}", self.config(fit, v))]

    def _measured(self, name: str, config: Config) -> bool:
        """Whether a fresh cell has figures; a failure is tried again, once a run: its cause may be gone."""
        result = self.cells.get(name, config)
        return result is not None and "error" not in result

    def _measure(self, fit: Fit, wanted: Sequence[View]) -> Iterator[Result]:
        """The results one by one, so that each is kept before the next is begun."""
        try:
            model, spent = self.fitted(fit)
        except Exception as error:
            yield from [failure(error)] * len(wanted)
            return
        scores: dict[Cut, Scores] = {}
        for view in wanted:
            task = self.task(fit, view)
            try:
                if not _scored_apart(model, view):
                    answers = answer(model, task, what=fit.method)
                else:  # both protocols are read off one matrix
                    if view.queries not in scores:
                        scores[view.queries] = model.score(task.queries, task.corpus)
                    answers = answer_from(scores[view.queries], task, what=fit.method)
            except Exception as error:
                yield failure(error)
                continue
            yield {**figures(answers, by_query=view == View()), **facts(task), **spent}

    # ---------------------------------------------------------------- models

    def fitted(self, fit: Fit) -> tuple[RelevanceModel, Result]:
        """The fitted method, and what fitting it took; SelfAttention is kept, since other work starts from it."""
        if fit.method != "self":
            return self._fit(fit)
        key = result_key(**self.fit_config(fit))
        folder, spent_file = self.models / key, self.models / f"{key}.json"
        with self.cells.claimed(f"model-{key}", wait=True):  # one process fits it, the others wait for that
            if folder.is_dir() and spent_file.exists():
                return methods.load(folder), json.loads(spent_file.read_text())
            model, spent = self._fit(fit)
            self.models.mkdir(parents=True, exist_ok=True)
            model.save(folder)
            with new_file(spent_file) as path:
                path.write_text(json.dumps(spent))
            return model, spent

    def _fit(self, fit: Fit) -> tuple[RelevanceModel, Result]:
        task = self.task(fit, View())
        model, budget, before = self._untrained(fit)
        begun, begun_cpu = time.monotonic(), time.process_time()
        model.fit(
            task.training_queries,
            task.training_corpus,
            task.training_relevance,
            seed=fit.seed,
            max_seconds=budget,
        )
        wall, cpu = time.monotonic() - begun, time.process_time() - begun_cpu
        if wall > 0.95 * budget and cpu < QUIET * wall:
            self.say(f"{fit.name}: its budget ran out with {cpu / wall:.0%} of a core; measure it when less else runs")
        events = int(task.training_corpus.offsets[-1] + task.training_queries.offsets[-1])
        spent: dict[str, Any] = {
            "fit_seconds": round(wall + before.get("fit_seconds", 0.0), 2),
            "fit_cpu_seconds": round(cpu + before.get("fit_cpu_seconds", 0.0), 2),
            "training_events": events,
        }
        return model, spent

    def _untrained(self, fit: Fit) -> tuple[RelevanceModel, float, Result]:
        """A new model, its budget, and what has been spent on its first stage, which is the SelfAttention's cell."""
        preset = f"paper-{fit.data}" if fit.preset == "paper" and fit.data in PAPER_TABLE else fit.preset
        if fit.variant:
            return variant(fit.variant, fit.data), self.max_seconds, {}
        if fit.method in SECOND_STAGES:
            first, spent = self.fitted(fit.model_copy(update={"method": "self"}))
            assert isinstance(first, SelfAttention)
            model = methods.make(fit.method, preset, first_stage=first)
            return model, SECOND_STAGE * self.max_seconds, spent
        return methods.make(fit.method, preset), self.max_seconds, {}


def _scored_apart(model: RelevanceModel, view: View) -> bool:
    """Whether the scores of all pairs give the answers.

    They do not where a second stage reorders the best of its first, and cost too much where it looks at every pair.
    """
    if not isinstance(model, SecondStage):
        return True
    return view.protocol == "sampled" and model.memory is not None


def failure(error: Exception) -> Result:
    """What is kept of a method that failed: its bug must not cost the others' results, and is shown, not hidden."""
    return {"error": str(error) if isinstance(error, UserError) else f"{type(error).__name__}: {error}"}


def figures(answers: Answers, by_query: bool) -> Result:
    """Means of all measures; `by_query`, for tests over queries, those of `KEPT` also one by one."""
    means = {name: round(float(values.mean()), 6) for name, values in answers.measures.items()}
    if not by_query:
        return {"measures": means}
    each = {name: np.rint(1e4 * answers.measures[name]).astype(int).tolist() for name in KEPT}
    return {"measures": means, "ten_thousandths": each}


def facts(task: Task) -> Result:
    """How much was asked."""
    return {
        "queries_answered": len(task.queries),
        "queries_left_out": task.left_out,
        "queries_not_drawn": task.not_drawn,
        "candidates": int(task.candidates.max()),
    }


def variant_fit(data: str, name: str, seed: int = 0) -> Fit:
    """The fit of a variant of SelfAttention; the whole models are the rows of the accuracy table."""
    preset = VARIANTS[name][0]
    return Fit(data=data, method="self", preset=preset, variant="" if name == preset else name, seed=seed)


def find_data(given: Sequence[str | PathLike[str]]) -> dict[str, Path]:
    """Data folders by name: those given, and for a folder of data folders those in it."""
    found: dict[str, Path] = {}
    for place in map(Path, given):
        inside = [place] if (place / CORPUS).exists() else sorted(p.parent for p in place.glob(f"*/{CORPUS}"))
        if not inside:
            raise UserError(f"{place}: is no data folder and holds none; a data folder has a {CORPUS}")
        for folder in inside:
            name = folder.resolve().name
            if name in found and found[name].resolve() != folder.resolve():
                raise UserError(f"{folder}: two data folders are called {name}; rename one")
            if not (folder / QUERIES).exists():
                raise UserError(f"{folder}: has no {QUERIES}; there is nothing to ask, make it with 'data prepare'")
            found[name] = folder
    return found
