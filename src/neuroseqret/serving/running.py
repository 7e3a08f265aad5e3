"""`neuroseqret serve`: start the server and keep it running."""

from __future__ import annotations

import uvicorn

from neuroseqret.serving.app import make_app
from neuroseqret.serving.settings import ServerSettings


def run(settings: ServerSettings) -> None:
    """Serve until a signal asks to stop; running requests and commits are finished first."""
    config = uvicorn.Config(
        make_app(settings),
        host=settings.host,
        port=settings.port,
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_keep_alive=30,
    )
    uvicorn.Server(config).run()
