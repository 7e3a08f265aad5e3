"""Health: heart beats of patients, retrieval of the same patient.

Download: MIT-BIH Arrhythmia Database 1.0.0 (PhysioNet; ODC-By 1.0): the `.hea` and `.atr` files for the beats, and the
`.dat` files for the signal. Any folder of PhysioNet WFDB records with the same file types works.

Three variants:
- `beats`: an event is an annotated beat; its mark is the AAMI class (N, S, V, F, Q); windows of 50 beats;
- `signal` (the paper's): an event is a sample of the first ECG lead; its mark is the quintile of the normalised change
  since the sample before; sequences of 10,000 samples. Times are regular here and carry no information;
- `changes`: an event is where the signal has moved by a fifth of its standard deviation since the last event; marks as
  in `signal`; windows of 200 events.

Most patients have one record, so its last third gives the queries (`prepare` leaves out the window before them). If
there are several records, the last third of the last one gives the queries and the others are the corpus.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from neuroseqret.data.sequences import EventSequences
from neuroseqret.datasets.raw_files import Progress, find, nothing_found, track
from neuroseqret.datasets.recordings import Recordings, Windows, by_edges, edge_names, quantile_edges
from neuroseqret.datasets.steps import steps
from neuroseqret.errors import DataError, MissingExtraError, UserError
from neuroseqret.readers.engines.damage import first_line

#: AAMI EC57 classes and the PhysioNet beat codes of each; all other codes are not beats.
AAMI = {
    "N normal or bundle branch block": "NLRBejn",
    "S supraventricular ectopic": "AaJS",
    "V ventricular ectopic": "VEr",
    "F fusion": "F",
    "Q paced or unclassifiable": "/fQ?",
}
#: Records of the same patient, according to PhysioNet.
SAME_PATIENT = {"201": "201+202", "202": "201+202"}
EVENTS = {"beats": 50, "signal": 10_000, "changes": 200}
CHANGE = 0.2


def read(
    raw: Path,
    *,
    variant: str = "beats",
    events: int | None = None,
    marks: int = 5,
    progress: Progress | None = None,
) -> EventSequences:
    """Read windows of `events` events of every record; the signal variants have `marks` classes of change."""
    if variant not in EVENTS:
        raise UserError(f"health has no variant {variant!r}; choose {', '.join(EVENTS)}")
    suffix = ".atr" if variant == "beats" else ".dat"
    records = [path.with_suffix("") for path in find(raw, "*.hea") if path.with_suffix(suffix).exists()]
    if not records:
        raise nothing_found(raw, f"PhysioNet records, <record>.hea with <record>{suffix}")
    windows = Windows(EVENTS[variant] if events is None else events)
    if variant == "beats":
        whole = Recordings.from_parts(_beats(record) for record in track(records, progress))
        return whole.cut(windows).to_sequences(list(AAMI), "seconds")
    cut = Recordings.from_parts(_signal(record, variant == "signal") for record in track(records, progress)).cut(
        windows
    )
    if not len(cut):
        raise DataError(f"no record has {windows.events} events", file=raw, remedy="ask for fewer --events")
    edges = quantile_edges(cut.values, marks)
    names = edge_names(edges, "+.3f", " standard deviations")
    return cut.with_marks(by_edges(cut.values, edges)).to_sequences(names, "seconds")


def _columns(record: Path) -> dict[str, str]:
    return {"group": SAME_PATIENT.get(record.name, record.name), "source": record.name}


def _wfdb() -> Any:
    try:
        import wfdb
    except ImportError as error:
        raise MissingExtraError("wfdb", "raw", "reading PhysioNet records") from error
    return wfdb


def _beats(record: Path) -> tuple[Any, Any, dict[str, str]]:
    wfdb = _wfdb()
    try:
        annotation = wfdb.rdann(str(record), "atr")
        rate = annotation.fs or wfdb.rdheader(str(record)).fs
    except Exception as error:  # wfdb can raise anything over a damaged file
        raise _damaged(record.with_suffix(".atr"), error) from error
    symbols = np.array(annotation.symbol, dtype="U1")
    codes = np.full(len(symbols), -1, np.int32)
    for mark, beats in enumerate(AAMI.values()):
        codes[np.isin(symbols, list(beats))] = mark
    beat = codes >= 0
    if not beat.any():
        raise DataError("no beat annotations", file=record.with_suffix(".atr"), remedy="remove the record")
    times = annotation.sample[beat] / rate
    if (np.diff(times) < 0).any():
        raise DataError("annotations go back in time", file=record.with_suffix(".atr"), remedy="download it again")
    return times, codes[beat], _columns(record)


def _signal(record: Path, every_sample: bool) -> tuple[Any, Any, dict[str, str]]:
    """Read times and normalised changes (in standard deviations of the record) of the first lead."""
    try:
        loaded = _wfdb().rdrecord(str(record), channels=[0])
    except UserError:
        raise
    except Exception as error:
        raise _damaged(record.with_suffix(".dat"), error) from error
    level = loaded.p_signal[:, 0]
    measured = np.flatnonzero(np.isfinite(level))  # gaps in the recording give no events, but time goes on
    level = level[measured]
    deviation = level.std() if len(level) else 0.0
    if not deviation > 0:
        raise DataError("the first lead is constant", file=record.with_suffix(".dat"), remedy="remove the record")
    level = level / deviation
    if every_sample:
        rows, change = np.arange(1, len(level)), np.diff(level)
    else:
        rows, before = steps(level, CHANGE)
        change = level[rows] - before
    return measured[rows] / loaded.fs, change, _columns(record)


def _damaged(path: Path, error: Exception) -> DataError:
    return DataError(f"cannot be read as a PhysioNet file ({first_line(error)})", file=path, remedy="download it again")
