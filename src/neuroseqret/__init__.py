"""NeuroSeqRet: search for continuous-time event sequences."""

from neuroseqret.errors import DataError, UserError
from neuroseqret.relevance import Relevance
from neuroseqret.sequences import EventSequence, EventSequences

__version__ = "0.1.0"

__all__ = ["DataError", "EventSequence", "EventSequences", "Relevance", "UserError", "__version__"]
