"""`Lanes`: 64 numbers at once in compiled loops, held in registers, whatever vectors the processor has.

A compiler makes vectors of a plain loop by itself, but writes them to memory after every step. With `Lanes` a loop can
take all steps for 64 numbers before it goes on:

    y = lanes(0.0)
    for t in range(taps):
        y = add_scaled(y, x, begin[t], weight[t])  # y += weight[t] * x[begin[t] : begin[t] + 64]
    bits = positive(y)

These functions only work inside functions that numba compiles. Nothing checks bounds.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba.core import types
from numba.core.datamodel import PrimitiveModel
from numba.core.imputils import impl_ret_untracked
from numba.extending import intrinsic, register_model

WIDTH = 64
_FLOAT, _WORD = ir.FloatType(), ir.IntType(64)
_VECTOR = ir.VectorType(_FLOAT, WIDTH)
_FAST = ("nnan", "nsz", "reassoc")


class _Lanes(types.Type):
    def __init__(self) -> None:
        super().__init__("Lanes")


LANES = _Lanes()


@register_model(_Lanes)
class _LanesModel(PrimitiveModel):
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, _VECTOR)


def _splat(builder: Any, number: Any) -> Any:
    """Return a vector of one number."""
    first = builder.insert_element(ir.Constant(_VECTOR, ir.Undefined), number, ir.Constant(ir.IntType(32), 0))
    places = ir.Constant(ir.VectorType(ir.IntType(32), WIDTH), [0] * WIDTH)
    return builder.shuffle_vector(first, ir.Constant(_VECTOR, ir.Undefined), places)


def _constant(numbers: list[float]) -> Any:
    return ir.Constant(_VECTOR, numbers)


def _address(context: Any, builder: Any, kind: Any, array: Any, index: Any) -> Any:
    """Return a pointer to the numbers of a contiguous array that begin at an index."""
    found = context.make_array(kind)(context, builder, array)
    return builder.bitcast(builder.gep(found.data, [index]), _VECTOR.as_pointer())


def _reduced(builder: Any, name: str, *given: Any) -> Any:
    """Call one of the functions that make one number of a vector."""
    kind = ir.FunctionType(_FLOAT, [one.type for one in given])
    function = builder.module.globals.get(name) or ir.Function(builder.module, kind, name)
    return builder.call(function, given, fastmath=_FAST)


def _part(builder: Any, vector: Any, begin: int, width: int) -> Any:
    """Return some neighbouring lanes as a shorter vector."""
    lanes = ir.Constant(ir.VectorType(ir.IntType(32), width), list(range(begin, begin + width)))
    return builder.shuffle_vector(vector, vector, lanes)


def _returned(kind: Any, generate: Callable[..., Any]) -> Any:
    def wrapped(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        return impl_ret_untracked(context, builder, kind, generate(context, builder, signature, given))

    return wrapped


@intrinsic
def lanes(typing_context: Any, number: Any) -> Any:  # pragma: no cover (compiled)
    """Return 64 times the same number."""
    return LANES(types.float32), _returned(LANES, lambda context, builder, signature, given: _splat(builder, given[0]))


@intrinsic
def add_scaled(typing_context: Any, y: Any, x: Any, begin: Any, weight: Any) -> Any:  # pragma: no cover (compiled)
    """Return y + weight * x[begin : begin + 64], rounded once where the processor can."""

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        row = builder.load(_address(context, builder, signature.args[1], given[1], given[2]), align=4)
        return builder.fadd(
            given[0], builder.fmul(row, _splat(builder, given[3]), flags=("contract",)), flags=("contract",)
        )

    return LANES(LANES, x, types.int64, types.float32), _returned(LANES, generate)


@intrinsic
def store(typing_context: Any, y: Any, x: Any, begin: Any) -> Any:  # pragma: no cover (compiled)
    """Set x[begin : begin + 64] to y."""

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        builder.store(given[0], _address(context, builder, signature.args[1], given[1], given[2]), align=4)
        return context.get_dummy_value()

    return types.void(LANES, x, types.int64), generate


@intrinsic
def first(typing_context: Any, y: Any, number: Any, other: Any) -> Any:  # pragma: no cover (compiled)
    """Return the first `number` lanes, and `other` in the rest."""

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        wanted = _splat(builder, builder.sitofp(given[1], _FLOAT))
        inside = builder.fcmp_ordered("<", _constant([float(lane) for lane in range(WIDTH)]), wanted)
        return builder.select(inside, given[0], _splat(builder, given[2]))

    return LANES(LANES, types.int64, types.float32), _returned(LANES, generate)


@intrinsic
def positive(typing_context: Any, y: Any) -> Any:  # pragma: no cover (compiled)
    """Return a bit for every lane, the lowest one for the first: whether it is positive."""

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        above = builder.fcmp_ordered(">", given[0], _constant([0.0] * WIDTH))
        return builder.bitcast(above, _WORD)

    return types.uint64(LANES), generate


@intrinsic
def add_positive(typing_context: Any, total: Any, y: Any) -> Any:  # pragma: no cover (compiled)
    """Return total + max(y, 0)."""

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        zero = _constant([0.0] * WIDTH)
        return builder.fadd(given[0], builder.select(builder.fcmp_ordered(">", given[1], zero), given[1], zero))

    return LANES(LANES, LANES), _returned(LANES, generate)


@intrinsic
def larger(typing_context: Any, one: Any, other: Any) -> Any:  # pragma: no cover (compiled)
    """Return the larger one of every pair of lanes."""

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        return builder.select(builder.fcmp_ordered(">", given[0], given[1]), given[0], given[1])

    return LANES(LANES, LANES), _returned(LANES, generate)


@intrinsic
def total_of(typing_context: Any, y: Any) -> Any:  # pragma: no cover (compiled)
    """Return the sum of the lanes: those that are 16 apart first, then those that are 32, 8, 4, 2 and 1 apart."""

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        one, two, three, four = (_part(builder, given[0], begin, 16) for begin in range(0, WIDTH, 16))
        total = builder.fadd(builder.fadd(one, two), builder.fadd(three, four))
        return _reduced(builder, "llvm.vector.reduce.fadd.v16f32", ir.Constant(_FLOAT, 0.0), total)

    return types.float32(LANES), generate


@intrinsic
def largest_of(typing_context: Any, y: Any) -> Any:  # pragma: no cover (compiled)
    """Return the largest lane."""

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        return _reduced(builder, f"llvm.vector.reduce.fmax.v{WIDTH}f32", given[0])

    return types.float32(LANES), generate


@intrinsic
def popcount(typing_context: Any, word: Any) -> Any:  # pragma: no cover (compiled)
    """Count the one bits of a 64-bit word by the processor's instruction, which numba has no function for."""

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        function = builder.module.declare_intrinsic("llvm.ctpop", [_WORD], ir.FunctionType(_WORD, [_WORD]))
        return builder.call(function, given)

    return types.uint64(types.uint64), generate


@intrinsic
def leading_zeros(typing_context: Any, word: Any) -> Any:  # pragma: no cover (compiled)
    """Count the zero bits above the highest one bit of a 64-bit word; 64 if there is none."""

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        return builder.ctlz(given[0], ir.Constant(ir.IntType(1), 0))

    return types.uint64(types.uint64), generate
