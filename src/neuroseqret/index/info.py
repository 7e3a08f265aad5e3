"""What an index says of itself: the mapping of `Index.info` and the line of its repr."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from neuroseqret.index.config import IndexConfig, IndexSettings
from neuroseqret.index.engines import Engine
from neuroseqret.index.snapshot import Snapshot
from neuroseqret.index.store import INTERNAL, OFFSET, PARENT


def describe(
    folder: Path, config: IndexConfig, snapshot: Snapshot, name: str, size: int | None = None
) -> dict[str, Any]:
    """Return what the index holds and how it searches; `size` is its size in an object store."""
    return {
        "folder": name,
        "model": config.model,
        "sequences": snapshot.number_of_parents() if config.settings.windowed else snapshot.count,
        **_windows_of(config.settings, snapshot.count),
        **_meaning(config),
        "columns": _columns(snapshot),
        "candidates": snapshot.hot.finder.method,
        "candidates_setting": config.settings.candidates,
        "not_yet_in_structure": snapshot.tail,
        "removed_in_structure": snapshot.dead,
        "bytes_in_memory": snapshot.nbytes,
        **({} if size is None else {"bytes_in_bucket": size}),
        "bytes_on_disk": _bytes_on_disk(folder),
        "library_version": config.library_version,
    }


def describe_with_engine(folder: Path, config: IndexConfig, engine: Engine, rows: int) -> dict[str, Any]:
    """Return what an index holds whose candidates are found by a server."""
    return {
        "folder": str(folder),
        "model": config.model,
        "windows" if config.settings.windowed else "sequences": rows,
        **_meaning(config),
        "engine": str(engine.address),
        "candidates": engine.method,
        "bytes_on_disk": _bytes_on_disk(folder),
        "library_version": config.library_version,
    }


def _columns(snapshot: Snapshot) -> list[str]:
    """Return the names that a condition may use, besides `id`: of the group and of metadata."""
    names = dict.fromkeys([*snapshot.hot.rows.column_names, *snapshot.tail_rows.schema.names])
    return [name for name in names if name not in ("id", PARENT, OFFSET, *INTERNAL)]


def one_line(name: str, config: IndexConfig, rows: int) -> str:
    """Return the repr of an index: size, marks, unit, candidates method and model."""
    parts = [f"{rows:,} {'windows' if config.settings.windowed else 'sequences'}"]
    parts += [f"{config.marks} marks"] if config.marks is not None else []
    parts += [f"time in {config.time_unit}"] if config.time_unit else []
    parts += [f"candidates {config.settings.candidates}", f"model {config.model!r}"]
    return f"Index({name!r}, {', '.join(parts)})"


def _meaning(config: IndexConfig) -> dict[str, Any]:
    return {
        "dimension": config.dimension,
        "marks": config.marks,
        "mark_names": config.mark_names,
        "time_unit": config.time_unit,
    }


def _bytes_on_disk(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


def _windows_of(settings: IndexSettings, count: int) -> dict[str, Any]:
    """Return what `info` says of an index of windows: their number, size and step; nothing for whole sequences."""
    if not settings.windowed:
        return {}
    by_events = settings.window_events is not None
    size = settings.window_events if by_events else settings.window_duration
    step = settings.window_step if settings.window_step is not None else size
    return {
        "windows": count,
        "window_events": settings.window_events,
        "window_duration": settings.window_duration,
        "window_step": int(step or 0) if by_events else step,
    }
