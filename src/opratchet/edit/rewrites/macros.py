"""Transcendental functions of a float32 as TileLang macros: arithmetic only, so that g++ makes vectors of them.

The argument is clamped first. A comparison of floats would do it, but may raise an exception flag, and g++ leaves a loop
alone in which such arithmetic hangs on a condition, unless flags allow it. The bits of a float, taken as a whole number,
compare without that: as unsigned numbers the negative floats lie above all others and grow with their magnitude, so
that a minimum bounds them from below; as signed ones the positive floats lie above all others, and a minimum bounds
them from above. Both take NaN for something large, so it is put back: 0x7FC00000, which makes a NaN of any float, is
merged into the bits of a factor. Infinities and NaN thus come out as the library gives them. (Under fast-math the
compiler takes it that there is no NaN; the bounds, which are no floats to it, hold.)

`exp` and `exp2` write x (or x / ln 2) as n + f with n the nearest whole number. Adding 2^23 + 126 rounds to that: a
float of this size has no digits behind the point, so that its low bits hold n + 126. Shifted to the place of the exponent
they *are* 2^(n - 1), and the polynomial gives the missing factor 2. Results below 1.7e-38, which is 1.4 times the least
normal number, become zero; those beyond the largest become infinity. n itself comes from the bits as an integer: as a
float it would be the difference of two sums, which a compiler that may reassociate takes for x. 2 * 2^f on
[-1/2, 1/2] is the polynomial of degree 5 through 2 at 0 whose largest relative error is smallest (9.2e-8).

`erf` and `tanh` are the rational functions of Eigen (generic_fast_erf, generic_fast_tanh), on the range beyond which
float32 has all but reached 1.

Constants have seven digits, for the code generator prints no more. The relative error is below 1e-6, as tested; that of
`exp` and `sigmoid` grows with the rounding of x / ln 2, to 6e-6 at the ends of their range.
What is used several times is held in a variable, because TVM writes an expression out anew at each use.
"""

from __future__ import annotations

import re
import struct
import textwrap

import libcst as cst

from opratchet.edit.tree import Statement, statement


def _bits(value: float) -> str:
    """The bits of a float32, hexadecimal."""
    return f"0x{struct.unpack('>I', struct.pack('>f', value))[0]:08X}"


def _clamped(name: str, x: str, low: float, high: float) -> str:
    return f"""\
# {low} <= {name} <= {high}, by the order of their bits.
low = T.min(T.reinterpret({x}, "uint32"), T.uint32({_bits(low)}))
{name} = T.reinterpret(T.min(T.reinterpret(low, "int32"), {_bits(high)}), "float32")
"""


_EXPONENT = 'n = T.alloc_var("int32")\nr = T.alloc_var("float32")\n'
# 0x4B00007E are the bits of 2^23 + 126.
_POWER_OF_2 = """\
n = T.reinterpret(r + 8388734.0, "int32")
r = r - T.cast(n - 0x4B00007E, "float32")
p = 2.652930e-3 * r + 1.934303e-2
p = p * r + 1.110147e-1
p = p * r + 4.804448e-1
p = p * r + 1.386294
p = p * r + 2.0
nan = T.if_then_else(T.isnan(x), 0x7FC00000, 0)
"""
_POWER = 'p * T.reinterpret(T.bitwise_or(T.shift_left(n, 23), nan), "float32")'
_ODD = 'u = T.alloc_var("float32")\ny = T.alloc_var("float32")\n'
_SQUARE = "y = u * u\n"
_QUOTIENT = """\
nan = T.if_then_else(T.isnan(x), 0x7FC00000, 0)
return p / q * T.reinterpret(T.bitwise_or(T.reinterpret(u, "int32"), nan), "float32")
"""
_ERF = """\
p = -2.726142e-10 * y + 2.770681e-8
p = p * y - 2.101024e-6
p = p * y - 5.692506e-5
p = p * y - 7.349906e-4
p = p * y - 2.954600e-3
p = p * y - 1.609603e-2
q = -1.456607e-5 * y - 2.133741e-4
q = q * y - 1.682827e-3
q = q * y - 7.373329e-3
q = q * y - 1.426474e-2
"""
_TANH = """\
p = -2.760768e-16 * y + 2.000188e-13
p = p * y - 8.604672e-11
p = p * y + 5.122297e-8
p = p * y + 1.485722e-5
p = p * y + 6.372619e-4
p = p * y + 4.893525e-3
q = 1.198258e-6 * y + 1.185347e-4
q = q * y + 2.268435e-3
q = q * y + 4.893525e-3
"""


def _exp(x: str, high: float, result: str) -> str:
    start = f"{_EXPONENT}{_clamped('r', x, -87.3, high)}r = r * 1.442695\n"
    return f"{start}{_POWER_OF_2}return {result.format(_POWER)}\n"


def _odd(bound: float, polynomials: str) -> str:
    return f"{_ODD}{_clamped('u', 'x', -bound, bound)}{_SQUARE}{polynomials}{_QUOTIENT}"


MACROS: dict[str, str] = {
    "exp": _exp("x", 88.8, "{0}"),
    "exp2": f"{_EXPONENT}{_clamped('r', 'x', -126.0, 128.1)}{_POWER_OF_2}return {_POWER}\n",
    # Bounded so that the divisor stays finite: the fast reciprocal of fast-math would make NaN of infinity.
    "sigmoid": _exp("-x", 88.3, "1.0 / (1.0 + {0})"),
    "erf": _odd(4.0, _ERF),
    "tanh": _odd(7.905311, _TANH),
}


def macro(function: str, name: str, module: str) -> Statement:
    """The macro for a function, with a blank line below it.

    Args:
        function: One of `MACROS`.
        name: What the macro is to be called.
        module: What the kernel calls `tilelang.language`, usually `T`.
    """
    body = re.sub(r"\bT\.", f"{module}.", MACROS[function])
    text = f"@{module}.macro\ndef {name}(x):\n{textwrap.indent(body, '    ')}"
    made = statement(text)
    assert isinstance(made, cst.FunctionDef)
    blank = cst.EmptyLine(indent=False)
    return made.with_changes(body=made.body.with_changes(footer=[blank]))
