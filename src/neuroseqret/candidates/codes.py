"""Hash codes: what every hash function does, and how R bits lie in 64-bit words.

A hash function has R real-valued margins m_1(v), ..., m_R(v); bit r of the code is 1 where m_r(v) > 0, and |m_r(v)|
says how certain the bit is (multi-probe flips the least certain ones first). Bit r of a code lies in word r // 64
at position r % 64; unused high bits are 0.
"""

from __future__ import annotations

import json
import os
from abc import ABC, abstractmethod
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file
from typing_extensions import Self

from neuroseqret.errors import UserError

Vectors = npt.NDArray[np.float32]
Codes = npt.NDArray[np.uint64]

FORMAT, FORMAT_VERSION = "neuroseqret-hash", "1"


def pack_bits(bits: npt.NDArray[np.bool_]) -> Codes:
    """(n, R) booleans to (n, ceil(R / 64)) words.

    >>> pack_bits(np.array([[True, False, True]]))
    array([[5]], dtype=uint64)
    """
    n, r = bits.shape
    padded = np.zeros((n, -(-r // 64) * 64), bool)
    padded[:, :r] = bits
    return np.packbits(padded, axis=1, bitorder="little").view("<u8")


def unpack_bits(codes: Codes, bits: int) -> npt.NDArray[np.bool_]:
    """(n, words) codes to (n, bits) booleans; the inverse of `pack_bits`."""
    octets = np.ascontiguousarray(codes, dtype="<u8").view(np.uint8)
    return np.unpackbits(octets, axis=1, bitorder="little")[:, :bits].astype(bool)


class HashFunction(ABC):
    """Unit vectors (n, D) to codes of R bits."""

    name: ClassVar[str]
    #: Raised by hand when what the hash function computes changes; kept with every result (see tests/golden).
    version: ClassVar[int] = 1

    def __init__(self, bits: int = 64) -> None:
        if not 1 <= bits <= 1024:
            raise UserError(f"a hash code has 1 to 1024 bits, not {bits}")
        self.bits = bits

    @abstractmethod
    def fit(self, embeddings: Vectors, *, seed: int = 0) -> Self:
        """Learn from the corpus' embeddings (or a sample of them)."""

    @abstractmethod
    def margins(self, embeddings: Vectors) -> Vectors:
        """(n, R) real values whose signs are the bits."""

    @abstractmethod
    def _state(self) -> dict[str, npt.NDArray[Any]]:
        """Everything that `fit` learned, as arrays."""

    @abstractmethod
    def _restore(self, state: dict[str, npt.NDArray[Any]]) -> None:
        """The inverse of `_state`."""

    def settings(self) -> dict[str, Any]:
        """The constructor's arguments."""
        return {"bits": self.bits}

    def encode(self, embeddings: Vectors, chunk: int = 65536) -> Codes:
        """(n, ceil(R / 64)) words, computed in chunks so that the margins of a large corpus are never all there."""
        codes = np.zeros((len(embeddings), -(-self.bits // 64)), np.uint64)
        for begin in range(0, len(embeddings), chunk):
            part = slice(begin, begin + chunk)
            codes[part] = pack_bits(self.margins(np.asarray(embeddings[part])) > 0)
        return codes

    def save(self, file: str | PathLike[str]) -> Path:
        """Write one safetensors file, complete or not at all."""
        path = Path(file)
        temporary = path.with_name(f".{path.name}.{os.getpid()}")
        head = {
            "format": FORMAT,
            "format_version": FORMAT_VERSION,
            "hash": self.name,
            "settings": json.dumps(self.settings()),
        }
        try:
            save_file({k: np.ascontiguousarray(v) for k, v in self._state().items()}, temporary, metadata=head)
            os.replace(temporary, path)
        finally:
            temporary.unlink(missing_ok=True)
        return path


def check_embeddings(embeddings: Vectors) -> Vectors:
    """A finite float32 matrix with at least one row, or one clear error."""
    matrix = np.ascontiguousarray(embeddings, dtype=np.float32)
    if matrix.ndim != 2 or not len(matrix):
        raise UserError(f"a hash function is fitted on a matrix of embeddings, not on shape {matrix.shape}")
    if not np.isfinite(matrix).all():
        row = int(np.flatnonzero(~np.isfinite(matrix).all(1))[0])
        raise UserError(f"embedding {row} is not finite; check the model that made it")
    return matrix


def read_hash(file: str | PathLike[str], kinds: dict[str, type[HashFunction]]) -> HashFunction:
    """The hash function in a file, whichever of `kinds` it is."""
    try:
        with safe_open(file, framework="numpy") as opened:
            head = opened.metadata() or {}
            state = {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118 (not a dict)
    except (SafetensorError, OSError) as error:
        raise UserError(f"{file}: not a readable hash file ({error})") from error
    if head.get("format") != FORMAT or head.get("hash") not in kinds:
        raise UserError(f"{file}: not a hash file of neuroseqret")
    if head.get("format_version") != FORMAT_VERSION:
        raise UserError(
            f"{file}: format version {head.get('format_version')}, this library reads {FORMAT_VERSION}; "
            "install the library version that wrote it"
        )
    made = kinds[head["hash"]](**json.loads(head["settings"]))
    made._restore(state)
    return made
