"""A proxy before an object store that fails as networks and stores do."""

from __future__ import annotations

import http.client
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

Asked = BaseHTTPRequestHandler


class FaultyProxy:
    """Forwards requests; `fault` is asked about each of them and names what goes wrong, None for nothing.

    lost: the request is done, the answer never comes. swallowed: it is not done and acknowledged. 500: the store fails.
    truncated: half of the answer comes. slow: it comes 0.5 s later. unconditional: If-None-Match is ignored.
    """

    def __init__(self, port: int) -> None:
        self.fault: Callable[[Asked], str | None] = lambda asked: None
        self.asked = 0
        proxy = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *args: object) -> None:
                pass

            def forward(self) -> None:
                proxy.asked += 1
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                fault, headers = proxy.fault(self), dict(self.headers)
                if fault in ("500", "swallowed"):
                    self.answer(500 if fault == "500" else 200, {"ETag": '"0"'}, b"")
                    return
                if fault == "unconditional":
                    headers = {name: value for name, value in headers.items() if name.lower() != "if-none-match"}
                if fault == "slow":
                    time.sleep(0.5)
                store = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
                store.request(self.command, self.path, body, headers)
                found = store.getresponse()
                content = found.read()
                if fault == "lost":
                    self.close_connection = True
                    self.connection.close()
                    return
                self.answer(found.status, dict(found.getheaders()), content, half=fault == "truncated")
                store.close()

            do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = forward

            def answer(self, status: int, headers: dict[str, str], content: bytes, half: bool = False) -> None:
                self.send_response(status)
                length = headers.get("Content-Length", "0") if self.command == "HEAD" else str(len(content))
                for name, value in headers.items():
                    if name.lower() not in ("content-length", "connection", "transfer-encoding", "date", "server"):
                        self.send_header(name, value)
                self.send_header("Content-Length", length)
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(content[: len(content) // 2] if half else content)
                if half:
                    self.close_connection = True

        class Server(ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, *args: object) -> None:
                pass  # connections that are closed on purpose

        self._server = Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def times(self, number: int, fault: str, wanted: Callable[[Asked], bool]) -> None:
        """Let the next requests of a kind fail, as many as given."""
        left, lock = [number], threading.Lock()

        def chosen(asked: Asked) -> str | None:
            with lock:
                if not left[0] or not wanted(asked):
                    return None
                left[0] -= 1
                return fault

        self.fault = chosen

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


def is_commit(asked: Asked) -> bool:
    """The conditional put of a manifest."""
    return asked.command == "PUT" and "/_versions/" in asked.path and "If-None-Match" in asked.headers


def is_read(asked: Asked) -> bool:
    return asked.command == "GET"
