"""NeuroSeqRet: search for continuous-time event sequences.

    import neuroseqret as nsr

    folder = nsr.read_folder("data/health")
    model = nsr.SelfAttention().fit(folder.queries, folder.corpus, folder.relevance)
    index = nsr.Index.create(model, "health.index", folder.corpus)
    hits = index.search(folder.queries[0], k=10)

The names below are imported when they are first used, so that `import neuroseqret` costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from neuroseqret.errors import DataError, UserError
    from neuroseqret.evaluating import evaluate
    from neuroseqret.evaluation.report import Report
    from neuroseqret.explanation import Explanation, explain
    from neuroseqret.index import Hit, Hits, Index
    from neuroseqret.methods import load
    from neuroseqret.models.cross_attention import CrossAttention
    from neuroseqret.models.hash_cross_attention import HashCrossAttention
    from neuroseqret.models.self_attention import SelfAttention
    from neuroseqret.readers import DataFolder, read, read_folder, scan, write, write_folder
    from neuroseqret.relevance import Relevance
    from neuroseqret.sequences import EventSequence, EventSequences

_HOMES = {
    "errors": ("DataError", "UserError"),
    "evaluating": ("evaluate",),
    "evaluation.report": ("Report",),
    "explanation": ("Explanation", "explain"),
    "index": ("Hit", "Hits", "Index"),
    "methods": ("load",),
    "models.cross_attention": ("CrossAttention",),
    "models.hash_cross_attention": ("HashCrossAttention",),
    "models.self_attention": ("SelfAttention",),
    "readers": ("DataFolder", "read", "read_folder", "scan", "write", "write_folder"),
    "relevance": ("Relevance",),
    "sequences": ("EventSequence", "EventSequences"),
}
_MODULES = {name: f"neuroseqret.{module}" for module, names in _HOMES.items() for name in names}

__all__ = [
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
    "Report",
    "SelfAttention",
    "UserError",
    "__version__",
    "evaluate",
    "explain",
    "load",
    "read",
    "read_folder",
    "scan",
    "write",
    "write_folder",
]


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'neuroseqret' has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)


def __dir__() -> list[str]:
    return __all__
