"""The opt-in: no pickle is opened unless the caller asks for it."""

from __future__ import annotations

from os import PathLike

from neuroseqret.errors import UserError
from neuroseqret.readers.options import Options


def require_opt_in(path: str | PathLike[str], options: Options) -> None:
    """Raise a `UserError` unless the caller allowed pickles."""
    if not options.allow_pickle:
        raise UserError(
            f"{path}: is a pickle; if you trust its source, run 'neuroseqret data convert --allow-pickle' first, "
            "or say allow_pickle=True in Python"
        )
