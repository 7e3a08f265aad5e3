"""TREC text files: qrels (relevance judgements) and runs (ranked results).

A line of qrels is `query 0 document grade`, a line of a run `query Q0 document rank score tag`. Fields are separated by
white space, so ids must not contain any.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from os import PathLike
from pathlib import Path

from neuroseqret.errors import DataError
from neuroseqret.storage.files import new_file
from neuroseqret.storage.reading import check_path

_LONGEST = 1 << 20  # characters of a line

#: Grades by query and document.
Qrels = Mapping[str, Mapping[str, int]]
#: Scores by query and document, best first.
Run = Mapping[str, Mapping[str, float]]


def read_qrels(path: str | PathLike[str]) -> dict[str, dict[str, int]]:
    """Read the grades of the judged documents of each query."""
    qrels: dict[str, dict[str, int]] = {}
    for number, (query, _, document, grade) in _lines(path, 4, "query 0 document grade"):
        try:
            value = int(grade)
        except ValueError:
            raise DataError(
                f"line {number}: grade {grade!r} is not an integer", file=path, remedy="write 0, 1, ..."
            ) from None
        if document in qrels.setdefault(query, {}):
            what = f"line {number}: {document!r} is judged twice for query {query!r}"
            raise DataError(what, file=path, remedy="remove one of the lines")
        qrels[query][document] = value
    return qrels


def write_qrels(qrels: Qrels, path: str | PathLike[str]) -> None:
    """Write grades as TREC qrels."""
    with new_file(path) as temporary, temporary.open("w", encoding="utf-8") as out:
        for query, documents in qrels.items():
            for document, grade in documents.items():
                out.write(f"{_word(query)} 0 {_word(document)} {int(grade)}\n")


def read_run(path: str | PathLike[str]) -> dict[str, dict[str, float]]:
    """Read the scores of the ranked documents of each query, best first (by score, then by rank)."""
    ranked: dict[str, dict[str, tuple[float, int]]] = {}
    for number, (query, _, document, rank, score, _) in _lines(path, 6, "query Q0 document rank score tag"):
        try:
            key = (-float(score), int(rank))
        except ValueError:
            what = f"line {number}: rank {rank!r} or score {score!r} is not a number"
            raise DataError(what, file=path, remedy="write numbers") from None
        if math.isnan(key[0]):
            raise DataError(f"line {number}: score is NaN", file=path, remedy="write a number")
        if document in ranked.setdefault(query, {}):
            what = f"line {number}: {document!r} is ranked twice for query {query!r}"
            raise DataError(what, file=path, remedy="remove one of the lines")
        ranked[query][document] = key
    return {
        query: {document: -key[0] for document, key in sorted(documents.items(), key=lambda item: item[1])}
        for query, documents in ranked.items()
    }


def write_run(run: Run, path: str | PathLike[str], tag: str = "neuroseqret") -> None:
    """Write ranked documents as a TREC run, with exact scores and ranks from 1 in the order of the scores."""
    with new_file(path) as temporary, temporary.open("w", encoding="utf-8") as out:
        out.writelines(f"{line}\n" for line in run_lines(run, tag))


def run_lines(run: Run, tag: str = "neuroseqret") -> Iterator[str]:
    """Yield the lines of a TREC run."""
    for query, documents in run.items():
        best_first = sorted(documents.items(), key=lambda item: -item[1])  # stable: ties keep their order
        for rank, (document, score) in enumerate(best_first, 1):
            yield f"{_word(query)} Q0 {_word(document)} {rank} {float(score)!r} {_word(tag)}"


def _lines(path: str | PathLike[str], fields: int, form: str) -> Iterator[tuple[int, list[str]]]:
    check_path(path)
    try:
        if Path(path).is_char_device():  # some give lines without end
            raise DataError("a device, not a file", file=path, remedy="save its content to a file first")
        with Path(path).open(encoding="utf-8-sig") as lines:
            for number, line in enumerate(iter(lambda: lines.readline(_LONGEST), ""), 1):
                if len(line) >= _LONGEST:
                    raise DataError(
                        f"line {number}: longer than {_LONGEST:,} characters", file=path, remedy=f"write {form!r}"
                    )
                parts = line.split()
                if parts and len(parts) != fields:
                    raise DataError(f"line {number}: {len(parts)} fields", file=path, remedy=f"write {form!r}")
                if parts:
                    yield number, parts
    except OSError as error:
        raise DataError(f"cannot be read ({error.strerror})", file=path, remedy="check the path") from error
    except UnicodeDecodeError as error:
        raise DataError("not UTF-8 text", file=path, remedy="save it as UTF-8") from error


def _word(text: str) -> str:
    if len(text.split()) != 1 or text != text.strip():
        raise DataError(f"id {text!r} cannot be written to a TREC file", remedy="use ids without white space")
    return text
