"""The engine on a Milvus server: `milvus://host:19530/collection`.

Vectors are floats under HNSW with the dot product; with `candidates="hamming"` they are binary codes under
BIN_IVF_FLAT with the Hamming distance, and the best candidates are compared by their embeddings here. It keeps to what
servers 2.3 to 3.0 and Milvus Lite have in common.

Options of the address: `consistency` (`session`: a process sees its own writes at once; `bounded`, `eventually`: within
seconds, cheapest; `strong`: every write of everybody, about 0.2 s per search), `tls` (`on`, or the file of the
certificate authority), `database`. User and password, or an API key, come from NEUROSEQRET_MILVUS_TOKEN.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from neuroseqret.candidates.finder import Rows, Vectors
from neuroseqret.errors import MissingExtraError, UserError
from neuroseqret.index.config import IndexConfig
from neuroseqret.index.engines.address import Address, token, token_variable
from neuroseqret.index.engines.codes import EngineCodes
from neuroseqret.index.engines.engine import Candidates
from neuroseqret.index.engines.milvus_filter import ID, VALUES, to_expression
from neuroseqret.index.engines.milvus_rows import CODE, LONGEST, check_rows, to_entities, to_record, to_vectors
from neuroseqret.index.filters.tree import Condition
from neuroseqret.index.rows import embeddings_of
from neuroseqret.index.store import EMBEDDING, KEY, SERIAL

TIMEOUT = 60.0  # seconds that a call may take
_CONNECT = 10.0
_PAGE = 16_000  # rows of one query; the server gives at most 16,384
_INSERT_BYTES = 2 << 20  # of vectors in one message; the server takes 64 MB
_AT_ONCE = 3  # messages: while the server works on one, pymilvus makes the next one ready
_EF = 128  # candidates that HNSW keeps on its way, unless more are wanted
_LISTS, _PROBED = 128, 32  # inverted lists of the binary codes, and how many of them a search reads
_LEVELS = ("session", "bounded", "eventually", "strong")


class MilvusEngine:
    """A collection of a Milvus server."""

    most = 16_384

    def __init__(self, address: Address, config: IndexConfig, hash_file: Path) -> None:
        self.address, self.config = address, config
        self._level = address.option("consistency", *_LEVELS).capitalize()
        candidates = config.settings.candidates
        if candidates not in ("auto", "hamming"):
            raise UserError(
                f"{address}: candidates={candidates!r} is a structure of this library, which Milvus does not have; "
                "leave it out for float vectors, or choose 'hamming' for binary codes"
            )
        self._codes = EngineCodes(hash_file, config.settings) if candidates == "hamming" else None
        self.method = "milvus" if self._codes is None else "milvus-hamming"
        self._client = self._connect()
        with self._explained():
            self._lists = not str(self._client.get_server_version()).startswith("milvus_lite")

    # ---------------------------------------------------------------- the collection

    def missing(self) -> bool:
        with self._explained():
            if not self._client.has_collection(self.address.collection):
                return True
            self._check_owner()
            self._client.load_collection(self.address.collection)
            return False

    def make(self) -> None:
        from pymilvus import DataType, MilvusClient

        with self._explained():
            if self._client.has_collection(self.address.collection):
                raise UserError(f"{self.address}: there is such a collection already; choose another name or drop it")
            schema = MilvusClient.create_schema(auto_id=False, enable_dynamic_field=False, description=self._owner)
            schema.add_field(SERIAL, DataType.INT64, is_primary=True)
            schema.add_field(KEY, DataType.INT64)
            schema.add_field(ID, DataType.VARCHAR, max_length=LONGEST)
            schema.add_field(VALUES, DataType.JSON)
            indexes = self._client.prepare_index_params()
            if self._codes is None:
                schema.add_field(EMBEDDING, DataType.FLOAT_VECTOR, dim=self.config.dimension)
                indexes.add_index(
                    EMBEDDING, index_type="HNSW", metric_type="IP", params={"M": 16, "efConstruction": 128}
                )
            else:
                schema.add_field(EMBEDDING, DataType.VARCHAR, max_length=LONGEST)
                schema.add_field(CODE, DataType.BINARY_VECTOR, dim=self._codes.bits)
                indexes.add_index(CODE, index_type="BIN_IVF_FLAT", metric_type="HAMMING", params={"nlist": _LISTS})
            self._client.create_collection(
                self.address.collection, schema=schema, index_params=indexes, consistency_level=self._level
            )

    def clear(self) -> None:
        with self._explained():
            self._client.drop_collection(self.address.collection)

    def learn(self, embeddings: Vectors) -> None:
        if self._codes is not None and len(embeddings):
            self._codes.fit(embeddings)

    def tidy(self) -> None:
        with self._explained():
            self._client.flush(self.address.collection, timeout=10 * TIMEOUT)

    @property
    def _owner(self) -> str:
        return f"neuroseqret index {self.config.identity}"

    def _check_owner(self) -> None:
        """Raise a `UserError` if the collection is not that of this index."""
        found = self._client.describe_collection(self.address.collection)
        fields = {field["name"] for field in found["fields"]}
        told = found.get("description") or self._owner  # Milvus Lite does not keep it
        if told != self._owner or not {SERIAL, KEY, ID, VALUES} <= fields:
            raise UserError(
                f"{self.address}: the collection does not belong to this index; make the index again with another name"
            )

    # ---------------------------------------------------------------- search

    def expression(self, condition: Condition) -> str:
        return to_expression(condition, self._lists)

    def best(
        self,
        vector: Vectors,
        number: int,
        schema: pa.Schema,
        condition: str = "",
        without_key: int | None = None,
        at_least: int | None = None,
    ) -> Candidates:
        parts = [f"({condition})"] if condition else []
        if without_key is not None:
            parts.append(f"{KEY} != {without_key}")
        number = min(number, self.most)
        wanted = number
        if self._codes is not None:
            wanted = min(max(number, at_least or self.config.settings.at_least), self.most)
        fields = [SERIAL, ID, VALUES] if self._codes is None else [SERIAL, ID, VALUES, EMBEDDING]
        with self._explained():
            found = self._client.search(
                self.address.collection,
                [vector] if self._codes is None else self._codes.encode(vector[None]),
                filter=" and ".join(parts),
                limit=wanted,
                output_fields=fields,
                search_params={"params": self._search_params(wanted, at_least)},
                anns_field=EMBEDDING if self._codes is None else CODE,
                timeout=TIMEOUT,
                consistency_level=self._level,
            )[0]
        entities = [hit["entity"] for hit in found]
        if self._codes is None:
            scores = np.array([hit["distance"] for hit in found], np.float32)
        else:
            scores = (to_vectors(entities, True) @ vector if entities else np.empty(0)).astype(np.float32)
        order = np.argsort(-scores, kind="stable")[:number]
        return Candidates(
            np.array([entities[at][SERIAL] for at in order], np.int64),
            scores[order],
            [to_record(entities[at], schema) for at in order],
            len(entities),
        )

    def _search_params(self, wanted: int, at_least: int | None) -> dict[str, int]:
        if self._codes is not None:
            return {"nprobe": _PROBED}
        return {"ef": min(max(_EF, 2 * wanted, at_least or 0), 32_768)}

    def vectors(self, serials: Rows) -> Vectors:
        if not len(serials):
            return np.empty((0, self.config.dimension), np.float32)
        found: dict[int, Any] = {}
        with self._explained():
            for begin in range(0, len(serials), 1000):
                some = ", ".join(map(str, serials[begin : begin + 1000].tolist()))
                for row in self._client.query(
                    self.address.collection, filter=f"{SERIAL} in [{some}]", output_fields=[SERIAL, EMBEDDING]
                ):
                    found[row[SERIAL]] = row
        if missing := [serial for serial in serials.tolist() if serial not in found]:
            raise UserError(f"{self.address}: {len(missing)} rows were removed during the search; search again")
        return to_vectors([found[serial] for serial in serials.tolist()], self._codes is not None)

    # ---------------------------------------------------------------- change

    def check(self, rows: pa.Table) -> None:
        check_rows(rows)

    def prepare(self, rows: pa.Table) -> list[list[dict[str, Any]]]:
        codes = None
        if self._codes is not None:
            codes = self._codes.encode(embeddings_of(rows.column(EMBEDDING).combine_chunks(), self.config.dimension))
        step = max(1, _INSERT_BYTES // (4 * self.config.dimension + 512))
        parts = []
        for begin in range(0, rows.num_rows, step):
            some = None if codes is None else codes[begin : begin + step]
            parts.append(to_entities(rows.slice(begin, step), self.config.dimension, some))
        return parts

    def insert(self, prepared: list[list[dict[str, Any]]], again: bool = False) -> None:
        call = self._client.upsert if again else self._client.insert
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            sent = [pool.submit(call, self.address.collection, entities, timeout=TIMEOUT) for entities in prepared]
            for one in sent:
                with self._explained():
                    one.result()

    def delete(self, serials: Rows) -> None:
        with self._explained():
            for begin in range(0, len(serials), _PAGE):
                self._client.delete(
                    self.address.collection, ids=serials[begin : begin + _PAGE].tolist(), timeout=TIMEOUT
                )

    # ---------------------------------------------------------------- compare

    def count(self, low: int = 0, high: int = 2**63 - 1) -> int:
        with self._explained():
            found = self._client.query(
                self.address.collection,
                filter=f"{SERIAL} >= {low} and {SERIAL} <= {high}",
                output_fields=["count(*)"],
                consistency_level="Strong",
                timeout=TIMEOUT,
            )
        return int(found[0]["count(*)"])

    def serials(self) -> Rows:
        self.count()  # waits until every write can be seen; the pages below need not wait again
        pages, last = [np.empty(0, np.int64)], -1
        while True:
            with self._explained():
                found = self._client.query(
                    self.address.collection,
                    filter=f"{SERIAL} > {last}",
                    output_fields=[SERIAL],
                    limit=_PAGE,
                    consistency_level="Eventually",
                    timeout=TIMEOUT,
                )
            pages.append(np.sort(np.array([row[SERIAL] for row in found], np.int64)))
            if not found:  # a page may be short: the server counts a row that is there twice, and gives it once
                return np.concatenate(pages)
            last = int(pages[-1][-1])

    # ---------------------------------------------------------------- connection

    def _connect(self) -> Any:
        try:
            from pymilvus import MilvusClient
        except ImportError as error:
            raise MissingExtraError("pymilvus", "milvus", "the engine milvus") from error
        # Every error is raised as well; the log would show it a second time, with a traceback.
        logging.getLogger("pymilvus").setLevel(logging.CRITICAL)
        # The library's pings, every 10 s, are more than a server accepts by default; it would close the connection.
        address, options = self.address, dict[str, Any](grpc_options={"grpc.keepalive_time_ms": 300_000})
        if address.file:
            uri = address.file
        else:
            tls = address.options.get("tls", "off")
            uri = f"{'http' if tls == 'off' else 'https'}://{address.host}:{address.port or 19530}"
            if tls not in ("on", "off"):
                if not Path(tls).is_file():
                    raise UserError(f"{address}: tls must be on, off or the file of a certificate authority, not {tls}")
                options["server_pem_path"] = tls
        if "database" in address.options:
            options["db_name"] = address.options["database"]
        with self._explained():
            return MilvusClient(uri, token=token(address.scheme), timeout=_CONNECT, **options)

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Turn errors of Milvus into one line that says what the user can do."""
        from grpc import RpcError
        from pymilvus.exceptions import MilvusException

        try:
            yield
        except UserError:
            raise
        except (MilvusException, RpcError, ConnectionError, TimeoutError, ValueError) as error:
            raise UserError(f"{self.address}: {self._told(error)}") from None  # the cause may show the credentials

    def _told(self, error: BaseException) -> str:
        text = " ".join((getattr(error, "message", None) or str(error)).split())[:300]
        if error.__cause__ is not None:  # why there is no connection
            text += " " + " ".join(str(error.__cause__).split())[:600]
        secret = token(self.address.scheme)
        for part in (secret, *secret.split(":", 1)[1:]):
            text = text.replace(part, "***") if part else text
        lower = text.lower()
        if "auth" in lower and any(word in lower for word in ("fail", "denied", "not", "check")):
            how = "does not accept it" if secret else "asks for user and password"
            return f"Milvus {how}; set the environment variable {token_variable(self.address.scheme)} to user:password"
        if "connecting to server" in lower or "unavailable" in lower or "refused" in lower:
            return "no Milvus server answers; check the address, that the server runs, and whether it wants tls=on"
        if "deadline" in lower or "timeout" in lower or "timed out" in lower:
            return "Milvus did not answer in time; try again when it is less busy"
        if "collection not found" in lower or "can't find collection" in lower:
            return "the collection is gone; fill it again from the index with 'neuroseqret index sync'"
        return f"Milvus refuses: {text[:300]}"
