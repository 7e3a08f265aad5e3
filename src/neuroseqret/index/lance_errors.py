"""Errors of Lance in one line that says what the user can do."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from neuroseqret.errors import UserError
from neuroseqret.index.lance_recovery import is_failure
from neuroseqret.storage.bucket import explain


@contextmanager
def explained(folder: Path | str, done: str, where: str | None = None, columns: Sequence[str] = ()) -> Iterator[None]:
    """Turn errors of Lance in the block into a `UserError`. `where` is the condition of a user, over `columns`."""
    try:
        yield
    except UserError:
        raise
    except BaseException as error:
        if not is_failure(error):
            raise
        text = " ".join(str(error).split())
        if "No space left" in text or "StorageFull" in text:
            raise UserError(
                f"{folder}: no space left on the device; the index is unchanged, free some space and try again"
            ) from error
        if where is not None:
            usable = [name for name in columns if not name.startswith("nsr_") and name not in ("times", "marks")]
            text = text.partition(" Valid fields are")[0].rstrip(".")  # Lance lists internal columns too
            raise UserError(
                f"the condition {where!r} cannot be used: {text[:300]}; columns are {', '.join(usable)}"
            ) from error
        if isinstance(folder, str):
            raise UserError(explain(folder, done, text)) from None  # the cause may hold a signed request
        raise UserError(f"{folder}: the store cannot be {done}: {text[:300]}") from error
