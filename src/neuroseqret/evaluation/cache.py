"""Results that were computed once are not computed again, and never served when anything behind them changed.

The key of a result is a hash of all that it depends on: the content of the data, the task (protocol, condition, split,
seed, queries drawn), the method (its name, or the bytes of its model folder), the time it may train for, and the
code behind the method (see `neuroseqret.evaluation.code`). What is not equal in all of these is another
result. One Parquet file a result; a damaged one counts as absent.
"""

from __future__ import annotations

import hashlib
import json
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from neuroseqret.evaluation.protocol import Task
from neuroseqret.evaluation.scoring import Answers
from neuroseqret.measures.table import MEASURES
from neuroseqret.storage.files import cache_folder, new_file


def folder_fingerprint(folder: str | PathLike[str]) -> str:
    """A hash of the content of every file in a model folder: not of dates, nor of what its config claims."""
    digest = hashlib.blake2b(digest_size=16)
    root = Path(folder)
    for path in sorted(p for p in root.rglob("*") if p.is_file()):
        digest.update(str(path.relative_to(root)).encode() + b"\0")
        with path.open("rb") as stream:
            while block := stream.read(1 << 20):
                digest.update(block)
    return digest.hexdigest()


def task_fingerprint(task: Task) -> str:
    """A hash of everything in a task: the sequences, who is relevant, who is asked, what is listed."""
    digest = hashlib.blake2b(digest_size=16)
    digest.update(repr((task.protocol, task.condition, task.split, task.seed)).encode())
    # In `seen` the corpus is one object in both roles; its content is hashed once.
    for sequences in {id(s): s for s in (task.training_queries, task.training_corpus, task.corpus)}.values():
        digest.update(sequences.fingerprint().encode())
    digest.update(repr(task.queries.ids.to_pylist()).encode())
    for relevance in (task.training_relevance, task.relevance):
        digest.update(relevance.fingerprint().encode())
    if task.lists is not None:
        digest.update(np.ascontiguousarray(task.lists.rows).tobytes())
    return digest.hexdigest()


def result_key(**parts: Any) -> str:
    """The key of a result from its parts, whatever their order."""
    text = json.dumps(parts, sort_keys=True)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


class ResultCache:
    """A folder of results by key."""

    def __init__(self, folder: str | PathLike[str] | None = None) -> None:
        self.folder = cache_folder() / "evaluation" if folder is None else Path(folder)

    def get(self, key: str, task: Task) -> tuple[Answers, dict[str, Any]] | None:
        """The answers and what was noted with them, or None."""
        path = self.folder / f"{key}.parquet"
        try:
            table = pq.read_table(path)
            notes = json.loads(table.schema.metadata[b"notes"])
            measures = {name: table.column(name).to_numpy().astype(np.float64) for name in MEASURES}
            rows, scores = (_matrix(table.column(name).combine_chunks()) for name in ("top_rows", "top_scores"))
        except (OSError, pa.ArrowException, KeyError, TypeError, ValueError):
            return None
        if len(rows) != len(task.queries):
            return None
        return Answers(measures, rows.astype(np.int32), scores.astype(np.float32)), notes

    def put(self, key: str, answers: Answers, notes: dict[str, Any]) -> None:
        """Keep a result: written beside and renamed, so that a reader never sees half of it."""
        depth = answers.top_rows.shape[1]
        columns = {name: pa.array(answers.measures[name]) for name in MEASURES}
        columns["top_rows"] = pa.FixedSizeListArray.from_arrays(answers.top_rows.ravel(), depth)
        columns["top_scores"] = pa.FixedSizeListArray.from_arrays(answers.top_scores.ravel(), depth)
        table = pa.table(columns).replace_schema_metadata({"notes": json.dumps(notes)})
        with new_file(self.folder / f"{key}.parquet") as path:
            pq.write_table(table, path, compression="zstd")


def _matrix(column: pa.FixedSizeListArray) -> np.ndarray:
    return column.flatten().to_numpy().reshape(len(column), column.type.list_size)
