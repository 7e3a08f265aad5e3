"""Freed memory goes back to the system."""

from __future__ import annotations

import subprocess
import sys

#: Frees every second of many blocks, after a larger one was freed; prints the megabytes that stay in memory.
HOLES = """
import psutil
from neuroseqret.storage.memory import give_memory_back
{call}
before = psutil.Process().memory_info().rss
large = bytearray(24 << 20)
del large
blocks = [bytearray(b"x" * (7 << 20)) for _ in range(20)]
del blocks[::2]
print((psutil.Process().memory_info().rss - before) >> 20)
"""


def test_freed_memory_goes_back_to_the_system():
    kept = [
        int(subprocess.run([sys.executable, "-c", HOLES.format(call=call)], check=True, capture_output=True).stdout)
        for call in ("", "give_memory_back()")
    ]
    assert 65 <= kept[1] < 85, kept
    assert kept[0] > 120, "the C library gives memory back by itself; give_memory_back is not needed any more"
