"""Read files of `torch.save` as numpy arrays, without torch and without running anything in them.

Such a file is a zip archive with `data.pkl` and one entry per storage or, before torch 1.6, a chain of pickles (magic
number, protocol, system, content, names of storages) followed by the storages.
"""

from __future__ import annotations

import io
import struct
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from neuroseqret.errors import DataError
from neuroseqret.readers.pickles.safe_pickle import STAND_INS, SafeUnpickler, Unfinished, guarded, plain

ZIP_MAGIC = b"PK\x03\x04"
LEGACY_NUMBER = 0x1950A86A20F9469CFC6C
#: The beginning of a chain of pickles: protocol 2, then the number as a long.
LEGACY_MAGIC = b"\x80\x02\x8a\x0a" + LEGACY_NUMBER.to_bytes(10, "little") + b"."

_STORAGES = {
    "Double": "<f8",
    "Float": "<f4",
    "Half": "<f2",
    "Long": "<i8",
    "Int": "<i4",
    "Short": "<i2",
    "Char": "<i1",
    "Byte": "<u1",
    "Bool": "?",
}


class _StorageType:
    """What a pickle means by `torch.FloatStorage`."""

    def __init__(self, dtype: str) -> None:
        self.dtype = np.dtype(dtype)


class _Storage:
    """The numbers behind a tensor; they come after the pickle."""

    def __init__(self, dtype: np.dtype[Any], size: int) -> None:
        self.dtype, self.size = dtype, size
        self.data: np.ndarray | None = None


class _Tensor(Unfinished):
    """A view of a storage; it becomes an array when the storage has been read."""

    def __init__(self, storage: Any, offset: Any, size: Any, stride: Any, *_: Any) -> None:
        numbers = (offset, *size, *stride)
        ok = isinstance(storage, _Storage) and len(size) == len(stride) <= 8
        if not ok or not all(isinstance(number, int) and number >= 0 for number in numbers):
            raise DataError("damaged tensor", remedy="export it again")
        self.storage, self.offset, self.size, self.stride = storage, offset, size, stride

    def finished(self) -> np.ndarray:
        data = self.storage.data
        count = int(np.prod(self.size, dtype=object))
        last = self.offset + sum((n - 1) * step for n, step in zip(self.size, self.stride, strict=True))
        if data is None or (count and (last >= len(data) or count > len(data))):
            raise DataError("damaged tensor: it reaches beyond its storage", remedy="export it again")
        if not count:
            return np.empty(self.size, self.storage.dtype)
        steps = [step * data.itemsize for step in self.stride]
        return np.lib.stride_tricks.as_strided(data[self.offset :], self.size, steps).copy()


class _TorchUnpickler(SafeUnpickler):
    stand_ins: ClassVar[Mapping[tuple[str, str], Any]] = {
        **STAND_INS,
        ("torch._utils", "_rebuild_tensor_v2"): _Tensor,
        ("torch._utils", "_rebuild_tensor"): _Tensor,
        **{("torch", f"{name}Storage"): _StorageType(dtype) for name, dtype in _STORAGES.items()},
    }

    def __init__(self, stream: io.BufferedIOBase) -> None:
        super().__init__(stream)
        self.storages: dict[str, _Storage] = {}

    def persistent_load(self, pid: Any) -> _Storage:
        _kind, storage_type, key, _location, size = pid[:5]
        if _kind != "storage" or not isinstance(storage_type, _StorageType) or not isinstance(size, int):
            raise DataError("damaged or hostile storage", remedy="export it again")
        return self.storages.setdefault(str(key), _Storage(storage_type.dtype, size))


def is_torch_archive(path: Path) -> bool:
    """Return True for a zip archive of `torch.save`; a damaged archive is recognised by its first bytes."""
    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
    except (zipfile.BadZipFile, OSError, ValueError, OverflowError, NotImplementedError, struct.error):
        with path.open("rb") as stream:
            return b"data.pkl" in stream.read(1 << 12)
    return any(name.partition("/")[2] == "data.pkl" for name in names)


def load(stream: io.BytesIO) -> Any:
    """Read the saved object, with tensors as numpy arrays."""
    head = stream.read(len(LEGACY_MAGIC))
    stream.seek(0)
    if head.startswith(ZIP_MAGIC):
        return guarded(lambda: _load_zip(stream))
    return guarded(lambda: _load_chain(stream))


def _load_zip(stream: io.BytesIO) -> Any:
    with zipfile.ZipFile(stream) as archive:
        entries = {info.filename.partition("/")[2]: info for info in archive.infolist()}
        if "data.pkl" not in entries or any(i.compress_type != zipfile.ZIP_STORED for i in entries.values()):
            raise DataError("a zip archive, but not one of torch.save", remedy="export it again")
        if "byteorder" in entries and archive.read(entries["byteorder"]) != b"little":
            raise DataError("written on a big-endian machine", remedy="export it on another machine")
        unpickler = _TorchUnpickler(io.BytesIO(archive.read(entries["data.pkl"])))
        content = unpickler.load()
        for key, storage in unpickler.storages.items():
            storage.data = np.frombuffer(archive.read(entries[f"data/{key}"]), storage.dtype)
        return plain(content)


def _load_chain(stream: io.BytesIO) -> Any:
    if SafeUnpickler(stream).load() != LEGACY_NUMBER:
        raise DataError("not a file of torch.save", remedy="export it again")
    SafeUnpickler(stream).load()  # protocol
    SafeUnpickler(stream).load()  # system
    unpickler = _TorchUnpickler(stream)
    content = unpickler.load()
    for key in plain(SafeUnpickler(stream).load()):
        storage = unpickler.storages[str(key)]
        (size,) = struct.unpack("<q", stream.read(8))
        data = stream.read(size * storage.dtype.itemsize) if size >= 0 else b""
        if len(data) != size * storage.dtype.itemsize:
            raise DataError("cut off within a tensor", remedy="export it again")
        storage.data = np.frombuffer(data, storage.dtype)
    return plain(content)
