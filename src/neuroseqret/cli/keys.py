"""`neuroseqret keys create|list|revoke`: who may call a server."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from rich.table import Table

from neuroseqret.cli.console import out, print_json, remarks
from neuroseqret.cli.listing import Command
from neuroseqret.cli.numbers import finite

if TYPE_CHECKING:
    from neuroseqret.serving.keys import Key

keys_app = typer.Typer(no_args_is_help=True, help="Make and revoke the keys of a server.")
FILE = typer.Argument(..., metavar="FILE", help="Key file.")
JSON = typer.Option(False, "--json", help="Print JSON instead of text.")


@keys_app.command(cls=Command)
def create(
    file: Path = FILE,
    name: str = typer.Option(..., "--name", metavar="TEXT", help="Whose key it is; logs and judgements show it."),
    scope: list[str] = typer.Option(
        ["read"], "--scope", metavar="NAME", help="What it allows: read, write or admin; may be given several times."
    ),
    days: float | None = typer.Option(
        None, "--days", metavar="N", min=0.001, callback=finite, help="Days until it expires. Default: never."
    ),
    rate: float | None = typer.Option(
        None, "--rate", metavar="N", min=0.01, callback=finite, help="Requests per second."
    ),
    quota: int | None = typer.Option(None, "--quota", metavar="N", min=1, help="Sequences that it may write per day."),
    as_json: bool = JSON,
) -> None:
    """Make a key and print it.

    The file keeps only a hash of it, so the key cannot be shown again.
    """
    from neuroseqret.serving.keys import create as make

    key, made = make(file, name, tuple(scope), days, rate, quota)
    if as_json:
        print_json({"key": key, **_shown(made)})
        return
    typer.echo(key)
    remarks.print(f"key {made.id} ({', '.join(made.scopes)}) added to {file}; keep the line above, it is not stored")


@keys_app.command("list", cls=Command)
def list_keys(file: Path = FILE, as_json: bool = JSON) -> None:
    """List keys: id, name, scopes and expiry."""
    from neuroseqret.serving.keys import read

    if as_json:
        print_json([_shown(key) for key in read(file)])
        return
    table = Table("id", "name", "scopes", "created", "expires")
    for key in read(file):
        ends = "never" if key.expires is None else f"{key.expires}{' (over)' if key.expired else ''}"
        table.add_row(key.id, key.name, ", ".join(key.scopes), key.created, ends)
    out.print(table, markup=False)


@keys_app.command(cls=Command)
def revoke(
    file: Path = FILE,
    id: str = typer.Argument(..., metavar="ID", help="Id or name of the key."),
    as_json: bool = JSON,
) -> None:
    """Revoke a key. Servers that use the file refuse it within a second or two."""
    from neuroseqret.serving.keys import revoke as remove

    gone = remove(file, id)
    if as_json:
        print_json({"revoked": _shown(gone)})
        return
    remarks.print(f"key {gone.id} ({gone.name}) revoked", markup=False)


def _shown(key: Key) -> dict[str, Any]:
    """Return what may be shown of a key: everything but its hash."""
    shown = ("id", "name", "scopes", "created", "expires", "expired", "rate", "quota")
    return {name: getattr(key, name) for name in shown}
