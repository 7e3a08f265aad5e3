"""Files of vectors: Parquet with the columns `id` and `embedding`, one row per sequence."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

#: How they are written. No number occurs twice, and looking for some that do would take most of the time.
LAYOUT: dict[str, Any] = {"compression": "zstd", "use_dictionary": False}


def vector_table(ids: pa.Array, vectors: npt.NDArray[np.float32]) -> pa.Table:
    """Return the rows of a file; `vectors` is (ids, D)."""
    column = pa.FixedSizeListArray.from_arrays(pa.array(np.ravel(vectors)), vectors.shape[1])
    return pa.table({"id": ids, "embedding": column})


def vectors_of(table: pa.Table) -> npt.NDArray[np.float32]:
    """Return the vectors in the rows of a file: (rows, D)."""
    column = table.column("embedding").combine_chunks()
    found: npt.NDArray[np.float32] = column.flatten().to_numpy().reshape(len(column), column.type.list_size)
    return found
