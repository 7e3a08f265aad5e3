"""Bodies of many sequences (NDJSON, Arrow, Parquet) added batch by batch; each batch is one commit."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, field
from itertools import islice
from typing import IO, Any

import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import ValidationError

from neuroseqret.data.gaps import wrong_gaps
from neuroseqret.data.meaning import UnknownMarks
from neuroseqret.data.sequences import EventSequences
from neuroseqret.errors import DataError, UserError
from neuroseqret.index import Index
from neuroseqret.index.writer import Added
from neuroseqret.serving.bodies import sequences_of
from neuroseqret.serving.problems import Problem, as_problem
from neuroseqret.serving.request_shapes import AddRequest, Sequence

JSON, NDJSON = "application/json", "application/x-ndjson"
ARROW, PARQUET = "application/vnd.apache.arrow.stream", "application/vnd.apache.parquet"
BATCH = 8192  # sequences per commit
_LINE = 16 << 20  # bytes of one line of NDJSON
_UNPACKED = 16  # how many times larger than the limit of the body its decompressed columns may be
_ERRORS = 1000  # rows that are reported


@dataclass
class Upload:
    """One body that is being added."""

    index: Index
    upsert: bool
    unknown_marks: UnknownMarks
    strict: bool  # refuse times that look like another unit than the model's
    most_bytes: int
    done: Added = field(default_factory=Added)
    errors: list[dict[str, Any]] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def run(self, kind: str, body: IO[bytes]) -> dict[str, Any]:
        """Add a body; return what was done. What was committed before an error stays and is named in it."""
        read: dict[str, Callable[[IO[bytes]], None]] = {
            JSON: self._json,
            NDJSON: self._ndjson,
            ARROW: self._arrow,
            PARQUET: self._parquet,
        }
        try:
            read[kind](body)
        except (UserError, ValidationError, Problem) as error:
            problem = as_problem(error)
            if sum(asdict(self.done).values()):
                problem.detail += f" ({self.done.added:,} sequences of earlier batches were added)"
            problem.more |= asdict(self.done)
            raise problem from error
        finally:
            body.close()
        found = {**asdict(self.done), "errors": self.errors, "warnings": self.warnings}
        return {**found, "version": self.index.view().version}

    def _add(self, batch: EventSequences) -> None:
        card = self.index.model.card
        if card is not None and not self.warnings:  # one is enough
            wrong = wrong_gaps(batch, card.typical_gaps, card.time_unit)
            if wrong is not None and self.strict:
                raise wrong
            self.warnings += [] if wrong is None else [str(wrong)]
        self.done += self.index.add(batch, self.upsert, unknown_marks=self.unknown_marks)

    # ---------------------------------------------------------------- columns

    def _arrow(self, body: IO[bytes]) -> None:
        try:
            with pa.ipc.open_stream(body) as stream:
                self._columns(iter(stream))
        except (pa.ArrowException, OSError, ValueError) as error:
            raise Problem(422, f"the body is not an Arrow IPC stream that can be read ({_line(error)})") from error

    def _parquet(self, body: IO[bytes]) -> None:
        try:
            with pq.ParquetFile(body) as file:
                groups = (file.metadata.row_group(at) for at in range(file.metadata.num_row_groups))
                self._check_size(sum(group.total_byte_size for group in groups))
                self._columns(file.iter_batches(BATCH))
        except (pa.ArrowException, OSError, ValueError) as error:
            raise Problem(422, f"the body is not a Parquet file that can be read ({_line(error)})") from error

    def _columns(self, batches: Iterator[pa.RecordBatch]) -> None:
        size, kept = 0, []
        for batch in batches:
            batch.validate(full=True)  # a stranger's offsets may point anywhere
            size += batch.nbytes
            self._check_size(size)
            for begin in range(0, batch.num_rows, BATCH):
                kept.append(batch.slice(begin, BATCH))
                if sum(one.num_rows for one in kept) >= BATCH:
                    self._add_columns(kept)
                    kept = []
        if kept:
            self._add_columns(kept)

    def _add_columns(self, batches: list[pa.RecordBatch]) -> None:
        self._add(EventSequences.from_arrow(pa.Table.from_batches(batches)))

    def _check_size(self, size: int) -> None:
        if size > _UNPACKED * self.most_bytes:
            raise Problem(
                413, f"the columns unpack to more than {_UNPACKED * self.most_bytes:,} bytes; send it in parts"
            )

    # ---------------------------------------------------------------- rows

    def _json(self, body: IO[bytes]) -> None:
        given = AddRequest.model_validate_json(body.read()).sequences
        made = self._sequences(given)
        for begin in range(0, len(made), BATCH):
            self._add(made[begin : begin + BATCH])

    def _ndjson(self, body: IO[bytes]) -> None:
        rows = enumerate(_lines(body))
        while batch := list(islice(rows, BATCH)):
            parsed = [(row, one) for row, line in batch if (one := self._parsed(row, line)) is not None]
            self._add_rows(parsed)

    def _parsed(self, row: int, line: bytes) -> Sequence | None:
        if not line.strip():
            return None
        try:
            return Sequence.model_validate_json(line)
        except ValidationError as error:
            self._report(row, None, as_problem(error).detail)
            return None

    def _add_rows(self, rows: list[tuple[int, Sequence]]) -> None:
        """Add the rows that can be added as one commit; report the others."""
        rows = self._sound(rows)
        while rows:
            try:
                return self._add(self._made(rows))
            except DataError as error:  # such as an id that is there with other events
                at = next((at for at, (_, one) in enumerate(rows) if one.id == error.sequence), None)
                if at is None:
                    raise
                self._report(rows[at][0], rows[at][1].id, _without_place(error))
                rows.pop(at)

    def _sound(self, rows: list[tuple[int, Sequence]]) -> list[tuple[int, Sequence]]:
        """Return the rows without flaws; all at once if there are none."""
        try:
            self._made(rows)
            return rows
        except UserError:
            return [row for row in rows if self._is_sound(*row)]

    def _is_sound(self, row: int, one: Sequence) -> bool:
        try:
            self._made([(row, one)])
            return True
        except UserError as error:
            self._report(row, one.id, _without_place(error))
            return False

    def _made(self, rows: Iterable[tuple[int, Sequence]]) -> EventSequences:
        given = [one for _, one in rows]
        if not given:
            return EventSequences.from_lists([])
        return self._sequences(given)

    def _sequences(self, given: list[Sequence]) -> EventSequences:
        return sequences_of(given, self.index.config.meaning, self.unknown_marks, self.index.model.values)

    def _report(self, row: int, id: str | None, problem: str) -> None:
        if len(self.errors) >= _ERRORS:
            raise Problem(
                422, f"more than {_ERRORS:,} lines have flaws; see 'errors' for the first", errors=self.errors
            )
        self.errors.append({"row": row, **({} if id is None else {"id": id}), "problem": problem})


def _lines(body: IO[bytes]) -> Iterator[bytes]:
    while line := body.readline(_LINE + 1):
        if len(line) > _LINE:
            raise Problem(413, f"a line has more than {_LINE:,} bytes; send longer sequences as Arrow or Parquet")
        yield line


def _without_place(error: UserError) -> str:
    """Return the message without the id, which the report names already."""
    if isinstance(error, DataError):
        return str(DataError(error.problem, position=error.position, remedy=error.remedy))
    return str(error)


def _line(error: Exception) -> str:
    return str(error).split("\n")[0][:200]
