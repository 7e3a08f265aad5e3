"""The results of several methods on one task, side by side: means, significance, JSON and files."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from html import escape
from os import PathLike
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import neuroseqret
from neuroseqret.data.frames import frame_of_pandas, frame_of_polars
from neuroseqret.data.sequences import FloatArray
from neuroseqret.data.timelines import html_table
from neuroseqret.errors import UserError
from neuroseqret.evaluation.protocol import RankingTask
from neuroseqret.evaluation.runner import Result
from neuroseqret.evaluation.significance import fisher_exact_test, holm, randomisation_test
from neuroseqret.measures.table import MEASURES
from neuroseqret.readers.trec import write_run
from neuroseqret.storage.files import new_folder

if TYPE_CHECKING:
    import pandas
    import polars

Test = Literal["randomisation", "fisher-exact"]
LEVEL = 0.05
BAR = "histogram"  # the baseline that the other methods have to beat
PER_QUERY = "per_query.parquet"
HOLDS = (PER_QUERY, "*.run")  # the files of a saved report


@dataclass(frozen=True, repr=False)
class Report:
    """What `evaluate` returns: one row per method (`results`), one column per measure. Printing it shows the table.

    `to_json()` returns the means, `save(folder)` writes the figures query by query and the rankings.
    """

    data: str
    task: RankingTask
    results: Sequence[Result]
    test: Test = "randomisation"

    def __post_init__(self) -> None:
        if self.test not in get_args(Test):
            raise UserError(f"no test is called {self.test!r}; there are {', '.join(get_args(Test))}")

    def __repr__(self) -> str:
        """Return the table as plain text: means in percent with their `marks`, or why a method failed; a legend."""
        head = f"{self.data}, {self.task.split}: {len(self.task.queries):,} queries, {self.task.protocol} ranking, "
        rows = self._cells()
        shapes = [max(len(row[k]) for row in rows if len(row) == len(rows[0])) for k in range(len(rows[0]))]
        first = max(len(row[0]) for row in rows)
        lines = [
            "  ".join([row[0].ljust(first), *(x.rjust(w) for x, w in zip(row[1:], shapes[1:], strict=False))])
            for row in rows
        ]
        legend = fill(f"Means in percent. {self.signs}", 80)
        return "\n".join([f"{head}corpus {self.task.condition}", *(line.rstrip() for line in lines), legend])

    def _cells(self) -> list[list[str]]:
        """Return the table: the head, and one row per method."""
        rows = [["", *MEASURES]]
        for result in self.results:
            cells = [f"{100 * result.mean(m):.1f}{self.marks(result.name, m)}" for m in MEASURES if not result.error]
            rows.append([result.name, *(cells or [f"failed: {result.error}"])])
        return rows

    def _repr_html_(self) -> str:
        head, *rows = self._cells()
        title = escape(repr(self).partition("\n")[0])
        table = html_table(head, [[escape(cell) for cell in row] for row in rows])
        return f"<div>{title}{table}<small>Means in percent. {escape(self.signs)}</small></div>"

    def to_arrow(self) -> pa.Table:
        """Return one row per method: the means in 0..1, seconds, and why a method failed (null if it did not)."""
        columns: dict[str, Any] = {"method": [r.name for r in self.results]}
        for measure in MEASURES:
            columns[measure] = pa.array([None if r.error else r.mean(measure) for r in self.results], pa.float64())
        columns["seconds"] = [r.seconds for r in self.results]
        columns["error"] = pa.array([r.error for r in self.results], pa.string())
        return pa.table(columns)

    def to_pandas(self) -> pandas.DataFrame:
        """Return `to_arrow` as a data frame of pandas."""
        return frame_of_pandas(self.to_arrow())

    def to_polars(self) -> polars.DataFrame:
        """Return `to_arrow` as a data frame of polars."""
        return frame_of_polars(self.to_arrow())

    @property
    def answered(self) -> list[Result]:
        """The methods that did not fail."""
        return [r for r in self.results if r.answers is not None]

    def order(self, measure: str) -> list[str]:
        """Return the names of the methods that did not fail, best first by the mean of a measure."""
        return [r.name for r in sorted(self.answered, key=lambda r: -r.mean(measure))]

    @cached_property
    def corrected(self) -> dict[str, FloatArray]:
        """Corrected p-values (methods that answered, measures) of two questions.

        `bar`: does a method differ from `histogram`? `best`: does the best method of a measure differ from the next?
        Holm's correction is over all methods, all measures and both questions. NaN where nothing is compared: a method
        with itself, and in `best` every method but the best.
        """
        bar = np.full((len(self.answered), len(MEASURES)), np.nan)
        best = bar.copy()
        row_of = {r.name: row for row, r in enumerate(self.answered)}
        if BAR in row_of:
            others = [r for r in self.answered if r.name != BAR]
            p = compare(others, self.answered[row_of[BAR]], self.test, self.task.seed)
            bar[[row_of[r.name] for r in others]] = p
        for column, measure in enumerate(MEASURES):
            if len(self.answered) > 1:
                first, second = (self.answered[row_of[name]] for name in self.order(measure)[:2])
                best[row_of[first.name], column] = compare([first], second, self.test, self.task.seed)[0, column]
        both = holm(np.stack([bar, best]))
        return {"bar": both[0], "best": both[1]}

    def marks(self, name: str, measure: str) -> str:
        """Return the signs of significance at 5 %: † the best, better than the next; ▲ ▼ better, worse than the bar."""
        row = [r.name for r in self.answered].index(name)
        column = MEASURES.index(measure)
        sign = "†" if self.corrected["best"][row, column] <= LEVEL else ""
        if self.corrected["bar"][row, column] <= LEVEL:
            bar = next(r for r in self.answered if r.name == BAR)
            sign += "▲" if self.answered[row].mean(measure) > bar.mean(measure) else "▼"
        return sign

    @property
    def signs(self) -> str:
        """What the `marks` mean; the legend of every table."""
        test = "paired randomisation test" if self.test == "randomisation" else "Fisher's exact test on queries won"
        return (
            f"Significant at {LEVEL:.0%} ({test}, Holm's correction): † better than the second best, ▲ better and "
            f"▼ worse than {BAR}."
        )

    def to_json(self) -> dict[str, Any]:
        """Return the report as JSON: means in 0..1 or the reason of a failure by method, and corrected p-values."""
        methods: dict[str, dict[str, Any]] = {}
        for result in self.results:
            if result.error is not None:
                methods[result.name] = {"error": result.error, "seconds": result.seconds}
            else:
                methods[result.name] = {**result.means(), "seconds": result.seconds}
        p_values = {
            question: {
                result.name: {m: float(v) for m, v in zip(MEASURES, table[row], strict=True) if not math.isnan(v)}
                for row, result in enumerate(self.answered)
                if not np.isnan(table[row]).all()
            }
            for question, table in (
                (f"against {BAR}", self.corrected["bar"]),
                ("best against next", self.corrected["best"]),
            )
        }
        return {
            "data": self.data,
            "protocol": self.task.protocol,
            "corpus": self.task.condition,
            "split": self.task.split,
            "seed": self.task.seed,
            "queries": len(self.task.queries),
            "queries_left_out": self.task.left_out,
            "queries_not_drawn": self.task.not_drawn,
            "version": neuroseqret.__version__,
            "methods": methods,
            "significance": {"test": self.test, "correction": "holm", **p_values},
        }

    def per_query(self) -> pa.Table:
        """Return one row per method and query: how many are relevant, how many were ranked, and every measure."""
        queries = len(self.task.queries)
        columns: dict[str, Any] = {
            "method": np.repeat([r.name for r in self.answered], queries),
            "query": self.task.queries.ids.to_pylist() * len(self.answered),
            "relevant": np.tile(self.task.relevance.counts, len(self.answered)),
            "candidates": np.tile(self.task.candidates, len(self.answered)),
        }
        for measure in MEASURES:
            parts = [r.answers.measures[measure] for r in self.answered if r.answers is not None]
            columns[measure] = np.concatenate(parts) if parts else np.empty(0)
        return pa.table(columns)

    def save(self, folder: str | PathLike[str]) -> Path:
        """Write a new folder: per-query measures (Parquet) and the top of every ranking (a TREC run per method)."""
        names = _file_names([r.name for r in self.answered])
        corpus_ids = np.array(self.task.corpus.ids.to_pylist(), dtype=object)
        with new_folder(folder, *HOLDS) as target:
            pq.write_table(self.per_query(), target / PER_QUERY, compression="zstd")
            for result, file in zip(self.answered, names, strict=True):
                assert result.answers is not None
                rows, scores = result.answers.top_rows, result.answers.top_scores
                run = {
                    query: dict(zip(corpus_ids[rows[q][rows[q] >= 0]], scores[q][rows[q] >= 0].tolist(), strict=True))
                    for q, query in enumerate(self.task.queries.ids.to_pylist())
                }
                write_run(run, target / file, tag=file.removesuffix(".run"))
        return Path(folder)


def compare(results: Sequence[Result], reference: Result, test: Test = "randomisation", seed: int = 0) -> FloatArray:
    """Return uncorrected p-values of the methods against a reference: (methods, measures)."""
    if not results:
        return np.empty((0, len(MEASURES)))
    theirs = np.concatenate([_values(r) for r in results], axis=1)
    mine = np.tile(_values(reference), (1, len(results)))
    p = fisher_exact_test(theirs, mine) if test == "fisher-exact" else randomisation_test(theirs, mine, seed=seed)
    return p.reshape(len(results), len(MEASURES))


def _values(result: Result) -> FloatArray:
    if result.answers is None:
        raise UserError(f"{result.name} failed, so it cannot be compared: {result.error}")
    return np.stack([result.answers.measures[m] for m in MEASURES], axis=1)  # (queries, measures)


def _file_names(names: Sequence[str]) -> list[str]:
    """Return a file name for each method: its name or the last part of its folder, numbered if two are the same."""
    files: list[str] = []
    for name in names:
        plain = re.sub(r"[^\w.-]+", "_", Path(name).name) or "method"
        number = 1
        while (file := f"{plain}{'' if number == 1 else f'-{number}'}.run") in files:
            number += 1
        files.append(file)
    return files
