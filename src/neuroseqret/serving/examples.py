"""An example of every answer, for the OpenAPI document; those of requests stand beside their fields in `shapes`."""

from __future__ import annotations

from typing import Any

_EVENTS: dict[str, Any] = {"times": [0.0, 2.0], "marks": ["view", "buy"]}
_SEQUENCE: dict[str, Any] = {
    "id": "s7",
    **_EVENTS,
    "group": "shop",
    "metadata": {"title": "second visit"},
    "values": {"amount": [None, 20.0]},
}
_HIT = {"rank": 1, "score": 0.93, **_SEQUENCE}
_COUNT = {"value": "first visit", "sequences": 12}

REPLIES: dict[str, dict[str, Any]] = {
    "SearchReply": {
        "results": [
            {
                "query": {"id": "s1"},
                "hits": [_HIT],
                "method": "cells",
                "corpus": 100000,
                "comparisons": 2000,
                "reranked": 0,
                "centres": 1265,
            }
        ],
        "milliseconds": {"wait": 0.3, "embed": 2.1, "search": 0.6, "read": 0.2, "total": 3.2},
        "batch": 4,
        "version": 17,
        "warnings": [],
    },
    "ExplainReply": {
        "explanations": [
            {
                "id": "s7",
                "score": 0.93,
                "similarity": 0.0,
                "parts": {"marks": 0.41, "times": 0.3, "marks and times": 0.12, "whole sequence": 0.1},
                "of_query_events": [0.2],
                "of_hit_events": [0.1, 0.3],
                "strongest": [{"query_event": 0, "hit_event": 1, "part": 0.18}],
                "pairs": [[0.02, 0.18]],
            }
        ]
    },
    "EmbedReply": {"dimension": 3, "embeddings": [[0.6, 0.0, 0.8]]},
    "AddReply": {
        "added": 2,
        "already_there": 0,
        "replaced": 0,
        "version": 18,
        "warnings": [],
        "errors": [{"row": 3, "id": "s4", "problem": "time decreases; sort the events"}],
    },
    "RemoveReply": {"removed": 2},
    "SequenceShown": _SEQUENCE,
    "Listing": {"sequences": [_SEQUENCE], "next": "AAAAAAAAADI"},
    "FeedbackReply": {"stored": 2},
    "FeedbackListing": {
        "judgements": [
            {"query": {"id": "s1"}, "id": "s7", "relevant": True, "user": "anna", "time": "2026-01-31T12:00:00Z"}
        ],
        "next": None,
    },
    "IndexReply": {
        "name": "index",
        "model": "self",
        "preset": "default",
        "sequences": 100000,
        "windowed": False,
        "dimension": 128,
        "marks": 2,
        "mark_names": ["view", "buy"],
        "time_unit": "seconds",
        "candidates": "cells",
        "columns": [{"name": "title", "type": "text"}],
        "values": ["amount"],
        "training_columns": {"id": "user", "time": "when", "mark": "action"},
        "time_format": "%d.%m.%Y %H:%M",
        "explainable": True,
        "rerank": ["cross"],
        "version": 18,
        "library_version": "0.2.0",
        "scopes": ["read"],
        "caller": "anna",
        "limits": {"k": 1000, "queries": 256},
    },
    "StatisticsReply": {
        "sequences": 100000,
        "events": 5120000,
        "version": 18,
        "lengths": {"min": 2, "median": 50.0, "max": 400, "edges": [2, 36, 70], "counts": [60000, 40000]},
        "times": {"first": 0.0, "last": 86400.0, "median_span": 620.0, "median_gap": 2.5, "unit": "seconds"},
        "marks": [{"name": "view", "events": 4000000}],
        "groups": [{"value": "shop", "sequences": 50000}],
        "columns": [{"name": "title", "type": "text", "distinct": 99000, "missing": 0, "values": [_COUNT]}],
        "sampled": 20000,
    },
    "ProblemDocument": {
        "type": "about:blank",
        "title": "Unprocessable Content",
        "status": 422,
        "detail": "query 0: event 3: time decreases; sort the events",
        "request": "5f0c2d1e9a7b4c36",
    },
}
