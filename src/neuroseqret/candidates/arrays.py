"""Arrays in files: written in chunks, so that no second copy is in memory, and opened as memory maps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
CHUNK = 8192  # rows that are written at once; a copy of more is felt beside searches


def save_in_order(
    file: Path,
    matrix: npt.NDArray[np.float32],
    order: npt.NDArray[np.int32],
    convert: Callable[[npt.NDArray[np.float32]], Array] = np.asarray,
) -> None:
    """Do `np.save(file, convert(matrix[order]))` without a second copy of the matrix in memory."""
    with file.open("wb") as stream:
        kind = np.lib.format.dtype_to_descr(convert(matrix[:0]).dtype)
        np.lib.format.write_array_header_1_0(stream, {"descr": kind, "fortran_order": False, "shape": matrix.shape})
        for begin in range(0, len(order), CHUNK):
            stream.write(convert(matrix[order[begin : begin + CHUNK]]).tobytes())


def open_array(file: Path) -> Array:
    """Return the array of a `.npy` file as a memory map: nothing is read before it is used."""
    if file.stat().st_size <= 128:  # the header alone: an empty array cannot be mapped
        return np.asarray(np.load(file))
    return np.load(file, mmap_mode="c").view(np.ndarray)


def are_as_written(arrays: Sequence[tuple[Array, tuple[int, ...], type]]) -> bool:
    """Return whether every array has the shape and type beside it. The compiled kernels do not check bounds."""
    return all(
        array.shape == shape and array.dtype == kind and array.flags.c_contiguous for array, shape, kind in arrays
    )


def are_runs(offsets: Array, n: int) -> bool:
    """Return whether offsets, or each row of them, cut n rows into runs: from 0 to n and never falling."""
    ends = (offsets[..., 0] == 0).all() and (offsets[..., -1] == n).all()
    return bool(ends and (offsets[..., 1:] >= offsets[..., :-1]).all())


def are_within(numbers: Array, stop: int) -> bool:
    """Return whether all numbers are at least 0 and below `stop`."""
    return not numbers.size or bool(numbers.min() >= 0 and numbers.max() < stop)
