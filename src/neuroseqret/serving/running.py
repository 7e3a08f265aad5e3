"""`neuroseqret serve`: check the settings, start one process or several, and end without losing anything."""

from __future__ import annotations

import ipaddress
import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from types import FrameType

import orjson
import uvicorn

from neuroseqret.errors import UserError
from neuroseqret.index import Index
from neuroseqret.index.bucket_place import config_at
from neuroseqret.serving.app import make_app
from neuroseqret.serving.connections import protocol_of
from neuroseqret.serving.logs import set_up_logs
from neuroseqret.serving.metrics import Metrics
from neuroseqret.serving.service import Service
from neuroseqret.serving.settings import Limits, ServerSettings
from neuroseqret.storage.memory import give_memory_back

_GRACE = 30  # seconds that running requests get when the server ends
_TURN = 0.0005  # seconds until a thread that computes lets the one that answers requests go on; Python's 5 ms are felt
_SETTINGS = "NEUROSEQRET_SERVER"  # how a worker process is told its settings


def check(settings: ServerSettings) -> None:
    """Raise a `UserError` if a server must not or cannot start like this."""
    config_at(settings.index)
    if settings.keys is None and not _is_loopback(settings.host):
        raise UserError(
            f"{settings.host} can be reached by other machines, and without keys everybody could write; make a key "
            "with 'neuroseqret keys create KEYS' and pass --keys KEYS, or listen on 127.0.0.1"
        )
    if (settings.tls_cert is None) != (settings.tls_key is None):
        raise UserError("TLS needs both --tls-cert and --tls-key")
    for file in (settings.tls_cert, settings.tls_key):
        if file is not None and not file.is_file():
            raise UserError(f"{file}: no such file")


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def run(settings: ServerSettings, started: Callable[[str], None] = lambda url: None) -> None:
    """Serve until SIGINT or SIGTERM; running requests and commits are finished first."""
    check(settings)
    bound = _bound(settings.host, settings.port)
    host, port = bound.getsockname()[:2]
    shown = f"[{host}]" if ":" in host else host
    url = f"{'https' if settings.tls_cert else 'http'}://{shown}:{port}"
    if settings.workers > 1:
        _run_workers(settings, bound, lambda: started(url))
    else:
        _serve(settings, bound, lambda: started(url))


def _bound(host: str, port: int) -> socket.socket:
    """Return a socket on the address, so that an address that is taken is one clear line."""
    try:
        family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        made = socket.socket(family, kind)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind(address)
    except OSError as error:
        reason = error.strerror or str(error)
        raise UserError(f"cannot listen on {host} port {port} ({reason}); choose another --host or --port") from error
    made.set_inheritable(True)
    return made


class _Server(uvicorn.Server):
    """Says when it has started."""

    def __init__(self, config: uvicorn.Config, started: Callable[[], None]) -> None:
        super().__init__(config)
        self._say_started = started

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start, then say so."""
        await super().startup(sockets)
        if self.started:
            self._say_started()


def _serve(settings: ServerSettings, bound: socket.socket, started: Callable[[], None]) -> None:
    set_up_logs()
    _allow_many_connections()
    give_memory_back()
    sys.setswitchinterval(_TURN)
    service = Service(Index.open(settings.index), settings, Metrics())
    service.warm_up()  # a mistake is one line here, and a traceback once the server runs
    config = uvicorn.Config(
        make_app(service),
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_keep_alive=30,
        timeout_graceful_shutdown=_GRACE,
        http=protocol_of(settings.limits.idle_seconds),
        ws="none",
        backlog=2048,
        ssl_certfile=settings.tls_cert,
        ssl_keyfile=settings.tls_key,
    )
    server = _Server(config, started)
    server.run([bound])
    if not server.started:  # the reason is in the log
        raise UserError("the server could not start; the lines above say why")


def _allow_many_connections() -> None:
    """Open as many files as the system allows: every idle connection is one."""
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


# -------------------------------------------------------------------- several processes


def _run_workers(settings: ServerSettings, bound: socket.socket, started: Callable[[], None]) -> None:
    """Start the workers on one socket, restart one that dies, and end all of them on a signal.

    Each is a new process, not a fork: the store must not be forked.
    """
    bound.listen(2048)
    stopping = False

    def stop(number: int, frame: FrameType | None) -> None:
        nonlocal stopping
        stopping = True

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, stop)
    with tempfile.TemporaryDirectory(prefix="neuroseqret-") as counters:  # where workers add up what they count
        os.environ["PROMETHEUS_MULTIPROC_DIR"] = counters
        settings = replace(settings, counts=Path(counters) / "counts.sqlite")
        _supervise(settings, bound, started, lambda: stopping)


def _supervise(
    settings: ServerSettings, bound: socket.socket, started: Callable[[], None], ending: Callable[[], bool]
) -> None:
    workers = [_worker(settings, bound) for _ in range(settings.workers)]
    started()
    failed = 0
    try:
        while not ending() and failed < 5:
            for at, worker in enumerate(workers):
                try:
                    worker.wait(0.2)
                except subprocess.TimeoutExpired:
                    continue
                failed += worker.returncode == 2  # it could not even start
                workers[at] = _worker(settings, bound)
    finally:
        for worker in workers:
            worker.terminate()
        for worker in workers:
            worker.wait()
    if not ending():
        raise UserError("the server's processes cannot start; the lines above say why")


def _worker(settings: ServerSettings, bound: socket.socket) -> subprocess.Popen[bytes]:
    told = orjson.dumps({**asdict(settings), "descriptor": bound.fileno()}, default=str).decode()
    command = [sys.executable, "-m", "neuroseqret.serving.running"]
    return subprocess.Popen(command, env={**os.environ, _SETTINGS: told}, pass_fds=[bound.fileno()])


def _work() -> None:
    """Run one worker process, as the settings in its environment say."""
    told = orjson.loads(os.environ[_SETTINGS])
    bound = socket.socket(fileno=told.pop("descriptor"))
    paths = {
        name: Path(told[name]) for name in ("index", "keys", "tls_cert", "tls_key", "audit", "counts") if told[name]
    }
    several = {"rerank": tuple(map(Path, told["rerank"])), "origins": tuple(told["origins"])}
    _serve(ServerSettings(**{**told, **paths, **several, "limits": Limits(**told["limits"])}), bound, lambda: None)


if __name__ == "__main__":
    try:
        _work()
    except UserError as error:
        print(f"neuroseqret: {error}", file=sys.stderr)
        sys.exit(2)
