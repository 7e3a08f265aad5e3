"""A Ray cluster that embeds sequences.

The nodes need this library and nothing else: no shared disk, no access to the data. The driver sends them the model
once per node, then batches, and gets vectors back. Ray repeats the batches of a node that dies on another one.
"""

from __future__ import annotations

import hashlib
import logging
import socket
import tempfile
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from typing_extensions import Self

from neuroseqret.data.sequences import EventSequences
from neuroseqret.errors import MissingExtraError, UserError
from neuroseqret.models.base import Role

K = TypeVar("K")
RETRIES = 20  # times that a batch is repeated because its node died
_loaded: dict[str, Any] = {}  # models of this worker process


class Cluster:
    """A connection to a cluster, to be used in a `with` block."""

    def __init__(self, address: str, model: Path) -> None:
        try:
            import ray
        except ImportError as error:
            raise MissingExtraError("ray", "ray", "work on a cluster") from error
        self._ray = ray
        try:
            _check_port(address)
            ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR, configure_logging=False)
        except (OSError, ValueError, RuntimeError) as error:
            told = " ".join(str(error).split())[:200]
            raise UserError(
                f"{address}: no Ray cluster answers ({told}); start one with 'ray start --head', or name another one"
            ) from error
        files = {file.name: file.read_bytes() for file in sorted(model.iterdir()) if file.is_file()}
        digest = hashlib.blake2b(b"".join(name.encode() + part for name, part in files.items())).hexdigest()
        self._model = ray.put((digest, files))
        self._embed = ray.remote(num_cpus=1, max_retries=RETRIES)(_embed)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        with suppress(Exception):
            self._ray.shutdown()

    @property
    def slots(self) -> int:
        """Batches that can be at work at the same time."""
        return max(1, int(self._ray.cluster_resources().get("CPU", 1)))

    def embed(self, sequences: EventSequences, role: Role) -> Any:
        """Begin to embed a batch; `result` waits for it."""
        return self._embed.remote(self._model, sequences, role)

    def result(self, begun: Any) -> npt.NDArray[np.float32]:
        """Return the vectors of a batch."""
        try:
            found: npt.NDArray[np.float32] = self._ray.get(begun)
        except self._ray.exceptions.RayTaskError as error:
            cause = error.as_instanceof_cause()
            if isinstance(cause, UserError):
                raise UserError(str(cause).splitlines()[-1]) from error
            raise
        except self._ray.exceptions.RayError as error:
            told = " ".join(str(error).split())[:200]
            raise UserError(f"the Ray cluster gave up ({told}); run the command again to go on") from error
        return found

    def in_order(
        self, batches: Iterable[tuple[K, EventSequences]], role: Role
    ) -> Iterator[tuple[K, pa.Array, npt.NDArray[np.float32]]]:
        """Yield name, ids and vectors of every named batch; at most two batches per slot are under way."""
        waiting: deque[tuple[K, pa.Array, Any]] = deque()
        for name, batch in batches:
            waiting.append((name, batch.ids, self.embed(batch, role)))
            if len(waiting) >= 2 * self.slots:
                done, ids, begun = waiting.popleft()
                yield done, ids, self.result(begun)
        while waiting:
            done, ids, begun = waiting.popleft()
            yield done, ids, self.result(begun)


def _check_port(address: str) -> None:
    """Raise an `OSError` at once if nobody listens; Ray itself tries for a minute."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if host and port.isdigit():
        socket.create_connection((host, int(port)), timeout=10).close()


def _embed(model: tuple[str, dict[str, bytes]], sequences: EventSequences, role: Role) -> npt.NDArray[np.float32]:
    """Embed a batch; runs on a node of the cluster."""
    digest, files = model
    if digest not in _loaded:
        from neuroseqret.methods import registry

        with tempfile.TemporaryDirectory() as folder:
            for name, content in files.items():
                (Path(folder) / name).write_bytes(content)
            _loaded.clear()
            _loaded[digest] = registry.load(folder)
    vectors: npt.NDArray[np.float32] = _loaded[digest].embed(sequences, role, unknown_marks="keep", strict=None)
    return vectors
