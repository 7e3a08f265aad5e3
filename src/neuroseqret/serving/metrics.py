"""Counters for Prometheus: requests, time per step, sizes of batches, the corpus, commits seen, rejects."""

from __future__ import annotations

import logging
import os

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest, multiprocess

_SECONDS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0)


class Metrics:
    """The counters of one server process."""

    log = logging.getLogger("neuroseqret.server")

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._steps: dict[str, Histogram] = {}
        kwargs = {"registry": self.registry, "namespace": "neuroseqret"}
        self.requests = Counter("requests", "Requests answered.", ["method", "route", "status"], **kwargs)  # type: ignore[arg-type]
        self.latency = Histogram(
            "request_seconds",
            "Time from the first byte to the answer.",
            ["route"],
            buckets=_SECONDS,
            **kwargs,  # type: ignore[arg-type]
        )
        self.steps = Histogram("step_seconds", "Time per step of a search.", ["step"], buckets=_SECONDS, **kwargs)  # type: ignore[arg-type]
        self.batches = Histogram(
            "batch_queries",
            "Queries embedded together.",
            buckets=(1, 2, 4, 8, 16, 32, 64, 128, 256),
            **kwargs,  # type: ignore[arg-type]
        )
        self.corpus = Gauge("sequences", "Sequences (or windows) in the index.", multiprocess_mode="max", **kwargs)  # type: ignore[arg-type]
        self.commits = Counter("commits_seen", "Commits of the index that this process noticed.", **kwargs)  # type: ignore[arg-type]
        self.rejects = Counter("rejects", "Requests refused by a limit.", ["reason"], **kwargs)  # type: ignore[arg-type]
        self.active = Gauge("active_requests", "Requests being answered.", multiprocess_mode="livesum", **kwargs)  # type: ignore[arg-type]
        self.written = Counter("sequences_written", "Sequences added, replaced or removed.", ["verb"], **kwargs)  # type: ignore[arg-type]

    def step(self, name: str) -> Histogram:
        """Return the times of a step of searches; looking it up by its label every time is felt."""
        if (found := self._steps.get(name)) is None:
            found = self._steps[name] = self.steps.labels(name)
        return found

    def text(self) -> bytes:
        """Return the counters in Prometheus' text form."""
        if "PROMETHEUS_MULTIPROC_DIR" not in os.environ:
            return generate_latest(self.registry)
        together = CollectorRegistry()  # of all worker processes
        multiprocess.MultiProcessCollector(together)
        return generate_latest(together)
