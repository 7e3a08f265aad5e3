"""`neuroseqret serve`: an index behind HTTP, with a page for people."""

from __future__ import annotations

from pathlib import Path

import typer

from neuroseqret.cli.console import remarks
from neuroseqret.cli.numbers import finite
from neuroseqret.errors import MissingExtraError


def serve(
    folder: Path = typer.Argument(..., metavar="INDEX", help="Index folder, or s3://bucket/path."),
    host: str = typer.Option("127.0.0.1", "--host", metavar="ADDRESS", help="Address to listen on."),
    port: int = typer.Option(
        8765, "--port", metavar="N", min=0, max=65535, help="Port to listen on; 0 for a free one."
    ),
    keys: Path | None = typer.Option(
        None, "--keys", metavar="FILE", help="Key file, made by 'neuroseqret keys create'; callers then need a key."
    ),
    rerank: list[Path] = typer.Option(
        [], "--rerank", metavar="MODEL", help="Model folder that searches may rerank with; may be given several times."
    ),
    workers: int = typer.Option(1, "--workers", metavar="N", min=1, max=256, help="Number of processes."),
    tls_cert: Path | None = typer.Option(None, "--tls-cert", metavar="FILE", help="Certificate for HTTPS (PEM)."),
    tls_key: Path | None = typer.Option(
        None, "--tls-key", metavar="FILE", help="Private key of the certificate (PEM)."
    ),
    audit: Path | None = typer.Option(
        None, "--audit", metavar="FILE", help="Append every write, with who wrote, to this file."
    ),
    origin: list[str] = typer.Option(
        [], "--origin", metavar="URL", help="Other site whose pages may call the server; may be given several times."
    ),
    rate: float = typer.Option(
        100.0,
        "--rate",
        metavar="N",
        min=0,
        callback=finite,
        help="Requests per second that one key may make; 0 for no limit.",
    ),
    window: float = typer.Option(
        3.0,
        "--window",
        metavar="MS",
        min=0,
        max=100,
        callback=finite,
        help="Milliseconds that a search waits for others to be embedded with, if others are expected; 0 embeds each "
        "query alone.",
    ),
    limit: list[str] = typer.Option(
        [], "--limit", metavar="NAME=N", help="Another limit, such as k=100 or body_bytes=1000000: {limits}."
    ),
    telemetry: bool = typer.Option(False, "--telemetry", help="Send OpenTelemetry spans, as OTEL_* variables say."),
) -> None:
    """Serve an index over HTTP.

    People open the address in a browser; programs use the interface under /v1. Without --keys only this machine can
    connect.
    """
    try:
        from neuroseqret.serving.running import run
    except ImportError as error:
        raise MissingExtraError(error.name or "fastapi", "server", "'neuroseqret serve'") from error
    from neuroseqret.serving.settings import ServerSettings, limits_of

    settings = ServerSettings(
        index=folder,
        host=host,
        port=port,
        keys=keys,
        rerank=tuple(rerank),
        workers=workers,
        tls_cert=tls_cert,
        tls_key=tls_key,
        audit=audit,
        origins=tuple(origin),
        rate=rate,
        window=window / 1000,
        telemetry=telemetry,
        limits=limits_of(limit),
    )
    run(settings, lambda url: remarks.print(f"serving {folder} at {url} (end with Ctrl-C)", markup=False))
