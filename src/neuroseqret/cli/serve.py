"""`neuroseqret serve`: an index behind HTTP, with a page for people."""

from __future__ import annotations

from pathlib import Path

import typer

from neuroseqret.cli.console import remarks


def serve(
    folder: Path = typer.Argument(..., metavar="INDEX", help="Index folder."),
    host: str = typer.Option("127.0.0.1", "--host", metavar="ADDRESS", help="Address to listen on."),
    port: int = typer.Option(8765, "--port", metavar="N", min=0, max=65535, help="Port to listen on."),
    rerank: list[Path] = typer.Option([], "--rerank", metavar="MODEL", help="Model that searches may rerank with."),
) -> None:
    """Serve an index: a page for people at /, an interface for programs under /v1."""
    from neuroseqret.serving.running import run
    from neuroseqret.serving.settings import ServerSettings

    settings = ServerSettings(index=folder, host=host, port=port, rerank=tuple(rerank))
    remarks.print(f"serving {folder} at http://{host}:{port} (end with Ctrl-C)", markup=False)
    run(settings)
