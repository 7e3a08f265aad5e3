"""Electricity: power of household appliances, retrieval of the same kind of appliance.

Download one of
- REFIT Electrical Load Measurements (Cleaned) of Murray, Stankovic and Stankovic (University of Strathclyde;
  CC BY 4.0): `CLEAN_House<n>.csv` (`Time, Unix, Aggregate, Appliance1 ... Appliance9, Issues`) and its readme text,
  which lists the appliances of each house;
- tracebase of Reinhardt et al. (areinhardt/tracebase; ODbL 1.0, contents DbCL 1.0):
  `<directory>/<Appliance>/dev_<meter>_..._<day>.csv`, lines `dd/mm/yyyy hh:mm:ss;watts;watts averaged`. The directory
  `synthetic` reuses recordings and is left out, and so are files that overlap another file of the same meter.

With `steps`, an event is a reading that differs from the level of the last event by more than 2 W and more than 5 % of
that level. With `readings` (the paper's), every reading but the first is an event. The mark is the quintile of the
normalised change (new - old) / max(new, old), over all changes that are not zero. Windows have 100 events of one device
and day; there are at most 2244 per kind of appliance, drawn from its device-days in turn.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv

from neuroseqret.data.sequences import EventSequences, FloatArray
from neuroseqret.datasets import refit
from neuroseqret.datasets.raw_files import Progress, find, nothing_found, track
from neuroseqret.datasets.recordings import Recordings, Windows, by_edges, edge_names, quantile_edges, thin
from neuroseqret.datasets.steps import relative_change, steps
from neuroseqret.errors import DataError, UserError
from neuroseqret.readers.engines.damage import first_line

ABSOLUTE, RELATIVE = 2.0, 0.05
#: Other names of a kind of appliance.
SAME_KIND = {
    "LaundryDrier": "LaundryDryer",
    "HifiAmplifier": "Amplifier",
    "Projector": "VideoProjector",
    "Desk_lamp": "Lamp",
    "MacBookPro_13in": "PC-Laptop",
    "Monitor_19in": "Monitor-TFT",
    "Monitor_24in": "Monitor-TFT",
}


def read(
    raw: Path,
    *,
    variant: str = "steps",
    events: int = 100,
    min_events: int = 10,
    marks: int = 5,
    most: int = 2244,
    seed: int = 0,
    progress: Progress | None = None,
) -> EventSequences:
    """Read windows of `min_events` to `events` events, at most `most` per kind of appliance."""
    if variant not in ("steps", "readings"):
        raise UserError(f"electricity has no variant {variant!r}; choose steps or readings")
    houses = find(raw, "*House*.csv", "*house*.csv")
    traces = [] if houses else [p for p in find(raw, "dev_*.csv") if "synthetic" not in p.parts]
    if not houses and not traces:
        raise nothing_found(raw, "REFIT's CLEAN_House<n>.csv, or tracebase's <Appliance>/dev_*.csv")
    parts = refit.devices(raw, houses, progress) if houses else _traces(traces, progress)
    events_of = (_changes(times, watts, columns, variant == "steps") for times, watts, columns in parts)
    whole = Recordings.from_parts(part for device in events_of for part in _days(*device))
    if not len(whole):
        raise DataError("no change of power in any file", file=raw, remedy="download it again")
    cut = whole.cut(Windows(events, "keep", min_events))
    rng = np.random.default_rng(seed)
    cut = cut.take(thin(np.asarray(cut.columns["group"]), most, rng, np.asarray(cut.columns["source"])))
    changed = cut.values[cut.values != 0]
    if not len(changed):
        raise DataError(f"no device-day has {min_events} events", file=raw, remedy="ask for fewer --min-events")
    edges = quantile_edges(changed, marks)
    named = cut.with_marks(by_edges(cut.values, edges))
    return named.to_sequences(edge_names(edges, "+.3f", " of the larger power"), "seconds")


def _changes(times: FloatArray, watts: FloatArray, columns: dict[str, str], on_step: bool) -> tuple[Any, Any, Any]:
    if on_step:
        rows, before = steps(watts, ABSOLUTE, RELATIVE)
        return times[rows], relative_change(watts[rows], before), columns
    return times[1:], relative_change(watts[1:], watts[:-1]), columns


def _days(times: FloatArray, change: FloatArray, columns: dict[str, str]) -> Iterator[tuple[Any, Any, dict[str, str]]]:
    """Yield one recording per day; its `source` is device and day."""
    day = np.floor(times / 86400).astype(np.int64)
    cuts = np.flatnonzero(np.diff(day)) + 1
    for t, x in zip(np.split(times, cuts), np.split(change, cuts), strict=True):
        if len(t):
            date = str(np.datetime64(int(t[0] // 86400), "D")) if "day" not in columns else columns["day"]
            yield t, x, {**columns, "source": f"{columns['device']}:{date}", "day": date}


def _traces(paths: list[Path], progress: Progress | None) -> Iterator[tuple[FloatArray, FloatArray, dict[str, str]]]:
    """Yield times, watts and columns of each tracebase file, without files that overlap an earlier one of the meter."""
    by_meter: dict[str, list[Path]] = {}
    for path in paths:
        by_meter.setdefault(_meter(path), []).append(path)
    for files in track(by_meter.values(), progress):
        until = -np.inf
        for times, watts, columns in sorted(map(_trace, files), key=lambda part: float(part[0][0])):
            if times[0] > until:
                until = times[-1]
                yield times, watts, columns


def _meter(path: Path) -> str:
    return "_".join(path.stem.split("_")[:2])


def _trace(path: Path) -> tuple[FloatArray, FloatArray, dict[str, str]]:
    try:
        table = pacsv.read_csv(
            path,
            read_options=pacsv.ReadOptions(column_names=["time", "watts", "average"]),
            parse_options=pacsv.ParseOptions(delimiter=";"),
            convert_options=pacsv.ConvertOptions(
                column_types={"time": pa.timestamp("s"), "watts": pa.float64(), "average": pa.float64()},
                timestamp_parsers=["%d/%m/%Y %H:%M:%S"],
                strings_can_be_null=False,
            ),
        )
    except pa.ArrowInvalid as error:
        raise DataError(
            f"not a tracebase file ({first_line(error)})", file=path, remedy="lines are dd/mm/yyyy hh:mm:ss;watts;watts"
        ) from error
    if not table.num_rows or table.column("time").null_count or table.column("watts").null_count:
        raise DataError("empty, or a line has no time or power", file=path, remedy="download it again")
    times = table.column("time").cast(pa.int64()).to_numpy().astype(np.float64)
    watts = table.column("watts").to_numpy()
    order = np.argsort(times, kind="stable")  # some clocks were set back
    kind = SAME_KIND.get(path.parent.name, path.parent.name)
    columns = {
        "group": kind,
        "device": f"{kind}:{_meter(path)}",
        "directory": path.parent.parent.name,
        "day": str(np.datetime64(int(np.median(times)) // 86400, "D")),
    }
    return times[order], watts[order], columns
