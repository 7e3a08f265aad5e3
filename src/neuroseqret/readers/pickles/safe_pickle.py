"""Read pickles safely: only containers, numbers, strings and plain arrays come out, and nothing is called.

A pickle is a program. This reader runs it without giving it any library to call: the few names that data files need
(numpy arrays and scalars, torch tensors) stand for functions of this module, which build plain arrays from checked
arguments. Any other name, and every instruction that makes objects, is an error.
"""

from __future__ import annotations

import io
import pickle
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import numpy as np

from neuroseqret.errors import DataError
from neuroseqret.readers.engines.damage import first_line

_NUMERIC = "biuf"  # kinds of numpy types: booleans, integers, floats


class Unfinished(ABC):
    """Stands for an array until the whole file has been read."""

    @abstractmethod
    def finished(self) -> np.ndarray:
        """Return the array, or raise a `DataError` if the file did not give its content."""


class _Array(Unfinished):
    """A numpy array under construction: a pickle first names it and later gives its content."""

    value: np.ndarray | None = None

    def set_state(self, state: Any) -> None:
        _version, shape, dtype, fortran, data = state if len(state) == 5 else (None, *state)
        _check(isinstance(dtype, _Dtype) and isinstance(shape, tuple), "array")
        if isinstance(data, str):  # written by Python 2
            data = data.encode("latin-1")
        flat = _numbers(data, dtype)
        self.value = flat.reshape(shape, order="F" if fortran else "C").astype(dtype.value.newbyteorder("="))

    def finished(self) -> np.ndarray:
        _check(self.value is not None, "array without content")
        assert self.value is not None
        return self.value


class _Dtype:
    """A numeric numpy type; of the state that follows only the byte order is used."""

    def __init__(self, code: Any, *_: Any) -> None:
        _check(isinstance(code, (str, bytes)), "type")
        self.value = np.dtype(code.decode() if isinstance(code, bytes) else code)
        _check(self.value.kind in _NUMERIC, f"type {self.value}")

    def set_state(self, state: Any) -> None:
        _check(isinstance(state, tuple) and len(state) > 1 and state[1] in ("<", ">", "|", "="), "type")
        self.value = self.value.newbyteorder(state[1])


def _numbers(data: Any, dtype: _Dtype) -> np.ndarray:
    _check(isinstance(data, (bytes, bytearray)), "array that does not hold numbers")
    return np.frombuffer(data, dtype.value)


def _new_array(*_: Any) -> _Array:
    return _Array()


def _from_buffer(data: Any, dtype: Any, shape: Any, order: Any = "C") -> np.ndarray:
    """Build an array as protocol 5 writes it."""
    _check(isinstance(dtype, _Dtype) and isinstance(shape, tuple) and order in ("C", "F"), "array")
    return _numbers(data, dtype).reshape(shape, order=order)


def _scalar(dtype: Any, data: Any) -> Any:
    _check(isinstance(dtype, _Dtype), "number")
    return _numbers(data.encode("latin-1") if isinstance(data, str) else data, dtype)[0].item()


def _bytes_of_text(text: Any, encoding: Any = "latin1") -> bytes:
    """Build bytes as Python 3 writes them in protocol 2."""
    _check(isinstance(text, str) and encoding in ("latin1", "latin-1"), "bytes")
    return bytes(text.encode("latin-1"))


def _empty_bytes() -> bytes:
    return b""


def _mapping(*items: Any) -> dict[Any, Any]:
    return dict(*items)


#: The names that may occur, and the functions that stand for them.
STAND_INS: dict[tuple[str, str], Callable[..., Any]] = {
    ("_codecs", "encode"): _bytes_of_text,
    ("builtins", "bytes"): _empty_bytes,
    ("__builtin__", "bytes"): _empty_bytes,
    ("collections", "OrderedDict"): _mapping,
    ("numpy", "ndarray"): _new_array,
    ("numpy", "dtype"): _Dtype,
    **{
        (f"numpy.{core}.multiarray", name): function
        for core in ("core", "_core")
        for name, function in (("_reconstruct", _new_array), ("scalar", _scalar))
    },
    **{(f"numpy.{core}.numeric", "_frombuffer"): _from_buffer for core in ("core", "_core")},
}


class SafeUnpickler(pickle._Unpickler):
    """Python's own unpickler without the instructions that could make anything else.

    It keeps its memo in a dictionary, so that a wild index in a damaged file cannot make it allocate memory.
    """

    dispatch: ClassVar[dict[int, Callable[[Any], None]]] = dict(pickle._Unpickler.dispatch)
    stand_ins: ClassVar[Mapping[tuple[str, str], Any]] = STAND_INS

    def __init__(self, stream: io.BufferedIOBase) -> None:
        super().__init__(stream, encoding="latin1")

    def find_class(self, module: str, name: str) -> Any:
        try:
            return self.stand_ins[module, name]
        except KeyError:
            raise DataError(
                f"the pickle asks for {module}.{name}, which data does not need",
                remedy="do not trust this file; export only numbers, strings, lists and dicts",
            ) from None

    def load_build(self) -> None:
        state = self.stack.pop()  # type: ignore[attr-defined]
        made = self.stack[-1]  # type: ignore[attr-defined]
        _check(isinstance(made, (_Array, _Dtype)), f"state of a {type(made).__name__}")
        made.set_state(state)

    def load_reduce(self) -> None:
        arguments = self.stack.pop()  # type: ignore[attr-defined]
        function = self.stack[-1]  # type: ignore[attr-defined]
        known = any(function is stand_in for stand_in in self.stand_ins.values())
        _check(known and isinstance(arguments, tuple), "call")
        self.stack[-1] = function(*arguments)  # type: ignore[attr-defined]

    def _refuse(self) -> None:
        raise DataError("the pickle makes objects, not data", remedy="export only lists and dicts")

    dispatch[pickle.BUILD[0]] = load_build
    dispatch[pickle.REDUCE[0]] = load_reduce
    for _code in (
        *(pickle.INST, pickle.OBJ, pickle.NEWOBJ, pickle.NEWOBJ_EX),
        *(pickle.EXT1, pickle.EXT2, pickle.EXT4, pickle.NEXT_BUFFER, pickle.READONLY_BUFFER),
    ):
        dispatch[_code[0]] = _refuse


def load(stream: io.BufferedIOBase) -> Any:
    """Read the next pickled object of a stream: containers, numbers, strings and numpy arrays only."""
    return guarded(lambda: plain(SafeUnpickler(stream).load()))


def guarded(load: Callable[[], Any]) -> Any:
    """Return what `load` returns; turn anything that a damaged pickle makes it raise into a `DataError`."""
    try:
        return load()
    except DataError:
        raise
    except RecursionError as error:
        raise DataError("the pickle is nested too deeply", remedy="export it again") from error
    except Exception as error:  # a damaged pickle can fail in any way
        raise DataError(f"damaged pickle ({first_line(error)})", remedy="export it again") from error


def plain(value: Any, done: dict[int, Any] | None = None) -> Any:
    """Return the data as dicts, lists, numbers, strings and finished arrays; shared objects stay shared."""
    done = {} if done is None else done
    if id(value) in done:
        return done[id(value)]
    result: Any
    if isinstance(value, Unfinished):
        result = value.finished()
    elif isinstance(value, dict):
        result = {key: plain(item, done) for key, item in value.items()}
    elif isinstance(value, (list, tuple, set, frozenset)):
        result = [plain(item, done) for item in value]
    else:
        return value
    done[id(value)] = result
    return result


def _check(condition: bool, what: str) -> None:
    if not condition:
        raise DataError(f"damaged or hostile pickle ({what})", remedy="export it again")
