"""What is fuzzed: each target takes bytes from outside and returns, or raises the library's own error and no other."""

from __future__ import annotations

import atexit
import json
import shutil
import tempfile
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import neuroseqret as nsr
from fuzz import index_files, made, served
from neuroseqret import methods
from neuroseqret.errors import UserError
from neuroseqret.index.config import read_config
from neuroseqret.index.filters import Filter
from neuroseqret.models import model_folder
from neuroseqret.models.base import Embedder
from neuroseqret.readers import FORMATS
from neuroseqret.readers.trec import read_qrels, read_run

SCHEMA = pa.schema({"id": pa.string(), "age": pa.int64(), "score": pa.float64(), "role": pa.string(), "on": pa.bool_()})
WHERE = ["age >= 30 and not role = 'GK'", "role in ('a', 'b') or score < -1.5e3", "role like 'a%' and on is not null"]
MAPPINGS = [{"age": {">=": 30}, "role": {"<>": "GK"}}, {"or": [{"age": 1}, {"not": {"role": ["a", "b"]}}]}]


@dataclass(frozen=True)
class Target:
    """A function of bytes, and inputs that it accepts, from which others are made."""

    run: Callable[[bytes], None]
    seeds: tuple[bytes, ...]


@dataclass(frozen=True)
class Late:
    """A target that is made when it is first used: a process that fuzzes uses one of many."""

    make: Callable[[], Target]

    @cached_property
    def _made(self) -> Target:
        return self.make()

    @property
    def run(self) -> Callable[[bytes], None]:
        """What is fuzzed."""
        return self._made.run

    @property
    def seeds(self) -> tuple[bytes, ...]:
        """Inputs from which others are made."""
        return self._made.seeds


@cache
def room() -> Path:
    """A folder of this process for the files that targets read."""
    made = tempfile.mkdtemp(prefix="neuroseqret-fuzz-")
    atexit.register(shutil.rmtree, made, ignore_errors=True)
    return Path(made)


def some_sequences() -> nsr.EventSequences:
    rng = np.random.default_rng(1)
    rows = [(np.cumsum(rng.exponential(1, n)).tolist(), rng.integers(0, 3, n).tolist()) for n in (1, 4, 9, 20)]
    return nsr.EventSequences.from_lists(rows, ids=["a", "b", "c", "d"], groups=["x", "y", "x", "y"])


@cache
def _model() -> Path:
    corpus = some_sequences()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return methods.make("histogram").fit(None, corpus).save(room() / "model")


def _reader(name: str) -> Target | None:
    suffix = (*FORMATS[name].suffixes, ".bin")[0]
    path = room() / f"{name}{suffix}"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            nsr.write(some_sequences(), path, format=name)
        seed = path.read_bytes()
    except (UserError, OSError):
        return None

    def run(data: bytes) -> None:
        path.write_bytes(data)
        nsr.read(path, format=name, allow_pickle=True)

    return Target(run, (seed,))


def _sniffed(data: bytes) -> None:
    (room() / "unknown").write_bytes(data)
    nsr.read(room() / "unknown", allow_pickle=True)


def _trec(read: Callable[[Path], object]) -> Callable[[bytes], None]:
    def run(data: bytes) -> None:
        (room() / "trec").write_bytes(data)
        read(room() / "trec")

    return run


def _loaded(tensors: bytes | None, config: bytes | None) -> None:
    """Load a copy of the model with another file in it, hashed again as an attacker would, and use it."""
    folder = room() / "forged"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(_model(), folder)
    if tensors is not None:
        (folder / model_folder.TENSORS).write_bytes(tensors)
    text = config if config is not None else (folder / model_folder.CONFIG).read_bytes()
    try:
        found = json.loads(text)
        if isinstance(found, dict):
            found.pop(model_folder.CONFIG_HASH, None)
            found["tensors_blake2b"] = model_folder._hash(folder / model_folder.TENSORS)
            found[model_folder.CONFIG_HASH] = model_folder._hash_of_config(found)
            text = json.dumps(found).encode()
    except (ValueError, RecursionError):
        pass
    (folder / model_folder.CONFIG).write_bytes(text)
    methods.load(folder).score(some_sequences(), some_sequences())


def _index_config(data: bytes) -> None:
    (room() / "index.json").write_bytes(data)
    read_config(room())


def _for_columns(where: Any) -> None:
    if (condition := Filter.of(where)) is not None:
        condition.for_columns(SCHEMA)


def _filter_text(data: bytes) -> None:
    _for_columns(data.decode("utf-8", "surrogateescape"))


def _filter_mapping(data: bytes) -> None:
    try:
        where = json.loads(data)
    except (ValueError, RecursionError):
        return
    _for_columns(where)


@cache
def _embedder() -> Embedder:
    loaded = methods.load(_model())
    assert isinstance(loaded, Embedder)
    return loaded


def _query(data: bytes) -> None:
    """Times are the bytes as float64, marks the first bytes again."""
    times = np.frombuffer(data[: len(data) // 8 * 8])
    marks = np.frombuffer(data[: len(times)], np.uint8).astype(np.int32)
    _embedded(list(zip(times.tolist(), marks.tolist(), strict=True)))


def _embedded(events: list[tuple[float, int]]) -> None:
    """Whatever is valid has a finite embedding."""
    sequences = nsr.EventSequences.from_lists([tuple(zip(*events, strict=True)) or ([], [])]).validate()
    with np.errstate(all="ignore"):
        vectors = _embedder().embed(sequences, "query", unknown_marks="keep")
    assert np.isfinite(vectors).all(), "the embedding of a valid sequence is not finite"


def _made() -> dict[str, Callable[[bytes], None]]:
    """Return what uses tables, conditions and queries that are made from bytes."""

    def read(kind: str) -> Callable[[pa.Table], None]:
        return lambda table: (nsr.read(made.written(table, room(), kind)), None)[1]

    return {
        "read-made-long-parquet": made.from_bytes(made.long_tables(), read("parquet")),
        "read-made-long-csv": made.from_bytes(made.long_tables(), read("csv")),
        "read-made-lists-parquet": made.from_bytes(made.list_tables(), read("parquet")),
        "read-made-lists-jsonl": made.from_bytes(made.list_tables(), read("jsonl")),
        "filter-made-text": made.from_bytes(made.CONDITIONS, _for_columns),
        "filter-made-mapping": made.from_bytes(made.MAPPINGS, _for_columns),
        "query-made": made.from_bytes(made.QUERIES, _embedded),
    }


def _of_files(
    make: Callable[[Path, Embedder, nsr.EventSequences], tuple[Callable[[bytes], None], index_files.Changed]],
) -> Target:
    """Return files of an index that were changed."""
    run, changed = make(Path(tempfile.mkdtemp(dir=room())), _embedder(), some_sequences())
    return Target(run, changed.seeds)


@cache
def _server() -> served.Served:
    return served.Served(room() / "served", _embedder(), some_sequences())


def _structured(run: Callable[[bytes], None]) -> Target:
    """Return a target that makes something well-formed from bytes."""
    return Target(run, made.seeds(partial(_is_data, Target(run, ()))))


def _texts(values: list[str]) -> tuple[bytes, ...]:
    return tuple(value.encode() for value in values)


@cache
def targets() -> dict[str, Target | Late]:
    """All targets by name."""
    readers = {f"read-{name}": target for name in FORMATS if (target := _reader(name)) is not None}
    seeds = tuple(seed for target in readers.values() for seed in target.seeds)
    config = (_model() / model_folder.CONFIG).read_bytes()
    index = {"format": "neuroseqret-index", "format_version": 1, "model": "histogram", "dimension": 4, "settings": {}}
    return (
        readers
        | {name: Late(partial(_structured, run)) for name, run in _made().items()}
        | {
            "http": Late(lambda: Target(_server().ask, served.seeds(some_sequences()))),
            "http-made": Late(lambda: _structured(made.from_bytes(_server().requests(), _server().ask))),
            "index-structure": Late(lambda: _of_files(index_files.of_structures)),
            "index-store": Late(lambda: _of_files(index_files.of_store)),
            "read-sniffed": Target(_sniffed, seeds),
            "trec-qrels": Target(_trec(read_qrels), (b"q 0 d 1\nq 0 e 0\n",)),
            "trec-run": Target(_trec(read_run), (b"q Q0 d 1 2.5 t\nq Q0 e 2 -1e3 t\n",)),
            "model-tensors": Target(
                lambda data: _loaded(data, None), ((_model() / model_folder.TENSORS).read_bytes(),)
            ),
            "model-config": Target(lambda data: _loaded(None, data), (config,)),
            "index-config": Target(_index_config, (json.dumps(index).encode(),)),
            "filter-text": Target(_filter_text, _texts(WHERE)),
            "filter-mapping": Target(_filter_mapping, _texts([json.dumps(where) for where in MAPPINGS])),
            "query": Target(_query, (np.array([0.0, 1.0, 1.0, 2.5, 1e9]).tobytes(), np.array([1e300]).tobytes())),
        }
    )


def _is_data(target: Target | Late, data: bytes) -> bool:
    return outcome(target, data) == "data"


def outcome(target: Target | Late, data: bytes) -> str:
    """Run a target: `data` if it returned, `refused` if it raised the library's error; anything else is a finding."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            target.run(data)
    except UserError as error:
        if "\n" in str(error):
            raise AssertionError("an error of more than one line") from error
        return "refused"
    return "data"
