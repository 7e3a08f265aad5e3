"""Score an evaluation task on a cluster.

A model whose score is the cosine embeds queries and corpus there, piece by piece, and the rankings are made here. Any
other model ranks there, some queries at a time. What is finished is kept until the whole is, so that a run that was cut
off goes on.
"""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from neuroseqret.data.sequences import EventSequences, IntArray
from neuroseqret.distributed.cluster import Cluster, ModelFiles, model_files, model_of
from neuroseqret.distributed.embedding import embed_batch
from neuroseqret.evaluation.cache import ResultCache, task_fingerprint
from neuroseqret.evaluation.protocol import RankingTask
from neuroseqret.evaluation.scoring import (
    Answers,
    Progress,
    answer,
    block_size,
    by_embedding,
    joined,
    pieces,
    ranked,
    silent,
)
from neuroseqret.models.base import Embedder, RelevanceModel, Role
from neuroseqret.storage.files import cache_folder, new_file
from neuroseqret.storage.vectors import LAYOUT, vector_table, vectors_of

JOBS = 16  # into which the queries of a model are divided at least


class RemoteAnswers:
    """Does what `neuroseqret.evaluation.scoring.answer` does, on a cluster."""

    def __init__(self, cluster: Cluster, folder: Path | None = None) -> None:
        self._cluster = cluster
        self._folder = cache_folder() / "evaluation" if folder is None else folder

    def __call__(
        self, model: RelevanceModel, task: RankingTask, progress: Progress = silent, what: str = "method"
    ) -> Answers:
        """Return the answers of a model; a missing or non-finite score raises a `UserError`."""
        with tempfile.TemporaryDirectory() as folder:
            files = model_files(model.save(Path(folder) / "model"))
        key = hashlib.blake2b(f"{files[0]} {task_fingerprint(task)}".encode(), digest_size=16).hexdigest()
        parts = self._folder / f"{key}.parts"
        if isinstance(model, Embedder) and model.score_is_cosine:
            sent = self._cluster.send(files)
            asked = self._vectors(sent, task.queries, "query", parts, progress, f"{what}: embed queries")
            shown = self._vectors(sent, task.corpus, "corpus", parts, progress, f"{what}: embed corpus")
            answers = ranked(by_embedding(asked, shown, task), block_size(model, task), task, progress, what)
        else:
            answers = self._by_queries(files, model, task, parts, progress, what)
        shutil.rmtree(parts, ignore_errors=True)
        return answers

    def _vectors(
        self, model: Any, sequences: EventSequences, role: Role, parts: Path, progress: Progress, what: str
    ) -> npt.NDArray[np.float32]:
        """Return the embeddings of sequences; every piece is kept in a file."""
        cut = pieces(sequences)
        files = [parts / f"{role}-{number:06d}.parquet" for number in range(len(cut))]
        found = {file: vectors for file in files if (vectors := _read(file)) is not None}

        def missing() -> Iterator[tuple[tuple[Path, pa.Array], Any]]:
            for file, piece in zip(files, cut, strict=True):
                if file not in found:
                    yield (file, piece.ids), self._cluster.begin(embed_batch, model, piece, role)

        done: Iterable[tuple[tuple[Path, pa.Array], Any]] = self._cluster.in_order(missing())
        for (file, ids), vectors in progress(done, what, len(files) - len(found)):
            found[file] = vectors
            _write(file, ids, vectors)
        return np.concatenate([found[file] for file in files])

    def _by_queries(
        self, files: ModelFiles, model: RelevanceModel, task: RankingTask, parts: Path, progress: Progress, what: str
    ) -> Answers:
        """Return the answers of a model that ranks on the nodes; those to every block of queries are kept."""
        size = min(block_size(model, task), -(-len(task.queries) // JOBS))
        cuts = [np.arange(begin, min(begin + size, len(task.queries))) for begin in range(0, len(task.queries), size)]
        kept, found = ResultCache(parts), dict[int, Answers]()
        for number, rows in enumerate(cuts):
            if (before := kept.get(f"{number:06d}", task.part(rows))) is not None:
                found[number] = before[0]
        ranked_there = _without_training(task)
        sent = self._cluster.send((files, ranked_there)) if len(found) < len(cuts) else None

        def missing() -> Iterator[tuple[int, Any]]:
            for number, rows in enumerate(cuts):
                if number not in found:
                    yield number, self._cluster.begin(answer_part, sent, rows, what)

        done: Iterable[tuple[int, Any]] = self._cluster.in_order(missing())
        for number, answers in progress(done, f"{what}: rank", len(cuts) - len(found)):
            found[number] = answers
            kept.put(f"{number:06d}", answers, {})
        return joined([found[number] for number in range(len(cuts))])


def answer_part(sent: tuple[ModelFiles, RankingTask], rows: IntArray, what: str) -> Answers:
    """Answer some queries of a task; runs on a node of the cluster."""
    files, task = sent
    return answer(model_of(files), task.part(rows), what=what)


def _without_training(task: RankingTask) -> RankingTask:
    """Return the task without what only training needs, which may be the larger part of it."""
    q, c, r = task.queries, task.corpus, task.relevance
    return replace(task, training_queries=q, training_corpus=c, training_relevance=r, whole_corpus=c)


def _read(file: Path) -> npt.NDArray[np.float32] | None:
    """Return the vectors that a run before this one has kept; None if there are none, or the file is damaged."""
    try:
        return vectors_of(pq.read_table(file))
    except (OSError, pa.ArrowException, KeyError, ValueError):
        return None


def _write(file: Path, ids: pa.Array, vectors: npt.NDArray[np.float32]) -> None:
    with new_file(file) as temporary:
        pq.write_table(vector_table(ids, vectors), temporary, **LAYOUT)
