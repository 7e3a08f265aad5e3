"""A real server process for tests, and plain calls to it."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

START_SECONDS = 240.0


class RunningServer:
    """`neuroseqret serve INDEX` on a free port; use it as a context manager."""

    def __init__(self, index: Path, *options: str, key: str | None = None, log: Path) -> None:
        self.log, self.key = log, key
        self._stderr = log.open("wb")
        command = [sys.executable, "-m", "neuroseqret", "serve", str(index), "--port", "0", *options]
        self.process = subprocess.Popen(command, stderr=self._stderr, stdout=subprocess.DEVNULL, env=dict(os.environ))
        self.url = self._address()
        self.port = int(self.url.rsplit(":", 1)[1])

    def _address(self) -> str:
        end = time.monotonic() + START_SECONDS
        while time.monotonic() < end and self.process.poll() is None:
            found = re.search(r"at (https?://\S+)", self.log.read_text())
            if found:
                return found[1]
            time.sleep(0.05)
        self.process.kill()
        raise AssertionError(f"the server did not start:\n{self.log.read_text()}")

    def __enter__(self) -> RunningServer:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self, number: int = signal.SIGTERM, seconds: float = 60.0) -> int:
        """End the process; return its exit code."""
        if self.process.poll() is None:
            self.process.send_signal(number)
            try:
                self.process.wait(seconds)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
                raise
        self._stderr.close()
        return self.process.returncode

    def call(
        self, method: str, path: str, body: Any = None, kind: str = "application/json", **headers: str
    ) -> tuple[int, Any, dict[str, str]]:
        """Return status, JSON (or bytes) and headers of one call."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        sent = {"content-type": kind} if body is not None else {}
        if self.key:
            sent["authorization"] = f"Bearer {self.key}"
        content = body if isinstance(body, (bytes, type(None))) else json.dumps(body).encode()
        try:
            connection.request(method, path, content, {**sent, **headers})
            answer = connection.getresponse()
            raw, found = answer.read(), {name.lower(): value for name, value in answer.getheaders()}
        finally:
            connection.close()
        is_json = "json" in found.get("content-type", "")
        return answer.status, json.loads(raw) if is_json else raw, found

    def get(self, path: str) -> Any:
        """Return the JSON of a GET that must succeed."""
        status, found, _ = self.call("GET", path)
        assert status == 200, found
        return found

    def post(self, path: str, body: Any) -> Any:
        """Return the JSON of a POST that must succeed."""
        status, found, _ = self.call("POST", path, body)
        assert status == 200, found
        return found
