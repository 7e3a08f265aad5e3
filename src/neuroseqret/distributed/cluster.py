"""A Ray cluster that works for a model.

The nodes need this library and nothing else: no shared disk, no access to the data. The driver sends them the model
once per node, then jobs, and gets results back. Ray repeats the jobs of a node that dies on another one.
"""

from __future__ import annotations

import hashlib
import logging
import socket
import tempfile
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

from typing_extensions import Self

from neuroseqret.errors import MissingExtraError, UserError

K = TypeVar("K")
RETRIES = 20  # times that a job is repeated because its node died
ModelFiles = tuple[str, dict[str, bytes]]  # digest, and the content of every file by name
_loaded: dict[str, Any] = {}  # models of this worker process


class Cluster:
    """A connection to a cluster, to be used in a `with` block."""

    def __init__(self, address: str) -> None:
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

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        with suppress(Exception):
            self._ray.shutdown()

    @property
    def slots(self) -> int:
        """Jobs that can be at work at the same time."""
        return max(1, int(self._ray.cluster_resources().get("CPU", 1)))

    def send(self, value: Any) -> Any:
        """Give the nodes something that many jobs need; pass what this returns to `begin`."""
        return self._ray.put(value)

    def begin(self, job: Callable[..., Any], *arguments: Any) -> Any:
        """Begin a job; `result` waits for it."""
        return self._ray.remote(num_cpus=1, max_retries=RETRIES)(job).remote(*arguments)

    def result(self, begun: Any) -> Any:
        """Return what a job returned."""
        try:
            return self._ray.get(begun)
        except self._ray.exceptions.RayTaskError as error:
            cause = error.as_instanceof_cause()
            if isinstance(cause, UserError):
                raise UserError(str(cause).splitlines()[-1]) from error
            raise
        except self._ray.exceptions.RayError as error:
            told = " ".join(str(error).split())[:200]
            raise UserError(f"the Ray cluster gave up ({told}); run the command again to go on") from error

    def in_order(self, jobs: Iterable[tuple[K, Any]]) -> Iterator[tuple[K, Any]]:
        """Yield the name and the result of every named, begun job; at most two jobs per slot are under way."""
        waiting: deque[tuple[K, Any]] = deque()
        for job in jobs:
            waiting.append(job)
            if len(waiting) >= 2 * self.slots:
                name, begun = waiting.popleft()
                yield name, self.result(begun)
        while waiting:
            name, begun = waiting.popleft()
            yield name, self.result(begun)


def _check_port(address: str) -> None:
    """Raise an `OSError` at once if nobody listens; Ray itself tries for a minute."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if host and port.isdigit():
        socket.create_connection((host, int(port)), timeout=10).close()


def model_files(folder: Path) -> ModelFiles:
    """Return a model folder as something that can be sent to nodes."""
    files = {file.name: file.read_bytes() for file in sorted(folder.iterdir()) if file.is_file()}
    digest = hashlib.blake2b(b"".join(name.encode() + part for name, part in files.items())).hexdigest()
    return digest, files


def model_of(model: ModelFiles) -> Any:
    """Return the model that was sent; for jobs. A worker loads it once."""
    digest, files = model
    if digest not in _loaded:
        from neuroseqret.methods import registry

        with tempfile.TemporaryDirectory() as folder:
            for name, content in files.items():
                (Path(folder) / name).write_bytes(content)
            _loaded.clear()
            _loaded[digest] = registry.load(folder)
    return _loaded[digest]
