"""New inputs from known ones: bytes changed, cut, doubled and mixed; numbers replaced by extreme ones."""

from __future__ import annotations

import random
import re
import struct

_WORDS = (
    b"\0",
    b"\xff",
    b"\n",
    b'"',
    b"'",
    b"\\",
    b",",
    b"{",
    b"[" * 200,
    b"(" * 200,
    b"\x1b[2J",
    b"\xe2\x80\xae",
    b"null",
)
_NUMBERS = (b"0", b"-1", b"1e9", b"1e308", b"1e999", b"nan", b"inf", b"9223372036854775808", b"-9223372036854775809")
_BINARY = (
    *(struct.pack("<I", value) for value in (0, 1, 2**31 - 1, 2**32 - 1)),
    *(struct.pack("<q", value) for value in (-1, 2**40, 2**63 - 1)),
    *(struct.pack("<d", value) for value in (0.0, -0.0, 1e300, -1e300, 5e-324, float("inf"), float("nan"))),
)
_DIGITS = re.compile(rb"-?[0-9]+(?:\.[0-9]+)?")


def mutated(seeds: tuple[bytes, ...], rng: random.Random) -> bytes:
    """Return an input made from the seeds by one to eight changes."""
    data = bytearray(rng.choice(seeds))
    for _ in range(rng.choice((1, 1, 1, 2, 4, 8))):
        at = rng.randrange(len(data) + 1)
        end = min(len(data), at + rng.choice((1, 1, 2, 4, 8, 64)))
        match rng.randrange(7):
            case 0 if data:
                data[min(at, len(data) - 1)] ^= 1 << rng.randrange(8)
            case 1:
                data[at:end] = rng.choice(_BINARY)[: end - at] or b"\0"
            case 2:
                data[at:at] = rng.choice(_WORDS)
            case 3:
                del data[at:end]
            case 4:
                data[at:at] = data[at:end] * rng.choice((1, 3, 100))
            case 5:
                other = rng.choice(seeds)
                cut = rng.randrange(len(other) + 1)
                data[at:] = other[cut:]
            case _:
                if numbers := list(_DIGITS.finditer(data)):
                    found = rng.choice(numbers)
                    data[found.start() : found.end()] = rng.choice(_NUMBERS)
    return bytes(data[: 1 << 16])
