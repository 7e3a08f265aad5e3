"""`neuroseqret keys create|list|revoke`: who may call a server."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from neuroseqret.cli.console import out, print_json, remarks, window_width
from neuroseqret.cli.listing import Command
from neuroseqret.cli.numbers import finite
from neuroseqret.cli.text_table import Column, lines_of

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
    keys = read(file)
    columns = [
        Column("id", [key.id for key in keys], essential=True),
        Column("name", [key.name for key in keys], essential=True),
        Column("scopes", [", ".join(key.scopes) for key in keys], essential=True),
        Column("created", [key.created[:10] for key in keys], essential=True),
        Column("expires", [_ends(key) for key in keys], essential=True),
    ]
    for line in lines_of(columns, window_width())[0]:
        out.print(line, markup=False, soft_wrap=True)


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


def _ends(key: Key) -> str:
    """Say when a key ends, to the minute."""
    if key.expires is None:
        return "never"
    return f"{key.expires[:16].replace('T', ' ')} UTC{' (expired)' if key.expired else ''}"


def _shown(key: Key) -> dict[str, Any]:
    """Return what may be shown of a key: everything but its hash."""
    shown = ("id", "name", "scopes", "created", "expires", "expired", "rate", "quota")
    return {name: getattr(key, name) for name in shown}
