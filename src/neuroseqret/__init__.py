"""NeuroSeqRet: search for continuous-time event sequences.

    import neuroseqret as nsr

    data = nsr.prepare(frame, id="user", time="when", mark="action", group="kind")
    model = nsr.SelfAttention().fit(data)
    index = nsr.Index.create(model, "users.index", data.corpus)
    hits = index.search(data.queries[0], k=10)

The names below are imported when they are first used, so that `import neuroseqret` costs nothing.
"""

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from neuroseqret.storage.numba_cache import ensure_numba_cache

__version__ = "0.2.0"

if TYPE_CHECKING:
    from neuroseqret.data.relevance import Relevance
    from neuroseqret.data.sequences import EventSequence, EventSequences
    from neuroseqret.datasets.from_frame import prepare
    from neuroseqret.datasets.simulate import simulate
    from neuroseqret.errors import DataError, UserError
    from neuroseqret.evaluation.evaluate import evaluate
    from neuroseqret.evaluation.report import Report
    from neuroseqret.explanation import Explanation, explain
    from neuroseqret.index import AllHits, Hit, Hits, Index
    from neuroseqret.methods.catalogue import catalogue as methods
    from neuroseqret.methods.registry import load, make
    from neuroseqret.models.cross.cross_attention import CrossAttention
    from neuroseqret.models.cross.hash_cross_attention import HashCrossAttention
    from neuroseqret.models.self_attention.model import SelfAttention
    from neuroseqret.readers import DataFolder, read, read_folder, scan, write, write_folder
    from neuroseqret.serving.client import RemoteIndex, connect

_HOMES = {
    "errors": ("DataError", "UserError"),
    "evaluation.evaluate": ("evaluate",),
    "evaluation.report": ("Report",),
    "explanation": ("Explanation", "explain"),
    "index": ("AllHits", "Hit", "Hits", "Index"),
    "methods.registry": ("load", "make"),
    "models.cross.cross_attention": ("CrossAttention",),
    "models.cross.hash_cross_attention": ("HashCrossAttention",),
    "models.self_attention.model": ("SelfAttention",),
    "serving.client": ("RemoteIndex", "connect"),
    "readers": ("DataFolder", "read", "read_folder", "scan", "write", "write_folder"),
    "data.relevance": ("Relevance",),
    "data.sequences": ("EventSequence", "EventSequences"),
    "datasets.from_frame": ("prepare",),
    "datasets.simulate": ("simulate",),
}
_MODULES = {name: f"neuroseqret.{module}" for module, names in _HOMES.items() for name in names}

__all__ = [
    "AllHits",
    "CrossAttention",
    "DataError",
    "DataFolder",
    "EventSequence",
    "EventSequences",
    "Explanation",
    "HashCrossAttention",
    "Hit",
    "Hits",
    "Index",
    "Relevance",
    "RemoteIndex",
    "Report",
    "SelfAttention",
    "UserError",
    "__version__",
    "connect",
    "evaluate",
    "explain",
    "load",
    "make",
    "methods",
    "prepare",
    "read",
    "read_folder",
    "scan",
    "simulate",
    "write",
    "write_folder",
]

ensure_numba_cache(Path(__file__).parent)  # before any module imports numba


def __getattr__(name: str) -> Any:
    if name == "methods":  # a package that can be called
        return import_module("neuroseqret.methods")
    if name not in _MODULES:
        raise AttributeError(f"module 'neuroseqret' has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)


def __dir__() -> list[str]:
    return __all__
