"""`neuroseqret experiment`: the tables and figures of the paper, on any data folders."""

from __future__ import annotations

from pathlib import Path

import typer

from neuroseqret.errors import UserError

NAMES = ("accuracy", "ablation", "unwarping", "hashing", "queries", "lengths", "runtime", "qualitative", "all")


def experiment(
    name: str = typer.Argument(..., help=f"Which: {', '.join(NAMES)}."),
    data: list[Path] = typer.Option([], "--data", help="Data folder; may be given several times."),
    out: Path = typer.Option(Path("results"), "--out", help="Folder for cells, tables and figures."),
) -> None:
    """Make a table or figure of the paper. Planned for the next version; use 'evaluate' for figures until then."""
    if name not in NAMES:
        raise UserError(f"no experiment is called {name!r}; there are {', '.join(NAMES)}")
    raise UserError(
        f"experiment {name} is not in this version; 'neuroseqret evaluate' compares methods on a data folder"
    )
