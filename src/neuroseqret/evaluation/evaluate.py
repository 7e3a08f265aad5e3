"""`evaluate`: compare methods on a data folder, in Python as on the command line."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from typing import Any

from neuroseqret.errors import DataError, UserError
from neuroseqret.evaluation.cache import ResultCache
from neuroseqret.evaluation.protocol import Condition, Protocol, make_task
from neuroseqret.evaluation.report import Report, Test
from neuroseqret.evaluation.runner import Remark, run
from neuroseqret.evaluation.scoring import Answering, Progress, answer
from neuroseqret.methods import is_method
from neuroseqret.models.base import RelevanceModel
from neuroseqret.models.model_folder import read_card
from neuroseqret.readers.data_folder import DataFolder, read_folder
from neuroseqret.training.progress import track


def evaluate(
    data: str | PathLike[str] | DataFolder,
    methods: str | PathLike[str] | RelevanceModel | Sequence[str | PathLike[str] | RelevanceModel] = (),
    *,
    protocol: Protocol = "full",
    corpus: Condition = "seen",
    split: str = "test",
    seed: int = 0,
    max_seconds: float | None = None,
    max_queries: int | None = None,
    test: Test = "randomisation",
    cache: bool = True,
    strict: bool = False,
    progress: Progress = track,
    remark: Remark = lambda line: None,
    answering: Answering = answer,
) -> Report:
    """Return a report of the methods, with `random` and `histogram` beside them.

    A method is a name, which is fitted here, a model folder, which is loaded, or a model in memory (one that is not
    trained yet is fitted here, as a copy). `data` is a data folder or its path; `neuroseqret.prepare` makes one out of
    a data frame. `report.results[i].means()` are the figures of a method and `.answers.measures` its figures query by
    query. `report.to_json()` and `report.save(folder)` are what the command line writes. Times that look like another
    unit than a trained model's give a warning; with `strict` that model fails. With
    `answering=RemoteAnswers(cluster)` (`neuroseqret.distributed`) the nodes of a Ray cluster score.
    """
    folder = data if isinstance(data, DataFolder) else _read(data)
    chosen = _listed(methods)
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
        for method in chosen:
            _check_split(method, seed)
    Report(folder.name, task, [], test)  # raises for an unknown test now, not after hours of work
    results = run(
        task,
        chosen,
        max_seconds=max_seconds,
        cache=ResultCache() if cache else None,
        progress=progress,
        remark=remark,
        strict=strict,
        answering=answering,
    )
    return Report(folder.name, task, results, test)


def _read(data: Any) -> DataFolder:
    if not isinstance(data, (str, PathLike)):
        raise UserError(
            f"evaluate takes a data folder or its path, not {type(data).__name__}; neuroseqret.prepare makes a data "
            "folder out of a frame or sequences"
        )
    return read_folder(data)


def _listed(methods: Any) -> list[str | RelevanceModel]:
    """Return one method or several as a list."""
    several = methods if isinstance(methods, Sequence) and not isinstance(methods, str) else [methods]
    for method in several:
        if isinstance(method, type):
            raise UserError(
                f"a method is a name, a model folder or a model, not a class; make one: {method.__name__}()"
            )
        if not isinstance(method, (str, PathLike, RelevanceModel)):
            raise UserError(
                f"a method is a name, a model folder or a model, not {type(method).__name__} ({method!r:.40}); "
                "neuroseqret.methods() lists the names"
            )
    return [method if isinstance(method, RelevanceModel) else str(method) for method in several]


def _check_split(method: str | RelevanceModel, seed: int) -> None:
    """Raise a `UserError` if a trained model may have learned from queries that are tested now.

    Queries without a `split` column are split by the seed, so a model of another seed had another split.
    """
    card = method.card if isinstance(method, RelevanceModel) else None if is_method(method) else read_card(method)
    if card is not None and card.seed != seed:
        name = method.name if isinstance(method, RelevanceModel) else method
        raise UserError(
            f"{name}: was trained with seed {card.seed}; queries without a 'split' column are split by the seed, so "
            f"the model has learned from queries that are tested now; evaluate with --seed {card.seed}"
        )
