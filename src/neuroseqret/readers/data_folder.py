"""Data folders: `corpus.parquet`, `queries.parquet`, optional `qrels.txt` and `meta.json`.

This is what `fit` and `evaluate` take. Sequences of the same `group` are relevant, unless `qrels.txt` says otherwise.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any

from neuroseqret.data.relevance import Relevance
from neuroseqret.data.sequences import EventSequences, IntArray
from neuroseqret.data.splits import SPLITS, split_rows_if_any
from neuroseqret.errors import DataError
from neuroseqret.readers.formats import canonical
from neuroseqret.readers.options import Options
from neuroseqret.readers.part_of_corpus import of_part, read_at_most, relevant_to
from neuroseqret.readers.trec import Qrels, read_qrels, write_qrels
from neuroseqret.readers.writing import Sequences
from neuroseqret.storage.files import new_folder
from neuroseqret.storage.reading import naming_path

CORPUS, QUERIES = canonical.FOLDER_FILES
QRELS, META = "qrels.txt", canonical.META
HOLDS = (CORPUS, QUERIES, QRELS, META)


@dataclass(frozen=True, repr=False)
class DataFolder:
    """A corpus, its queries and their relevance, as `fit` and `evaluate` take them.

    `queries` and `relevance` are None where there are none; `path` is None for data that is in memory only.
    """

    path: Path | None
    corpus: EventSequences
    queries: EventSequences | None = None
    relevance: Relevance | None = None
    meta: Mapping[str, Any] = field(default_factory=dict)

    def __repr__(self) -> str:
        lines = [f"DataFolder {self.name!r}", f"  corpus   {self.corpus!r}"]
        if self.queries is not None:
            splits = Counter(column.to_pylist() if (column := self.queries.column("split")) is not None else ())
            parts = ", ".join(f"{splits[name]:,} {name}" for name in SPLITS if splits[name])
            lines.append(f"  queries  {self.queries!r}{f': {parts}' if parts else ''}")
        return "\n".join(lines)

    @property
    def name(self) -> str:
        """The name in `meta`, else that of the folder."""
        return str(self.meta.get("name") or (self.path.resolve().name if self.path else "data in memory"))

    @property
    def raw_files(self) -> dict[str, Any]:
        """How the raw files are read, as told to `data prepare`: `columns` and `time_format`, where they are known."""
        asked = self.meta.get("asked")
        told = {name: asked.get(name) for name in ("columns", "time_format")} if isinstance(asked, dict) else {}
        return {name: value for name, value in told.items() if isinstance(value, (dict, str))}

    @property
    def train(self) -> IntArray:
        """Rows of the training queries."""
        return self.rows("train")

    @property
    def validation(self) -> IntArray:
        """Rows of the validation queries."""
        return self.rows("validation")

    @property
    def test(self) -> IntArray:
        """Rows of the test queries."""
        return self.rows("test")

    def rows(self, split: str) -> IntArray:
        """Return the rows of the queries in a split."""
        if split not in SPLITS:
            raise DataError(f"no split is called {split!r}", remedy=f"choose from {', '.join(SPLITS)}")
        if self.queries is None:
            raise DataError("has no queries", file=self.path, remedy=f"add {QUERIES}")
        if self.queries.column("split") is None:
            file = None if self.path is None else self.path / QUERIES
            raise DataError("the queries have no column 'split'", file=file, remedy="add one")
        return split_rows_if_any(self.queries, split)


@naming_path
def read_folder(path: str | PathLike[str], *, validate: bool = True, most_events: int | None = None) -> DataFolder:
    """Read and check a data folder; `queries` and `relevance` are None if the folder has none.

    Of a corpus with more than `most_events`, a random part is read.
    """
    folder = Path(path)
    if not (folder / CORPUS).is_file():
        why = f"{CORPUS} is missing" if folder.exists() else "there is no such folder"
        raise DataError(f"not a data folder ({why})", file=folder, remedy="see docs/formats.md")
    meta = canonical.read_meta(folder / META) if (folder / META).exists() else {}
    queries = canonical.read(folder / QUERIES, Options()) if (folder / QUERIES).exists() else None
    qrels: Qrels | None = read_qrels(folder / QRELS) if (folder / QRELS).exists() else None
    if most_events is None:
        corpus = canonical.read(folder / CORPUS, Options())
    else:
        corpus = read_at_most(folder / CORPUS, most_events, relevant_to(queries, qrels))
        qrels = None if qrels is None else of_part(qrels, corpus)
    if validate:
        corpus.validate(folder / CORPUS)
        if queries is not None:
            queries.validate(folder / QUERIES)
    try:
        relevance = _relevance(corpus, queries, qrels)
        _check_together(corpus, queries)
    except DataError as error:
        error.file = error.file or folder
        raise
    return DataFolder(folder, corpus, queries, relevance, meta)


def write_folder(
    path: str | PathLike[str],
    corpus: Sequences,
    queries: Sequences | None = None,
    qrels: Qrels | None = None,
    meta: Mapping[str, Any] | None = None,
) -> DataFolder:
    """Check the data and write a data folder, completely or not at all; an existing data folder is replaced."""
    checked = folder_of(corpus, queries, qrels, meta)
    corpus, queries = checked.corpus, checked.queries
    full = {**(meta or {}), "time_unit": corpus.time_unit, "mark_names": corpus.mark_names}
    full = {key: value for key, value in full.items() if value is not None}
    try:
        text = json.dumps(full, indent=1, ensure_ascii=False)
    except (TypeError, ValueError) as error:
        raise DataError(
            f"meta is not JSON ({error})", file=path, remedy="use only text, numbers, lists and dicts"
        ) from error
    with new_folder(path, *HOLDS) as temporary:
        canonical.write(corpus, temporary / CORPUS)
        if queries is not None:
            canonical.write(queries, temporary / QUERIES)
        if qrels is not None:
            write_qrels(qrels, temporary / QRELS)
        (temporary / META).write_text(text + "\n", encoding="utf-8")
    return DataFolder(Path(path), corpus, queries, checked.relevance, json.loads(text))


def folder_of(
    corpus: Sequences,
    queries: Sequences | None = None,
    qrels: Qrels | None = None,
    meta: Mapping[str, Any] | None = None,
) -> DataFolder:
    """Check the data and return it as a data folder that is in memory only."""
    corpus = EventSequences.of(corpus).validate()
    queries = None if queries is None else EventSequences.of(queries).validate()
    relevance = _relevance(corpus, queries, qrels)
    _check_together(corpus, queries)
    return DataFolder(None, corpus, queries, relevance, dict(meta or {}))


def _relevance(corpus: EventSequences, queries: EventSequences | None, qrels: Qrels | None) -> Relevance | None:
    """Return the relevance from qrels, else from groups, else None; groups on one side only are an error."""
    if queries is None:
        if qrels is not None:
            raise DataError("there are qrels but no queries", remedy=f"add {QUERIES}")
        return None
    if qrels is not None:
        return Relevance.from_qrels(queries, corpus, qrels)
    if corpus.groups is None and queries.groups is None:
        return None
    return Relevance.from_groups(queries, corpus)


def _check_together(corpus: EventSequences, queries: EventSequences | None) -> None:
    """Check corpus and queries together: same mark names and time unit, no common ids, known splits."""
    if queries is None:
        return
    if corpus.mark_names != queries.mark_names:
        raise DataError("corpus and queries have different mark names", remedy="number the marks alike")
    if corpus.time_unit != queries.time_unit:
        raise DataError(
            f"time is in {corpus.time_unit} in the corpus but in {queries.time_unit} in the queries",
            remedy="convert one of them",
        )
    if shared := set(corpus.ids.to_pylist()) & set(queries.ids.to_pylist()):
        raise DataError(
            "is in both corpus and queries", sequence=min(shared), remedy="rename one, as a query may not find itself"
        )
    if (split := queries.column("split")) is not None:
        for row, value in enumerate(split.to_pylist()):
            if value not in SPLITS:
                raise DataError(
                    f"split is {value!r}", sequence=queries.ids[row].as_py(), remedy=f"use {', '.join(SPLITS)}"
                )
