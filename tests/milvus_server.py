"""A real Milvus 2.3.5 for the tests, from its wheel, with users and TLS.

It listens on all interfaces and on fixed ports, so it runs in a network namespace of its own. Its port reaches the
tests through a socket file and a port on the loopback interface.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path

PORT = 19530
TOKEN = "root:Milvus"  # of a fresh server
_BINARIES = Path(tempfile.gettempdir()) / f"neuroseqret-tests-milvus-2.3.5-{os.getuid()}"


class MilvusServer:
    """A server on `127.0.0.1:port` with its data in a folder; it can be killed and started again."""

    def __init__(self, folder: Path) -> None:
        import trustme

        self.folder, self.process = folder, None
        authority = trustme.CA()
        own = authority.issue_cert("localhost", "127.0.0.1")
        folder.mkdir(parents=True, exist_ok=True)
        authority.cert_pem.write_to_path(folder / "authority.pem")
        own.private_key_pem.write_to_path(folder / "key.pem")
        (folder / "certificate.pem").write_bytes(b"".join(part.bytes() for part in own.cert_chain_pems))
        self.short = Path(tempfile.mkdtemp(prefix="nsr-"))  # paths of sockets are limited to 100 characters
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=relay, args=(self.listener, self._inner), daemon=True).start()

    def address(self, collection: str, **options: str) -> str:
        options = {"tls": str(self.folder / "authority.pem"), **options}
        return f"milvus://localhost:{self.port}/{collection}?" + "&".join(f"{k}={v}" for k, v in options.items())

    def client(self):
        from pymilvus import MilvusClient

        authority = str(self.folder / "authority.pem")
        return MilvusClient(f"https://localhost:{self.port}", token=TOKEN, server_pem_path=authority, timeout=10)

    def start(self) -> MilvusServer:
        command = [sys.executable, __file__, str(self.folder), str(self.short / "socket")]
        (self.short / "socket").unlink(missing_ok=True)
        with (self.folder / "log.txt").open("ab") as log:
            self.process = subprocess.Popen([*_own_network(), *command], stdout=log, stderr=log, start_new_session=True)
        end = time.monotonic() + 120
        while not (self.short / "socket").exists():
            if self.process.poll() is not None or time.monotonic() > end:
                raise RuntimeError((self.folder / "log.txt").read_text()[-2000:])
            time.sleep(0.1)
        return self

    def kill(self) -> None:
        if self.process is not None:
            with suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
            self.process = None

    def close(self) -> None:
        self.kill()
        self.listener.close()
        shutil.rmtree(self.short, ignore_errors=True)

    def _inner(self) -> socket.socket:
        made = socket.socket(socket.AF_UNIX)
        made.connect(str(self.short / "socket"))
        return made


def _own_network() -> list[str]:
    """The command that gives a process its own network; none where the system does not allow it."""
    command = ["unshare", "-rn"]
    allowed = shutil.which("unshare") and subprocess.run([*command, "true"], capture_output=True).returncode == 0
    return command if allowed else []


def relay(listener: socket.socket, connect) -> None:
    """Pass the bytes of every connection on to a new one."""
    while True:
        try:
            outer, _ = listener.accept()
        except OSError:
            return
        try:
            inner = connect()
        except OSError:
            outer.close()
            continue
        for source, sink in ((outer, inner), (inner, outer)):
            threading.Thread(target=_pump, args=(source, sink), daemon=True).start()


def _pump(source: socket.socket, sink: socket.socket) -> None:
    with suppress(OSError):
        while part := source.recv(1 << 16):
            sink.sendall(part)
    for end in (source, sink):
        with suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)


def _run(folder: Path, path: str) -> None:
    """Run the server and the inner relay; called in the new network namespace."""
    from milvus import MilvusServer as Server
    from milvus import MilvusServerConfig

    with socket.socket() as control, suppress(PermissionError):  # the loopback interface is down at first
        fcntl.ioctl(control, 0x8914, struct.pack("16sh14x", b"lo", 1))
    _BINARIES.mkdir(exist_ok=True)
    if not (folder / "bin").exists():
        (folder / "bin").symlink_to(_BINARIES)
    config = MilvusServerConfig(data_dir=str(folder), proxy_port=PORT)
    for name, value in {
        "authorization_enabled": True,
        "tls_mode": 1,
        "server_pem_path": str(folder / "certificate.pem"),
        "server_key_path": str(folder / "key.pem"),
        "ca_pem_path": str(folder / "authority.pem"),
    }.items():
        config.set(name, value)
    server = Server(config)
    with (_BINARIES / "lock").open("w") as lock:  # the binaries are unpacked once
        fcntl.flock(lock, fcntl.LOCK_EX)
        server.start()
    threading.Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path + "-new")
    listener.listen()
    os.rename(path + "-new", path)
    threading.Thread(
        target=relay, args=(listener, lambda: socket.create_connection(("127.0.0.1", PORT))), daemon=True
    ).start()
    server.wait()


def _end_with(parent: int) -> None:
    """End the server when the tests end, however they do."""
    while os.getppid() == parent:
        time.sleep(1)
    os.killpg(0, signal.SIGKILL)


if __name__ == "__main__":
    _run(Path(sys.argv[1]), sys.argv[2])
