"""`hamming` and `buckets`: candidates by hash code.

`hamming` scans all codes and takes the nearest. `buckets` takes the union of the query's buckets. Where groups of
sequences fill whole buckets, a union can be many times larger than wanted; the rows with the nearest codes are kept.
"""

from __future__ import annotations

import threading
from pathlib import Path

import numpy as np
import numpy.typing as npt
from typing_extensions import Self

from neuroseqret.candidates.arrays import are_as_written, open_array
from neuroseqret.candidates.bucket_tables import BucketTables, Workspace
from neuroseqret.candidates.codes import Codes, HashFunction, pack_bits
from neuroseqret.candidates.finder import ALL, Finder, Found, Mask, Order, Vectors, space_for
from neuroseqret.candidates.hamming import nearest_codes, nearest_of
from neuroseqret.candidates.hashes import load_hash
from neuroseqret.candidates.scoring import best_rows, suited
from neuroseqret.candidates.settings import CandidateSettings

HASH_FILE, CODES_FILE = "hash.safetensors", "codes.npy"
_FITTED_ON = 262_144  # rows that the hash function learns from


class HammingFinder(Finder):
    """The rows with the nearest codes, by a scan of all codes."""

    method = "hamming"

    def __init__(self, embeddings: Vectors, hash_function: HashFunction, codes: Codes) -> None:
        self.embeddings, self.hash, self.codes = embeddings, hash_function, codes

    @classmethod
    def write(cls, folder: Path, embeddings: Vectors, settings: CandidateSettings) -> Order:
        cls._write_codes(folder, embeddings, settings)
        return np.arange(len(embeddings), dtype=np.int32)

    @staticmethod
    def _write_codes(folder: Path, embeddings: Vectors, settings: CandidateSettings) -> tuple[HashFunction, Codes]:
        """Fit and save the hash function, save the codes of all rows; return both."""
        hash_function = settings.new_hash().fit(embeddings[:_FITTED_ON])
        hash_function.save(folder / HASH_FILE)
        codes = hash_function.encode(embeddings)
        np.save(folder / CODES_FILE, codes)
        return hash_function, codes

    @classmethod
    def open(cls, folder: Path, embeddings: Vectors) -> Self:
        return cls(embeddings, load_hash(folder / HASH_FILE), open_array(folder / CODES_FILE))

    def fits(self, n: int, dimension: int) -> bool:
        bits = self.hash.bits
        written = are_as_written(
            [(self.embeddings, (n, dimension), np.float32), (self.codes, (n, -(-bits // 64)), np.uint64)]
        )
        return written and self.hash.margins(self.embeddings[:1]).shape == (1, bits)

    @property
    def nbytes(self) -> int:
        return self.embeddings.nbytes + self.codes.nbytes + self.hash.nbytes

    def best(self, vector: Vectors, number: int, wanted: int, allowed: Mask = ALL) -> Found:
        margins = self.hash.margins(vector[None])[0]
        candidates = self.candidates(pack_bits(margins[None] > 0)[0], margins, wanted)
        rows, scores = space_for(number)
        kept = suited(best_rows, len(candidates) * len(vector))(
            self.embeddings, vector, candidates, allowed, scores, rows
        )
        compared = len(candidates) if not len(allowed) else int(allowed[candidates].sum())
        return Found(rows[:kept].astype(np.int64), scores[:kept], compared, self.method)

    def candidates(self, code: npt.NDArray[np.uint64], margins: Vectors, wanted: int) -> npt.NDArray[np.int32]:
        """Return `wanted` rows for a query's code and margins, or all rows if there are fewer."""
        return nearest_codes(self.codes, code, wanted)


class BucketFinder(HammingFinder):
    """The rows of the query's buckets, cut down by code; the scan of all codes where buckets hold too few."""

    method = "buckets"

    def __init__(self, embeddings: Vectors, hash_function: HashFunction, codes: Codes, tables: BucketTables) -> None:
        super().__init__(embeddings, hash_function, codes)
        self.tables = tables
        self._per_thread = threading.local()  # holds the workspace of each searching thread

    @classmethod
    def write(cls, folder: Path, embeddings: Vectors, settings: CandidateSettings) -> Order:
        hash_function, codes = cls._write_codes(folder, embeddings, settings)
        tables = BucketTables.build(
            codes,
            hash_function.bits,
            settings.tables,
            settings.table_bits,
            target=settings.fraction,
            positions=hash_function.table_positions(settings.tables),
        )
        tables.save(folder)
        return np.arange(len(embeddings), dtype=np.int32)

    @classmethod
    def open(cls, folder: Path, embeddings: Vectors) -> Self:
        codes = open_array(folder / CODES_FILE)
        return cls(embeddings, load_hash(folder / HASH_FILE), codes, BucketTables.open(folder))

    def fits(self, n: int, dimension: int) -> bool:
        return super().fits(n, dimension) and self.tables.fits(n, self.hash.bits)

    @property
    def nbytes(self) -> int:
        return super().nbytes + self.tables.nbytes

    def candidates(self, code: npt.NDArray[np.uint64], margins: Vectors, wanted: int) -> npt.NDArray[np.int32]:
        if not hasattr(self._per_thread, "workspace"):
            self._per_thread.workspace = Workspace.of(len(self.codes))
        found = self.tables.candidates(code, margins, wanted, workspace=self._per_thread.workspace)
        if len(found) < min(wanted, len(self.codes)):
            return super().candidates(code, margins, wanted)
        return nearest_of(self.codes, code, found, wanted)
