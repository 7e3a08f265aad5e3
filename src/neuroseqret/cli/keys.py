"""`neuroseqret keys create|list|revoke`: who may call a server."""

from __future__ import annotations

from pathlib import Path

import typer
from rich.table import Table

from neuroseqret.cli.console import out, remarks
from neuroseqret.cli.listing import Command
from neuroseqret.cli.numbers import finite

keys_app = typer.Typer(no_args_is_help=True, help="Make and revoke the keys of a server.")
FILE = typer.Argument(..., metavar="FILE", help="Key file.")


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
) -> None:
    """Make a key and print it.

    The file keeps only a hash of it, so the key cannot be shown again.
    """
    from neuroseqret.serving.keys import create as make

    key, made = make(file, name, tuple(scope), days, rate, quota)
    typer.echo(key)
    remarks.print(f"key {made.id} ({', '.join(made.scopes)}) added to {file}; keep the line above, it is not stored")


@keys_app.command("list", cls=Command)
def list_keys(file: Path = FILE) -> None:
    """List keys: id, name, scopes and expiry."""
    from neuroseqret.serving.keys import read

    table = Table("id", "name", "scopes", "created", "expires")
    for key in read(file):
        ends = "never" if key.expires is None else f"{key.expires}{' (over)' if key.expired else ''}"
        table.add_row(key.id, key.name, ", ".join(key.scopes), key.created, ends)
    out.print(table, markup=False)


@keys_app.command(cls=Command)
def revoke(
    file: Path = FILE,
    id: str = typer.Argument(..., metavar="ID", help="Id or name of the key."),
) -> None:
    """Revoke a key. Servers that use the file refuse it within a second or two."""
    from neuroseqret.serving.keys import revoke as remove

    gone = remove(file, id)
    remarks.print(f"key {gone.id} ({gone.name}) revoked", markup=False)
