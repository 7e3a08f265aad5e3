"""The binary codes of an index whose engine compares codes: a hash function, fixed when the first rows come."""

from __future__ import annotations

import threading
from pathlib import Path

import numpy as np

from neuroseqret.candidates.codes import HashFunction
from neuroseqret.candidates.finder import Vectors
from neuroseqret.candidates.hashes import load_hash
from neuroseqret.candidates.settings import CandidateSettings

HASH_FILE = "engine-hash.safetensors"


class EngineCodes:
    """Codes by the hash function in a file; it is fitted on the first embeddings if there is no file yet."""

    def __init__(self, file: Path, settings: CandidateSettings) -> None:
        self.file, self.settings = file, settings
        self._lock = threading.Lock()
        self._hash: HashFunction | None = None

    @property
    def bits(self) -> int:
        """Bits of a code as the engine holds it: whole words, of which the last bits may be unused."""
        return -(-self.settings.code_bits // 64) * 64

    def encode(self, embeddings: Vectors) -> list[bytes]:
        """Return one code per embedding."""
        codes = self._hash_for(embeddings).encode(embeddings)
        return [code.tobytes() for code in np.ascontiguousarray(codes, "<u8")]

    def fit(self, embeddings: Vectors) -> None:
        """Fit the hash function anew; codes that were made before are no longer comparable."""
        with self._lock:
            made = self.settings.new_hash().fit(embeddings)
            made.save(self.file)
            self._hash = made

    def _hash_for(self, embeddings: Vectors) -> HashFunction:
        if self._hash is None:
            if self.file.exists():
                self._hash = load_hash(self.file)
            else:
                self.fit(embeddings)
        assert self._hash is not None
        return self._hash
