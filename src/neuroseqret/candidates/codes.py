"""Hash codes: the contract of a hash function, and how R bits lie in 64-bit words.

A hash function has R real-valued margins m_1(v), ..., m_R(v). Bit r of the code is 1 if m_r(v) > 0, and |m_r(v)| says
how certain the bit is (multi-probe flips the least certain bits first). Bit r of a code is in word r // 64 at position
r % 64; unused high bits are 0.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save
from typing_extensions import Self

from neuroseqret.errors import UserError
from neuroseqret.storage.files import new_file

Vectors = npt.NDArray[np.float32]
Codes = npt.NDArray[np.uint64]
Rows = npt.NDArray[np.int32]

MAX_BITS = 1024
FORMAT, FORMAT_VERSION = "neuroseqret-hash", "1"


def pack_bits(bits: npt.NDArray[np.bool_]) -> Codes:
    """Pack (n, R) booleans into (n, ceil(R / 64)) words.

    >>> pack_bits(np.array([[True, False, True]]))
    array([[5]], dtype=uint64)
    """
    n, r = bits.shape
    padded = np.zeros((n, -(-r // 64) * 64), bool)
    padded[:, :r] = bits
    return np.packbits(padded, axis=1, bitorder="little").view("<u8")


def unpack_bits(codes: Codes, bits: int) -> npt.NDArray[np.bool_]:
    """Unpack (n, words) codes into (n, bits) booleans; the inverse of `pack_bits`."""
    octets = np.ascontiguousarray(codes, dtype="<u8").view(np.uint8)
    return np.unpackbits(octets, axis=1, bitorder="little")[:, :bits].astype(bool)


def check_bits(bits: int) -> None:
    """Raise a `UserError` if codes cannot have this many bits."""
    if not 1 <= bits <= MAX_BITS:
        raise UserError(f"a hash code must have 1 to {MAX_BITS} bits, not {bits}")


def check_eta(eta: tuple[float, float, float]) -> None:
    """Raise a `UserError` if these cannot be the weights of the paper's three terms."""
    if len(eta) != 3 or min(eta) < 0 or abs(sum(eta) - 1) > 1e-6:
        raise UserError(f"eta must be three weights that are not negative and sum to 1, not {eta}")


class HashFunction(ABC):
    """Turns unit vectors (n, D) into codes of R bits."""

    name: ClassVar[str]
    #: Raised by hand when what the hash function computes changes.
    version: ClassVar[int] = 1

    def __init__(self, bits: int = 64) -> None:
        check_bits(bits)
        self.bits = bits

    @abstractmethod
    def fit(self, embeddings: Vectors, *, seed: int = 0) -> Self:
        """Learn from the embeddings of the corpus, or from a sample of them."""

    @abstractmethod
    def margins(self, embeddings: Vectors) -> Vectors:
        """Return (n, R) real values whose signs are the bits."""

    @abstractmethod
    def _state(self) -> dict[str, npt.NDArray[Any]]:
        """Return everything that `fit` learned, as arrays."""

    @abstractmethod
    def _restore(self, state: dict[str, npt.NDArray[Any]]) -> None:
        """Take over what `_state` returned."""

    def settings(self) -> dict[str, Any]:
        """Return the constructor's arguments."""
        return {"bits": self.bits}

    def table_positions(self, tables: int, seed: int = 0) -> Rows:
        """Return the bits that each bucket table looks at, most important first: (tables, at most R)."""
        rng = np.random.default_rng(seed)
        return np.stack([rng.permutation(self.bits) for _ in range(tables)]).astype(np.int32)

    def encode(self, embeddings: Vectors, chunk: int = 65536) -> Codes:
        """Return the codes, (n, ceil(R / 64)) words, computed in chunks: margins take 32 times their memory."""
        codes = np.zeros((len(embeddings), -(-self.bits // 64)), np.uint64)
        for begin in range(0, len(embeddings), chunk):
            part = slice(begin, begin + chunk)
            codes[part] = pack_bits(self.margins(np.asarray(embeddings[part])) > 0)
        return codes

    def save(self, file: str | PathLike[str]) -> Path:
        """Write one safetensors file, complete or not at all; return its path."""
        head = {
            "format": FORMAT,
            "format_version": FORMAT_VERSION,
            "hash": self.name,
            "settings": json.dumps(self.settings()),
        }
        state = {name: np.ascontiguousarray(array) for name, array in self._state().items()}
        with new_file(file) as temporary:
            temporary.write_bytes(save(state, metadata=head))
        return Path(file)

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes for array in self._state().values())


def check_embeddings(embeddings: Vectors) -> Vectors:
    """Return the embeddings as a float32 matrix; raise a `UserError` if there are none or one is not finite."""
    matrix = np.ascontiguousarray(embeddings, dtype=np.float32)
    if matrix.ndim != 2 or not len(matrix):
        raise UserError(f"a hash function needs a matrix with one embedding per row, not the shape {matrix.shape}")
    if not np.isfinite(matrix).all():
        row = int(np.flatnonzero(~np.isfinite(matrix).all(1))[0])
        raise UserError(f"embedding {row} is not finite; check the model that made it and the times of the sequence")
    return matrix


def read_hash(
    file: str | PathLike[str], kinds: Collection[str], class_of: Callable[[str], type[HashFunction]]
) -> HashFunction:
    """Read a hash function of one of the given kinds from a file; `class_of` gives the class of a kind."""
    try:
        with safe_open(file, framework="numpy") as opened:
            head = opened.metadata() or {}
            state = {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118 (not a dict)
    except (SafetensorError, OSError) as error:
        raise UserError(f"{file}: not a readable hash file ({error}); fit and save the hash function again") from error
    if head.get("format") != FORMAT or head.get("hash") not in kinds:
        raise UserError(f"{file}: not a hash file of neuroseqret; name a file that save wrote")
    if head.get("format_version") != FORMAT_VERSION:
        raise UserError(
            f"{file}: format version {head.get('format_version')}, this library reads {FORMAT_VERSION}; "
            "install the library version that wrote it"
        )
    made = class_of(head["hash"])(**json.loads(head["settings"]))
    made._restore(state)
    return made
