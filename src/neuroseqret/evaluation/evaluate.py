"""`evaluate`: compare methods on a data folder, in Python as on the command line."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike

from neuroseqret.errors import DataError, UserError
from neuroseqret.evaluation.cache import ResultCache
from neuroseqret.evaluation.protocol import Condition, Protocol, make_task
from neuroseqret.evaluation.report import Report, Test
from neuroseqret.evaluation.runner import Remark, run
from neuroseqret.evaluation.scoring import Progress, silent
from neuroseqret.methods import is_method
from neuroseqret.models.model_folder import read_card
from neuroseqret.readers.data_folder import DataFolder, read_folder


def evaluate(
    data: str | PathLike[str] | DataFolder,
    methods: Sequence[str] = (),
    *,
    protocol: Protocol = "full",
    corpus: Condition = "seen",
    split: str = "test",
    seed: int = 0,
    max_seconds: float | None = None,
    max_queries: int | None = None,
    test: Test = "randomisation",
    cache: bool = True,
    progress: Progress = silent,
    remark: Remark = lambda line: None,
) -> Report:
    """Return a report of the methods, with `random` and `histogram` beside them.

    A method is a name, which is fitted here, or a model folder, which is loaded. `report.results[i].means()` are the
    figures of a method and `.answers.measures` its figures query by query. `report.to_json()` and
    `report.save(folder)` are what the command line writes.
    """
    folder = data if isinstance(data, DataFolder) else read_folder(data)
    if folder.queries is None or folder.relevance is None:
        missing = "queries" if folder.queries is None else "groups or qrels"
        raise DataError(f"has no {missing} to evaluate with", file=folder.path, remedy=f"add {missing}")
    task = make_task(
        folder.queries,
        folder.corpus,
        folder.relevance,
        protocol=protocol,
        condition=corpus,
        split=split,
        seed=seed,
        max_queries=max_queries,
    )
    if folder.queries.column("split") is None:
        for name in methods:
            _check_split(name, seed)
    Report(folder.name, task, [], test)  # raises for an unknown test now, not after hours of work
    results = run(
        task,
        methods,
        max_seconds=max_seconds,
        cache=ResultCache() if cache else None,
        progress=progress,
        remark=remark,
    )
    return Report(folder.name, task, results, test)


def _check_split(name: str, seed: int) -> None:
    """Raise a `UserError` if a model folder may have learned from queries that are tested now.

    Queries without a `split` column are split by the seed, so a model of another seed had another split.
    """
    if is_method(name):
        return
    trained = read_card(name).seed
    if trained != seed:
        raise UserError(
            f"{name}: was trained with seed {trained}; queries without a 'split' column are split by the seed, so the "
            f"model has learned from queries that are tested now; evaluate with --seed {trained}"
        )
