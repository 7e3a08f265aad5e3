"""Keep results, so that nothing is computed twice, and never return one when anything behind it has changed.

The key of a result is a hash of everything it depends on: the content of the data, the task (protocol, condition,
split, seed, drawn queries), the method (its name, or the bytes of its model folder), the time it may train for, and the
versions of the method, of the protocol and of the library. Each result is one Parquet file. A damaged file counts as
absent.
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

import neuroseqret
from neuroseqret.evaluation.protocol import PROTOCOL_VERSION, RankingTask
from neuroseqret.evaluation.scoring import Answers
from neuroseqret.measures.table import MEASURES
from neuroseqret.models.base import RelevanceModel
from neuroseqret.storage.files import cache_folder, new_file


def folder_fingerprint(folder: str | PathLike[str]) -> str:
    """Return a hash of the names and contents of all files in a folder; dates do not count."""
    digest = hashlib.blake2b(digest_size=16)
    root = Path(folder)
    for path in sorted(p for p in root.rglob("*") if p.is_file()):
        digest.update(str(path.relative_to(root)).encode() + b"\0")
        with path.open("rb") as stream:
            while block := stream.read(1 << 20):
                digest.update(block)
    return digest.hexdigest()


def task_fingerprint(task: RankingTask) -> str:
    """Return a hash of everything in a task: sequences, relevance, the queries asked, the candidates listed."""
    digest = hashlib.blake2b(digest_size=16)
    digest.update(repr((task.protocol, task.condition, task.split, task.seed)).encode())
    # In `seen` the training corpus and the ranked corpus are one object; its content is hashed once.
    for sequences in {id(s): s for s in (task.training_queries, task.training_corpus, task.corpus)}.values():
        digest.update(sequences.fingerprint().encode())
    digest.update(repr(task.queries.ids.to_pylist()).encode())
    for relevance in (task.training_relevance, task.relevance):
        digest.update(relevance.fingerprint().encode())
    if task.lists is not None:
        digest.update(np.ascontiguousarray(task.lists.rows).tobytes())
    return digest.hexdigest()


def versions(method: type[RelevanceModel]) -> dict[str, int | str]:
    """Return the versions that a result of a method depends on; see `RelevanceModel.version`."""
    return {"method": method.version, "protocol": PROTOCOL_VERSION, "library": neuroseqret.__version__}


def result_key(**parts: Any) -> str:
    """Return the key of a result; the order of the parts does not matter."""
    text = json.dumps(parts, sort_keys=True)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


class ResultCache:
    """A folder of results by key; without a name, the user's cache folder."""

    def __init__(self, folder: str | PathLike[str] | None = None) -> None:
        self.folder = cache_folder() / "evaluation" if folder is None else Path(folder)

    def get(self, key: str, task: RankingTask) -> tuple[Answers, dict[str, Any]] | None:
        """Return the answers and the notes that were kept with them, or None."""
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
        """Keep a result. The file appears complete or not at all."""
        depth = answers.top_rows.shape[1]
        columns = {name: pa.array(answers.measures[name]) for name in MEASURES}
        columns["top_rows"] = pa.FixedSizeListArray.from_arrays(answers.top_rows.ravel(), depth)
        columns["top_scores"] = pa.FixedSizeListArray.from_arrays(answers.top_scores.ravel(), depth)
        table = pa.table(columns).replace_schema_metadata({"notes": json.dumps(notes)})
        with new_file(self.folder / f"{key}.parquet") as path:
            pq.write_table(table, path, compression="zstd")


def _matrix(column: pa.FixedSizeListArray) -> np.ndarray:
    return column.flatten().to_numpy().reshape(len(column), column.type.list_size)
