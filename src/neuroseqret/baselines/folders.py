"""What the trained baselines' model folders have in common."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike
from typing import Any

from torch import Tensor

from neuroseqret.data.sequences import EventSequences
from neuroseqret.errors import UserError

#: What a model folder tells of the data besides numbers.
MEANING = ("mark_names", "time_unit", "corpus_fingerprint")


def meaning(corpus: EventSequences) -> dict[str, Any]:
    """What the marks and the clock of a corpus mean, and which corpus it was."""
    names = None if corpus.mark_names is None else list(corpus.mark_names)
    return {"mark_names": names, "time_unit": corpus.time_unit, "corpus_fingerprint": corpus.fingerprint()}


@contextmanager
def fitting_together(folder: str | PathLike[str]) -> Iterator[None]:
    """Config and tensors of a folder that do not belong together are one clear error."""
    try:
        yield
    except (KeyError, ValueError, RuntimeError, TypeError) as error:
        raise UserError(f"{folder}: config and tensors do not fit together ({error}); fit the model again") from error


def under(tensors: dict[str, Tensor], name: str) -> dict[str, Tensor]:
    """The tensors whose names begin with `name.`, without that."""
    return {key.removeprefix(f"{name}."): tensor for key, tensor in tensors.items() if key.startswith(f"{name}.")}
