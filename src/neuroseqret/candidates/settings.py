"""How candidates are found: the settings of all finders, fixed when an index is made."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from neuroseqret.candidates.bucket_tables import check_tables
from neuroseqret.candidates.codes import MAX_BITS, HashFunction, check_bits, check_eta
from neuroseqret.candidates.hashes import make_hash
from neuroseqret.errors import UserError

BITS = 64  # of a code
LEVELS = 16  # of a median tree
Method = Literal["auto", "exhaustive", "cells", "buckets", "hamming"]
Hash = Literal["network", "trees", "rotation", "hyperplanes"]


class CandidateSettings(BaseModel):
    """Which finder, and how much of the corpus it compares with a query."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    candidates: Method = "auto"
    fraction: float = 0.01  # share of the corpus to compare, and ...
    at_least: int = 2000  # ... the number of sequences to compare if that share is smaller
    hash: Hash | None = None  # None: `trees` for buckets, `network` for other codes; see `hash_name`
    hash_preset: str | None = None  # of the hash network
    hash_eta: tuple[float, float, float] | None = None  # its weights of the paper's three terms
    bits: int | None = None  # R, bits of a code; None: `BITS`, with trees `LEVELS` per table if that fits
    tables: int = 10  # M, number of bucket tables
    table_bits: int | None = None  # L, bits of a bucket table; None: chosen by corpus size and `fraction`

    def check(self) -> None:
        """Raise a `UserError` if the values cannot be used, alone or together; needs no hash function, so no torch."""
        check_share(self.fraction, self.at_least)
        if self.hash_eta is not None:
            check_eta(self.hash_eta)
        for name in ("hash_preset", "hash_eta"):
            if getattr(self, name) is not None and self.hash_name != "network":
                raise UserError(f"{name} works with the hash 'network' only, not with {self.hash!r}; leave it out")
        check_tables(MAX_BITS, self.tables, None)
        check_bits(self.code_bits)
        if self.hash_name != "trees":
            check_tables(self.code_bits, self.tables, self.table_bits)
            return
        if self.code_bits % self.tables:
            raise UserError(
                f"with the hash 'trees' every bucket table has a tree of its own, so the bits must be a multiple of "
                f"{self.tables} tables, not {self.bits}; leave out bits"
            )
        check_tables(self.code_bits // self.tables, self.tables, self.table_bits)

    @property
    def hash_name(self) -> Hash:
        """The hash function: for buckets, trees, which are above the others there (see docs/results.md).

        Their codes are paths, whose Hamming distance means less, so a scan of all codes takes the network.
        """
        if self.hash is not None:
            return self.hash
        of_network = self.hash_preset is not None or self.hash_eta is not None
        return "trees" if self.candidates == "buckets" and not of_network else "network"

    @property
    def code_bits(self) -> int:
        """Bits of a code."""
        if self.bits is not None:
            return self.bits
        return self.tables * min(LEVELS, MAX_BITS // self.tables) if self.hash_name == "trees" else BITS

    def new_hash(self) -> HashFunction:
        """Return the hash function of these settings, not fitted yet."""
        options: dict[str, Any] = {} if self.hash_preset is None else {"preset": self.hash_preset}
        if self.hash_eta is not None:
            options["eta"] = self.hash_eta
        if self.hash_name == "trees":
            options["levels"] = self.code_bits // self.tables
        return make_hash(self.hash_name, self.code_bits, **options)


def check_share(fraction: float, at_least: int) -> None:
    """Raise a `UserError` unless 0 < fraction <= 1 and at_least >= 1."""
    if not 0 < fraction <= 1 or at_least < 1:
        raise UserError(
            f"fraction must be above 0 and at most 1, and at_least 1 or more, not {fraction:g} and {at_least}"
        )
