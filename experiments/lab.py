"""Fit a method once, ask it in every wanted way, and keep each answer as a cell."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from experiments.cutting import Cut, cut_queries
from experiments.outcomes import facts, failure, figures, learning_curve
from experiments.plan import Fit, View, starts_other_work, views
from experiments.result_cells import Config, Result, ResultCells
from experiments.variants import VARIANTS, preset_for, variant
from experiments.versions import versions_of
from neuroseqret.errors import DataError
from neuroseqret.evaluation.cache import folder_fingerprint, result_key
from neuroseqret.evaluation.protocol import RankingTask, make_task
from neuroseqret.evaluation.scoring import answer, answer_from
from neuroseqret.methods import registry as methods
from neuroseqret.models.base import RelevanceModel, Scores
from neuroseqret.models.cross.second_stage import SecondStage
from neuroseqret.models.self_attention.model import SelfAttention
from neuroseqret.readers.data_folder import CORPUS, DataFolder, read_folder
from neuroseqret.storage.files import new_file
from neuroseqret.training.budget import of_processor_time

TASK_SEED = 0  # of lists, drawn queries, halves and ties; the same for every seed of a method
SECOND_STAGES = ("cross", "hash-cross")
SECOND_STAGE = 0.5  # share of the budget that a second stage gets on top of its first stage

Say = Callable[[str], None]
W = TypeVar("W")


@dataclass(frozen=True)
class Piece:
    """A cell that is not a ranking: its name, what it depends on, and how it is measured."""

    name: str
    config: Config
    measure: Callable[[], Result]


@dataclass
class Lab:
    """Data folders by name, the budget, and the places of cells and fitted models."""

    folders: dict[str, Path]
    cells: ResultCells
    models: Path  # fitted models that other work starts from; may be removed at any time
    methods: frozenset[str] = frozenset()  # measure only these; empty: all
    seeds: int = 3
    max_seconds: float = 120.0
    max_queries: int = 500
    say: Say = lambda line: None
    _read: dict[str, DataFolder] = field(default_factory=dict)
    _contents: dict[str, str] = field(default_factory=dict)

    @cached_property
    def data(self) -> list[str]:
        """The names of the data sets, smallest first, so that a mistake shows early."""
        return sorted(self.folders, key=lambda name: (self.folders[name] / CORPUS).stat().st_size)

    def folder(self, name: str) -> DataFolder:
        """Return a data folder; only the last one is held in memory."""
        if name not in self._read:
            self._read.clear()
            self._read[name] = read_folder(self.folders[name])
        return self._read[name]

    def task(self, fit: Fit, view: View, split: str = "test") -> RankingTask:
        """Return the task that a method is fitted for and asked with."""
        folder = self.folder(fit.data)
        if folder.queries is None or folder.relevance is None:
            raise DataError("has no queries with groups or qrels", file=folder.path, remedy="add them")
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
        """Return whether this method is to be measured."""
        return not self.methods or fit.method in self.methods

    # ---------------------------------------------------------------- cells

    def config(self, fit: Fit, view: View) -> Config:
        """Return everything that the figures of a cell depend on."""
        return _versioned({**self.fit_config(fit), **view.model_dump(), "max_queries": self.max_queries})

    def fit_config(self, fit: Fit) -> Config:
        """Return everything that a fitted method depends on."""
        found = {**fit.model_dump(), "content": self._content(fit.data), "max_seconds": self.max_seconds}
        if fit.variant:
            found["settings"] = VARIANTS[fit.variant][1]
        if fit.method in SECOND_STAGES:
            found["second_stage"] = SECOND_STAGE
        return _versioned(found)

    def _content(self, data: str) -> str:
        if data not in self._contents:
            self._contents[data] = folder_fingerprint(self.folders[data])
        return self._contents[data]

    def piece_config(self, experiment: str, fit: Fit, **more: Any) -> Config:
        """Return everything that a piece depends on: a fitted method, and how an experiment looks at it."""
        asked = {"experiment": experiment, "max_queries": self.max_queries, **more}
        return _versioned({**self.fit_config(fit), **asked})

    def run(self, fits: Sequence[Fit]) -> None:
        """Measure every cell that is not fresh."""
        self._share(fits, self._run_one)

    def run_pieces(self, pieces: Sequence[Piece]) -> None:
        """Measure every piece that is not fresh."""
        self._share(pieces, self._run_piece)

    def _share(self, work: Sequence[W], do: Callable[[W], bool]) -> None:
        """Do all the work. What another process is doing (`do` returns False) is looked at again at the end."""
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
        """Measure the cells of a fit that are missing; return False if another process is measuring them."""
        wanted = self._missing(fit)
        if not wanted:
            return True
        with self.cells.claimed(fit.name) as mine:
            if not mine:
                return False
            wanted = self._missing(fit)  # another process may have measured them meanwhile
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
        """Return whether there is a fresh cell with figures; a failure is tried again, its cause may be gone."""
        result = self.cells.get(name, config)
        return result is not None and "error" not in result

    def _measure(self, fit: Fit, wanted: Sequence[View]) -> Iterator[Result]:
        """Yield the results one by one, so that each is kept before the next begins."""
        try:
            model, spent = self.fitted(fit)
        except Exception as error:
            yield from [failure(error)] * len(wanted)
            return
        scores: dict[Cut, Scores] = {}
        for view in wanted:
            task = self.task(fit, view)
            try:
                if not _all_pairs(model, view):
                    answers = answer(model, task, what=fit.method)
                else:
                    if view.queries not in scores:
                        scores[view.queries] = model.score(task.queries, task.corpus, unknown_marks="keep")
                    answers = answer_from(scores[view.queries], task, what=fit.method)
            except Exception as error:
                yield failure(error)
                continue
            kept = spent if view == View() else {name: spent[name] for name in spent if name != "curve"}
            yield {**figures(answers, by_query=view == View()), **facts(task), **kept}

    # ---------------------------------------------------------------- models

    def fitted(self, fit: Fit) -> tuple[RelevanceModel, Result]:
        """Return a fitted method and what fitting took; models that other work starts from are kept."""
        if not starts_other_work(fit):
            return self._fit(fit)
        key = result_key(**self.fit_config(fit))
        folder, spent_file = self.models / key, self.models / f"{key}.json"
        with self.cells.claimed(f"model-{key}", wait=True):  # one process fits it, the others wait
            if folder.is_dir() and spent_file.exists():
                return methods.load(folder), json.loads(spent_file.read_text())
            model, spent = self._fit(fit)
            self.models.mkdir(parents=True, exist_ok=True)
            model.save(folder)
            with new_file(spent_file) as path:
                path.write_text(json.dumps(spent))
            return model, spent

    def fit_with(self, fit: Fit, settings: Mapping[str, Any]) -> tuple[RelevanceModel, Result]:
        """Return a fitted method with some settings of its own, and what fitting took. It is not kept."""
        return self._trained(fit, methods.make(fit.method, fit.preset, **settings), self.max_seconds, {})

    def trained(self, fit: Fit, model: RelevanceModel, budget: float) -> RelevanceModel:
        """Return a model of the caller's own, trained on the task of a fit. It is not kept."""
        return self._trained(fit, model, budget, {})[0]

    def _fit(self, fit: Fit) -> tuple[RelevanceModel, Result]:
        return self._trained(fit, *self._untrained(fit))

    def _trained(self, fit: Fit, model: RelevanceModel, budget: float, before: Result) -> tuple[RelevanceModel, Result]:
        """Train a method; `before` is what its first stage has taken."""
        task = self.task(fit, View())
        begun, begun_cpu = time.monotonic(), time.process_time()
        with of_processor_time():  # so that other work on the machine does not shorten the training
            model.fit(
                task.training_queries,
                task.training_corpus,
                task.training_relevance,
                seed=fit.seed,
                max_seconds=budget,
            )
        wall, cpu = time.monotonic() - begun, time.process_time() - begun_cpu
        events = int(task.training_corpus.offsets[-1] + task.training_queries.offsets[-1])
        spent: dict[str, Any] = {
            "fit_seconds": round(wall + before.get("fit_seconds", 0.0), 2),
            "fit_cpu_seconds": round(cpu + before.get("fit_cpu_seconds", 0.0), 2),
            "training_events": events,
            "budget_clock": "processor",
        }
        return model, spent | learning_curve(model)

    def _untrained(self, fit: Fit) -> tuple[RelevanceModel, float, Result]:
        """Return a new model, its budget, and what its first stage (the SelfAttention of the same fit) has taken."""
        preset = preset_for(fit.preset, fit.data)
        if fit.variant:
            return variant(fit.variant, fit.data), self.max_seconds, {}
        if fit.method in SECOND_STAGES:
            first, spent = self.fitted(fit.model_copy(update={"method": "self"}))
            assert isinstance(first, SelfAttention)
            model = methods.make(fit.method, preset, first_stage=first)
            return model, SECOND_STAGE * self.max_seconds, spent
        return methods.make(fit.method, preset), self.max_seconds, {}


def _versioned(config: Config) -> Config:
    """Return a configuration with the versions of today."""
    return config | {"versions": versions_of(config)}


def _all_pairs(model: RelevanceModel, view: View) -> bool:
    """Return whether to score all pairs of queries and corpus at once; both protocols are read off that matrix.

    That is the same as asking for each protocol, and faster, with two exceptions. A second stage ranks the whole corpus
    by reordering the best of its first stage. And the cross-attention process looks at every pair, which takes long.
    """
    if not isinstance(model, SecondStage):
        return True
    return view.protocol == "sampled" and model.settings.kind == "memory"
