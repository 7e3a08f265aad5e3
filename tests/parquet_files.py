"""Parquet files as other tools write them."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq


def save(path: Path, **columns: object) -> Path:
    """Write columns as a Parquet file."""
    pq.write_table(pa.table(columns), path)
    return path
