"""512 yes-or-no answers at a time: vectors of bits that compiled code can load, combine and store.

`load(at)` gives the 512 bits ("lanes") at an address; `&`, `|`, `^` and `~` work on all of them at
once; `store` puts them back. LLVM turns each into the widest instructions that the processor has,
which it does not do reliably for loops over words.

Memory is named by its address, not by arrays: Numba counts the references to an array whenever one
is handed to a function, which would take longer than what the functions do here. Whoever owns the
array has to mention it after the last use of its address, lest it be gone by then.
"""

import operator

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic, lower_builtin, models, register_model, type_callable

from bayeslink.kernels import helper, maker

WORDS = 8
LANES = 64 * WORDS
VECTOR = 8 * WORDS  # bytes

_WORD = ir.IntType(64)
_LLVM = ir.VectorType(_WORD, WORDS)


class Lanes(types.Type):
    """Numba's type of such a vector."""

    def __init__(self):
        super().__init__("Lanes")


_LANES = Lanes()


@register_model(Lanes)
class _LanesModel(models.PrimitiveModel):
    def __init__(self, manager, numba_type):
        super().__init__(manager, numba_type, _LLVM)


@maker
def empty_vectors(n):
    """Words for n vectors, from an address at which none straddles two lines of the cache."""
    words = np.empty((n + 1) * WORDS, np.uint64)
    skip = -(words.ctypes.data // 8) % WORDS
    return words[skip : skip + n * WORDS]


def _reader(result, llvm_type):
    """An instruction that reads a value of this type at an address."""

    @intrinsic
    def read(_, at):
        def emit(context, builder, signature, args):
            value = builder.load(builder.inttoptr(args[0], llvm_type.as_pointer()))
            value.align = min(8, context.get_abi_sizeof(llvm_type))
            return value

        return result(types.intp), emit

    return read


load = _reader(_LANES, _LLVM)
word_at = _reader(types.uint64, _WORD)
number_at = _reader(types.int32, ir.IntType(32))


@helper
def bit_at(at, lane):
    """The bit, 0 or 1, of one lane of the vector at an address."""
    return np.int64((word_at(at + lane // 64 * 8) >> np.uint64(lane % 64)) & np.uint64(1))


@intrinsic
def store(_, at, lanes):
    def emit(context, builder, signature, args):
        builder.store(args[1], builder.inttoptr(args[0], _LLVM.as_pointer())).align = 8
        return context.get_dummy_value()

    return types.void(types.intp, lanes), emit


@intrinsic
def none_set(_):
    return _LANES(), lambda *_: ir.Constant(_LLVM, [ir.Constant(_WORD, 0)] * WORDS)


@intrinsic
def every_set(_):
    return _LANES(), lambda *_: ir.Constant(_LLVM, [ir.Constant(_WORD, -1)] * WORDS)


@intrinsic
def all_set(_, lanes):
    """Whether every bit is set."""

    def emit(context, builder, signature, args):
        whole = builder.bitcast(args[0], ir.IntType(LANES))
        return builder.icmp_unsigned("==", whole, ir.Constant(whole.type, -1))

    return types.boolean(lanes), emit


@intrinsic
def lowest_bit(_, word):
    """Position of the lowest bit that is set in a word other than 0."""

    def emit(context, builder, signature, args):
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), True))

    return types.int64(types.uint64), emit


def _define(sign, instruction):
    """Let compiled code read `sign` between two vectors as LLVM's `instruction`."""

    @type_callable(sign)
    def result_type(_):
        return lambda x, y: _LANES if x == y == _LANES else None

    @lower_builtin(sign, Lanes, Lanes)
    def emit(context, builder, signature, args):
        return getattr(builder, instruction)(*args)


_define(operator.and_, "and_")
_define(operator.or_, "or_")
_define(operator.xor, "xor")


@type_callable(operator.invert)
def _type_of_inverse(_):
    return lambda x: _LANES if x == _LANES else None


@lower_builtin(operator.invert, Lanes)
def _inverse(context, builder, signature, args):
    return builder.not_(*args)
