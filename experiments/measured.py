"""All cells in memory: every table and figure is made from them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence, Set
from copy import copy

import numpy as np

from experiments.plan import Fit, View
from experiments.result_cells import Config, Result, ResultCells
from neuroseqret.data.sequences import FloatArray
from neuroseqret.errors import UserError
from neuroseqret.evaluation.significance import randomisation_test
from neuroseqret.methods.registry import BASELINES, MODELS

Row = tuple[str, str]  # method and preset

LEVEL = 0.05  # of significance, after Holm's correction
DIFFERENT = 0.05  # points: a smaller difference is rounding and does not count
RANKED = {"full": "the whole corpus", "sampled": "lists as in the paper"}  # what a protocol ranks, in a table


class Measured:
    """Results by fit (all seeds together) and view, and the pieces of other experiments by the experiment's name."""

    def __init__(self, cells: ResultCells) -> None:
        self.results: dict[tuple[Fit, View], dict[int, Result]] = defaultdict(dict)
        self.pieces: dict[str, list[tuple[Config, Result]]] = defaultdict(list)
        self.configs: list[Config] = []
        asked: dict[str, tuple[str, int]] = {}
        for name, config, result in cells.all():
            file = f"{cells.folder / name}.json"
            try:
                task = config["content"], config["max_queries"]
                self._take(config, result)
            except (KeyError, TypeError, ValueError) as error:
                raise UserError(f"{file}: is not a cell of an experiment ({error!r}); remove it") from error
            if asked.setdefault(config["data"], task) != task:
                raise UserError(
                    f"{file}: was measured on other data called {config['data']!r}, or with other queries, than the "
                    "cells beside it; keep cells that cannot be compared apart by --out"
                )
        self.commits = sorted(cells.commits())

    def _take(self, config: Config, result: Result) -> None:
        if "experiment" in config:
            self.pieces[config["experiment"]].append((config, result))
        else:
            fit = Fit(**{name: config[name] for name in Fit.model_fields} | {"seed": 0})
            view = View(**{name: config[name] for name in View.model_fields})
            self.results[fit, view][config["seed"]] = result | {"max_seconds": config["max_seconds"]}
        self.configs.append(config)

    def with_seeds(self, seeds: Set[int]) -> Measured:
        """Return a copy with the results of these seeds only."""
        only = copy(self)
        only.results = {key: {s: by_seed[s] for s in by_seed if s in seeds} for key, by_seed in self.results.items()}
        return only

    def common_seeds(self, first: Fit, second: Fit, view: View) -> set[int]:
        """Return the seeds with which both were measured."""
        answered = (self.results.get((fit, view), {}).items() for fit in (first, second))
        one, other = ({seed for seed, result in found if "error" not in result} for found in answered)
        return one & other

    @property
    def data(self) -> list[str]:
        """The names of the data sets; simulated data have an experiment of their own."""
        return sorted({config["data"] for config in self.configs if config.get("experiment") != "simulated"})

    @property
    def seeds(self) -> int:
        """The largest number of seeds of any method."""
        return max((config["seed"] + 1 for config in self.configs), default=0)

    def answered(self, fit: Fit, view: View) -> list[Result]:
        """Return the results of all seeds that did not fail."""
        by_seed = self.results.get((fit, view), {})
        return [by_seed[seed] for seed in sorted(by_seed) if "error" not in by_seed[seed]]

    def values(self, fit: Fit, view: View, measure: str = "AP") -> FloatArray:
        """Return the mean over queries in points (0 to 100), one number per seed."""
        return 100 * np.array([result["measures"][measure] for result in self.answered(fit, view)])

    def failed(self, fit: Fit, view: View) -> bool:
        """Return whether it was tried and every seed failed."""
        return bool(self.results.get((fit, view))) and not self.answered(fit, view)

    def mean(self, fit: Fit, view: View, measure: str = "AP") -> float:
        """Return the mean over seeds in points; NaN if nothing was measured."""
        values = self.values(fit, view, measure)
        return float(values.mean()) if len(values) else float("nan")

    def by_query(self, fit: Fit, view: View, measure: str = "AP") -> FloatArray | None:
        """Return one number per query, the mean over seeds, in points; None if they were not kept."""
        results = [result.get("ten_thousandths", {}) for result in self.answered(fit, view)]
        kept = [values[measure] for values in results if measure in values]
        if len({len(one) for one in kept}) != 1:
            return None
        averaged: FloatArray = np.mean(kept, axis=0) / 100
        return averaged

    def baselines(self, data: str, view: View, corpus: str = "seen", measure: str = "AP") -> list[str]:
        """Return the baselines that were measured, best first."""
        means = {b: self.mean(row_fit(data, (b, "default"), corpus), view, measure) for b in BASELINES}
        return sorted((b for b in means if not np.isnan(means[b])), key=lambda b: -means[b])

    def p_values(self, pairs: Sequence[tuple[Fit, Fit]], view: View, measure: str) -> FloatArray:
        """Return p-values of paired randomisation tests over queries; NaN where values per query are missing.

        They are not corrected: pass all p-values of a table to `holm` together.
        """
        p = np.full(len(pairs), np.nan)
        alike: dict[tuple[str, int], list[tuple[int, FloatArray, FloatArray]]] = defaultdict(list)
        for place, (first, second) in enumerate(pairs):
            a, b = self.by_query(first, view, measure), self.by_query(second, view, measure)
            if first != second and a is not None and b is not None and len(a) == len(b):
                alike[first.data, len(a)].append((place, a, b))
        for group in alike.values():  # the same random signs serve all comparisons of a data set
            places, first_values, second_values = zip(*group, strict=True)
            p[list(places)] = randomisation_test(np.stack(first_values, 1), np.stack(second_values, 1))
        return p

    def gains(self, first: Row, second: Row, view: View, corpus: str = "seen", measure: str = "AP") -> dict[str, float]:
        """Return the first row's mean less the second's, in points, for each data set that has both."""
        found = {
            data: self.mean(row_fit(data, first, corpus), view, measure)
            - self.mean(row_fit(data, second, corpus), view, measure)
            for data in self.data
        }
        return {data: gain for data, gain in found.items() if not np.isnan(gain)}

    def above(self, first: Row, second: Row, view: View) -> tuple[int, int]:
        """Return on how many data sets the first row's MAP is higher, not by rounding, and how many have both."""
        gains = self.gains(first, second, view)
        return sum(gain >= DIFFERENT for gain in gains.values()), len(gains)


def row_fit(data: str, row: Row, corpus: str = "seen") -> Fit:
    """Return the fit of a row of the accuracy table, all seeds together."""
    return Fit(data=data, method=row[0], preset=row[1], corpus=corpus)  # type: ignore[arg-type]


def label(row: Row) -> str:
    """Return the name of a row; only models have presets."""
    return f"{row[0]} ({row[1]})" if row[0] in MODELS else row[0]
