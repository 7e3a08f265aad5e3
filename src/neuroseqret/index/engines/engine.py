"""`Engine`: the contract of a server that an index hands the search for candidates to."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa

from neuroseqret.candidates.finder import Rows, Vectors
from neuroseqret.index.config import IndexConfig
from neuroseqret.index.engines.address import Address, parse_address
from neuroseqret.index.filters.tree import Condition

#: The class of every engine, and the options that its address may have.
ENGINES: dict[str, tuple[str, tuple[str, ...]]] = {
    "milvus": ("neuroseqret.index.engines.milvus:MilvusEngine", ("consistency", "tls", "database")),
}


@dataclass(frozen=True)
class Candidates:
    """The rows that an engine found, best first."""

    serials: Rows
    scores: Vectors  # dot products
    records: list[dict[str, Any]]  # id, group, window, metadata
    compared: int  # rows that came over the network


class Engine(Protocol):
    """A copy of the rows of an index that a server searches. Rows are identified by their serials.

    Every method raises a `UserError` that names the address and the remedy if the server cannot do it.
    """

    address: Address
    method: str  # how it finds candidates, for `SearchReport`
    most: int  # candidates that one search can return

    def expression(self, condition: Condition) -> str:
        """Return a condition as the engine writes it; raise `Unusable` if it cannot."""

    def best(
        self,
        vector: Vectors,
        number: int,
        schema: pa.Schema,
        condition: str = "",
        without_key: int | None = None,
        at_least: int | None = None,
    ) -> Candidates:
        """Return the rows nearest to a unit vector that meet the condition, none of them with the key.

        `schema` has the columns of the store; `at_least` is how many candidates to look at, where that can be chosen.
        """

    def vectors(self, serials: Rows) -> Vectors:
        """Return the embeddings of rows that are there: (rows, D)."""

    def check(self, rows: pa.Table) -> None:
        """Raise a `DataError` if the server cannot take one of these rows of the store, which may be too large."""

    def prepare(self, rows: pa.Table) -> Any:
        """Return rows of the store, which were checked, as the server takes them."""

    def insert(self, prepared: Any, again: bool = False) -> None:
        """Add what `prepare` returned; `again` if some of it may be there already."""

    def delete(self, serials: Rows) -> None:
        """Remove rows, all copies of them."""

    def serials(self) -> Rows:
        """Return the serials of all rows, each once, in ascending order."""

    def count(self, low: int = 0, high: int = 2**63 - 1) -> int:
        """Return the number of rows with a serial from `low` to `high`; one that is there twice counts twice."""

    def missing(self) -> bool:
        """Return whether the collection is gone, and there is nothing to search."""

    def make(self) -> None:
        """Make the collection, empty."""

    def clear(self) -> None:
        """Remove the collection with everything in it."""

    def learn(self, embeddings: Vectors) -> None:
        """Learn anew what depends on the corpus, such as a hash function; the collection must be filled again then."""

    def tidy(self) -> None:
        """Let the server merge and index what was added."""


def open_engine(address: str, config: IndexConfig, hash_file: Path) -> Engine:
    """Connect to the engine of an index; `hash_file` is for the hash function of binary codes."""
    parsed = check_address(address)
    module, _, name = ENGINES[parsed.scheme][0].partition(":")
    made: Engine = getattr(import_module(module), name)(parsed, config, hash_file)
    return made


def check_address(address: str) -> Address:
    """Return the address, taken apart; raise a `UserError` if it cannot be used."""
    return parse_address(address, {scheme: options for scheme, (_, options) in ENGINES.items()})
