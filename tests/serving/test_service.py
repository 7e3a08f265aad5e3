"""The service without HTTP: what waits for what."""

from __future__ import annotations

import asyncio
import threading

from neuroseqret.index import Index
from neuroseqret.serving.metrics import Metrics
from neuroseqret.serving.service import Service
from neuroseqret.serving.settings import ServerSettings


def test_small_writes_and_judgements_do_not_wait_for_a_large_body(served_index):
    service = Service(Index.open(served_index), ServerSettings(index=served_index), Metrics())
    ended = threading.Event()

    async def while_a_large_body_is_added() -> list[str]:
        large = asyncio.ensure_future(service.write(ended.wait, 60))
        done = [await service.write(lambda: "small"), await service.note(lambda: "judged")]
        assert not large.done()
        ended.set()
        assert await large
        await service.close()
        return done

    assert asyncio.run(while_a_large_body_is_added()) == ["small", "judged"]
