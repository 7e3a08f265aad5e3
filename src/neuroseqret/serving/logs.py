"""Logs as JSON lines on standard error, and writes in the audit log."""

from __future__ import annotations

import json
import logging
import os
import sys
import threading
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import orjson

from neuroseqret.errors import UserError


def now() -> str:
    """Return the time as logs write it."""
    return datetime.now(timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")


class JsonLines(logging.Formatter):
    """One JSON object per record; `extra={"fields": {...}}` adds fields."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line of a record."""
        found: dict[str, Any] = {"time": now(), "level": record.levelname.lower(), "message": record.getMessage()}
        found |= getattr(record, "fields", {})
        if record.exc_info:
            found["traceback"] = self.formatException(record.exc_info)
        return orjson.dumps(found, default=str).decode()  # line feeds of callers are escaped: no forged lines


def set_up_logs(level: str = "info") -> None:
    """Send the server's records, and those of the libraries below it, to standard error."""
    # What no line shows need not be found out for each of them: it takes half of the time of a line.
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False
    logging._srcfile = None  # documented under "Optimization"
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    for name in ("neuroseqret", "uvicorn", "uvicorn.error"):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(level.upper() if name == "neuroseqret" else logging.WARNING)


class AuditLog:
    """Who wrote what: one JSON line per write, appended to a file if one is given, else to the log."""

    def __init__(self, file: Path | None) -> None:
        self.file, self._lock = file, threading.Lock()
        self._log = logging.getLogger("neuroseqret.audit")
        if file is not None:
            try:
                file.open("ab").close()
            except OSError as error:
                raise UserError(f"{file}: the audit log cannot be written ({error.strerror})") from error

    def write(self, verb: str, caller: str, request_id: str | None, **what: Any) -> None:
        """Note a write that was done or refused."""
        fields = {"audit": verb, "caller": caller, "request": request_id, **what}
        if self.file is None:
            self._log.info("write", extra={"fields": fields})
            return
        line = json.dumps({"time": now(), **fields}, default=str) + "\n"
        with self._lock:
            descriptor = os.open(self.file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            try:
                os.write(descriptor, line.encode())  # one call: lines of several processes do not mix
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
