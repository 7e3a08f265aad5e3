"""Audio: spoken words, retrieval of the same speaker.

Download one of
- AudioMNIST of Becker et al. (soerenab/AudioMNIST; MIT): `data/<speaker>/<digit>_<speaker>_<repetition>.wav` and
  `audioMNIST_meta.txt`;
- the Snips smart-lights commands of the paper (Coucke et al. 2018, on request from Sonos; research licence):
  `speech_corpus/audio/<n>.wav` and `speech_corpus/metadata.json`, which names the worker of each recording;
- any folder of wav files with a table of speakers: a csv with the columns `path` (or `file`) and `speaker` (or
  `speakerId`), as Fluent Speech Commands has it. The path is relative to the csv or to a folder above it; the file name
  alone is enough if no two recordings have it.

With `cycles`, an event is a voiced cycle: an upward zero crossing of the signal, band-passed to 70-350 Hz, where the
level over 20 ms is more than a tenth of the loudest. With `bands`, events are the first cycle and each later cycle with
another mark than the one before. The mark is the band (quantiles over the data set) of the dominant frequency, 50 to
4000 Hz with pre-emphasis, in the 25 ms from the cycle on. Time starts at the first cycle.
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from neuroseqret.data.sequences import EventSequences, FloatArray
from neuroseqret.datasets.raw_files import Progress, find, json_object, nothing_found, text, track
from neuroseqret.datasets.recordings import Recordings, Windows, by_edges, edge_names, quantile_edges
from neuroseqret.errors import DataError, MissingExtraError, UserError
from neuroseqret.readers.engines.damage import first_line

BAND, ORDER, LEVEL_SECONDS, LOUDNESS = (70.0, 350.0), 3, 0.020, 0.1
FRAME_SECONDS, SPECTRUM_RATE, SPECTRUM_SIZE, SPECTRUM_RANGE, PRE_EMPHASIS = 0.025, 16_000, 2048, (50.0, 4000.0), 0.97


def read(
    raw: Path,
    *,
    variant: str = "cycles",
    min_events: int = 10,
    marks: int = 5,
    progress: Progress | None = None,
) -> EventSequences:
    """Read one sequence per recording of `min_events` events or more."""
    if variant not in ("cycles", "bands"):
        raise UserError(f"audio has no variant {variant!r}; choose cycles or bands")
    listed = track(_listed(raw), progress)
    whole = Recordings.from_parts((*cycles(path), columns) for path, columns in listed)
    if not len(whole):
        raise DataError("no recording has a voiced cycle", file=raw, remedy="check that the files are speech")
    edges = quantile_edges(whole.values, marks)
    marked = whole.with_marks(by_edges(whole.values, edges))
    if variant == "bands":
        marked = _changes(marked)
    kept = marked.take(marked.lengths >= min_events)
    longest = int(kept.lengths.max()) if len(kept) else 1
    return kept.cut(Windows(longest, "keep")).to_sequences(edge_names(edges, ".0f", " Hz"), "seconds")


def _changes(recordings: Recordings) -> Recordings:
    """Keep the first event of each recording and those whose mark differs from the one before."""
    keep = np.ones(len(recordings.values), bool)
    keep[1:] = recordings.values[1:] != recordings.values[:-1]
    keep[recordings.offsets[:-1]] = True
    before = np.concatenate([[0], np.cumsum(keep)])
    offsets = before[recordings.offsets]
    return Recordings(recordings.times[keep], recordings.values[keep], offsets, recordings.columns)


def cycles(path: Path) -> tuple[FloatArray, FloatArray]:
    """Return the times of the voiced cycles and the dominant frequency at each."""
    rate, wave = _wave(path)
    from scipy import ndimage, signal

    sections = signal.butter(ORDER, BAND, btype="bandpass", fs=rate, output="sos")
    if len(wave) <= 3 * (2 * len(sections) + 1):
        return np.empty(0), np.empty(0)
    low = signal.sosfiltfilt(sections, wave)
    level = np.sqrt(np.maximum(ndimage.uniform_filter1d(low * low, int(LEVEL_SECONDS * rate), mode="constant"), 0))
    up = np.flatnonzero((low[:-1] <= 0) & (low[1:] > 0))
    up = up[level[up] > LOUDNESS * level.max()]
    times = (up - low[up] / (low[up + 1] - low[up])) / rate
    return times, _dominant(wave, rate, times)


def _dominant(wave: FloatArray, rate: int, times: FloatArray) -> FloatArray:
    """Return the strongest frequency in the 25 ms from each time on."""
    from scipy import signal

    common = int(np.gcd(rate, SPECTRUM_RATE))
    slow = signal.resample_poly(wave, SPECTRUM_RATE // common, rate // common)
    slow = np.append(slow[:1], slow[1:] - PRE_EMPHASIS * slow[:-1])
    size = int(FRAME_SECONDS * SPECTRUM_RATE)
    padded = np.pad(slow, (0, size + 1))
    begin = np.minimum(np.rint(times * SPECTRUM_RATE).astype(np.int64), len(slow))
    frames = np.lib.stride_tricks.sliding_window_view(padded, size)[begin]
    frequency = np.fft.rfftfreq(SPECTRUM_SIZE, 1 / SPECTRUM_RATE)
    heard = (frequency >= SPECTRUM_RANGE[0]) & (frequency <= SPECTRUM_RANGE[1])
    spectrum = np.abs(np.fft.rfft(frames * np.hanning(size), SPECTRUM_SIZE, axis=1))[:, heard]
    return frequency[heard][spectrum.argmax(axis=1)] if len(times) else np.empty(0)


def _wave(path: Path) -> tuple[int, npt.NDArray[np.float64]]:
    """Read the sampling rate and the first channel, scaled so that the loudest sample is 1."""
    try:
        from scipy.io import wavfile
    except ImportError as error:
        raise MissingExtraError("scipy", "raw", "reading wav files") from error
    try:
        rate, samples = wavfile.read(path)
    except Exception as error:  # scipy can raise anything over a damaged file
        raise DataError(
            f"not a readable wav file ({first_line(error)})", file=path, remedy="download it again"
        ) from error
    wave = (samples if samples.ndim == 1 else samples[:, 0]).astype(np.float64)
    if rate <= 2 * BAND[1]:
        raise DataError(f"{rate} samples per second are too few for speech", file=path, remedy="remove the file")
    if not len(wave) or not np.abs(wave).max() > 0:
        raise DataError("holds no sound", file=path, remedy="remove it or download it again")
    return int(rate), wave / np.abs(wave).max()


def _listed(raw: Path) -> list[tuple[Path, dict[str, Any]]]:
    """List every wav file with its columns; the speaker is the `group`, the recording session the `source`."""
    paths = find(raw, "*.wav")
    if not paths:
        raise nothing_found(raw, "wav files, such as AudioMNIST's <speaker>/<digit>_<speaker>_<repetition>.wav")
    named = [(path, re.fullmatch(r"(\d)_(\w+)_(\d+)", path.stem)) for path in paths]
    if all(match and path.parent.name == match[2] for path, match in named):
        facts = {k: v for f in find(raw, "audioMNIST_meta.txt") for k, v in json_object(f).items()}
        return [
            (path, _digit(int(match[1]), match[2], int(match[3]), facts)) for path, match in named if match is not None
        ]
    speakers = _speakers(raw, paths)
    # Only the speaker is known, so each recording is a source of its own.
    return [(path, {"group": speakers[path], "source": str(path.relative_to(raw))}) for path in paths]


def _digit(digit: int, speaker: str, repetition: int, facts: dict[str, Any]) -> dict[str, Any]:
    fact = facts.get(speaker)
    return {
        "group": f"speaker_{speaker}",
        "source": f"repetition_{repetition:02d}",
        "digit": digit,
        "gender": fact.get("gender") if isinstance(fact, dict) else None,
    }


def _speakers(raw: Path, paths: list[Path]) -> dict[Path, str]:
    """Find the speaker of every recording: by its path, else by its file name if only one recording has it."""
    listed: dict[Path, str] = {}
    by_name: dict[str, set[str]] = {}
    for table, file, speaker in _table_rows(raw):
        # Relative to the table or to any folder above it, up to the raw folder.
        above = [folder for folder in table.parents if folder == raw or raw in folder.parents]
        places = [folder / f"{file}{ending}" for folder in above for ending in ("", ".wav")]
        found = next((place.resolve() for place in places if place.is_file()), None)
        if found is None:
            by_name.setdefault(Path(file).name.removesuffix(".wav"), set()).add(speaker)
        elif listed.setdefault(found, speaker) != speaker:
            raise DataError(
                f"{file} is listed for {listed[found]} and for {speaker}", file=table, remedy="list it once"
            )
    speakers = {path: listed[path.resolve()] for path in paths if path.resolve() in listed}
    unlisted = [path for path in paths if path not in speakers]
    called_so = Counter(path.stem for path in unlisted)
    for path in unlisted:
        said = sorted(by_name.get(path.stem, ()))
        if not said:
            raise DataError(
                "no table names the speaker of this recording",
                file=path,
                remedy="add a csv with the columns path and speaker to the folder",
            )
        if len(said) > 1 or called_so[path.stem] > 1:
            raise DataError(
                f"{called_so[path.stem]} recordings have this name, and it is listed for {' and '.join(said)}",
                file=path,
                remedy="list each recording with its path relative to the csv",
            )
        speakers[path] = said[0]
    return speakers


def _table_rows(raw: Path) -> Iterator[tuple[Path, str, str]]:
    """Yield table, recording and speaker of every line of a csv with speakers and every entry of `metadata.json`."""
    for path in find(raw, "metadata.json"):
        for key, entry in json_object(path).items():
            worker = entry.get("worker") if isinstance(entry, dict) else None
            if isinstance(worker, dict) and "id" in worker:
                yield path, f"audio/{key}", str(worker["id"])
    for path in find(raw, "*.csv"):
        rows = csv.DictReader(text(path).splitlines())
        columns = {name.lower(): name for name in rows.fieldnames or []}
        file = columns.get("path") or columns.get("file") or columns.get("filename")
        speaker = columns.get("speaker") or columns.get("speakerid") or columns.get("speaker_id")
        if file and speaker:
            yield from ((path, row[file], row[speaker]) for row in rows if row[file] and row[speaker])
