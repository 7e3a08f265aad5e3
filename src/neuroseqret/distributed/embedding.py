"""Embed on a cluster: a file to a file, or the sequences that are added to an index."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from neuroseqret.data.sequences import EventSequences
from neuroseqret.distributed.cluster import Cluster, ModelFiles, model_files, model_of
from neuroseqret.errors import UserError
from neuroseqret.models.base import Embedder, Role
from neuroseqret.storage.files import new_file
from neuroseqret.storage.vectors import LAYOUT, vector_table

PLAN = "plan.json"


class RemoteEmbedder:
    """Stands in for a model where sequences are added to an index: its embeddings come from the cluster."""

    def __init__(self, cluster: Cluster, folder: Path, model: Embedder | None = None) -> None:
        self.cluster, self._model = cluster, model
        self._files = cluster.send(model_files(folder))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)

    def begin(self, sequences: EventSequences, role: Role) -> Any:
        """Begin to embed a batch."""
        return self.cluster.begin(embed_batch, self._files, sequences, role)

    def embed(self, sequences: EventSequences, role: Role, **_: Any) -> npt.NDArray[np.float32]:
        """Return the embeddings, as the model does."""
        found: npt.NDArray[np.float32] = self.cluster.result(self.begin(sequences, role))
        return found


def embed_batch(model: ModelFiles, sequences: EventSequences, role: Role) -> npt.NDArray[np.float32]:
    """Embed a batch; runs on a node of the cluster."""
    vectors: npt.NDArray[np.float32] = model_of(model).embed(sequences, role, unknown_marks="keep", strict=None)
    return vectors


def embed_file(
    embedder: RemoteEmbedder, batches: Iterable[EventSequences], out: Path, role: Role, source: dict[str, Any]
) -> int:
    """Write ids and vectors to a Parquet file; return how many.

    Each batch is written to a file of its own in `OUT.parts` first. A run that was cut off finds them and embeds the
    others. `source` says what is embedded by which model: parts of another run are not used.
    """
    parts = out.with_name(out.name + ".parts")
    _prepare(parts, {"role": role, **source})
    files: list[Path] = []

    def missing() -> Iterator[tuple[tuple[Path, pa.Array], Any]]:
        for number, batch in enumerate(batches):
            file = parts / f"{number:08d}-{_digest(batch)}.parquet"
            files.append(file)
            if not file.exists():
                yield (file, batch.ids), embedder.begin(batch, role)

    for (file, ids), vectors in embedder.cluster.in_order(missing()):
        with new_file(file) as temporary:  # these are read once more and removed: compressing them is not worth it
            pq.write_table(vector_table(ids, vectors), temporary, **{**LAYOUT, "compression": "none"})
    if not files:
        shutil.rmtree(parts)
        raise UserError("there are no sequences; there is nothing to embed")
    count = 0
    with (
        new_file(out) as temporary,
        pq.ParquetWriter(temporary, pq.read_schema(files[0]), **LAYOUT) as writer,
    ):
        for file in files:
            table = pq.read_table(file)
            writer.write_table(table)
            count += table.num_rows
    shutil.rmtree(parts)
    return count


def _prepare(parts: Path, plan: dict[str, Any]) -> None:
    """Make the folder of parts; empty it if they belong to something else."""
    if parts.exists():
        try:
            same = json.loads((parts / PLAN).read_text()) == plan
        except (OSError, ValueError):
            same = False
        if not same:
            if any(file.suffix not in (".parquet", ".json") for file in parts.iterdir()):
                raise UserError(f"{parts}: holds other files; move them away")
            shutil.rmtree(parts)
    parts.mkdir(parents=True, exist_ok=True)
    with new_file(parts / PLAN) as temporary:
        temporary.write_text(json.dumps(plan))


def _digest(batch: EventSequences) -> str:
    """Return a hash of ids and events, so that a part is used only for the batch that it was made of."""
    made = hashlib.blake2b(digest_size=12)
    for name in batch.ids.to_pylist():
        made.update(name.encode() + b"\0")
    for array in (batch.offsets, batch.times, batch.marks):
        made.update(np.ascontiguousarray(array).data)
    return made.hexdigest()
