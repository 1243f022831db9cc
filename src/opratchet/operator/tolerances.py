"""Element types, and how far a result may lie from the golden for each.

The defaults are those of the design template (section 8.2, 精度标准) for float16 and float32, and the common
override for bfloat16, whose 8 significant bits cannot hold 1e-2. Integers and booleans have to be equal. Eight-bit
floats have no default: no single figure suits them, so the manifest has to say it.
"""

from __future__ import annotations

from collections.abc import Mapping

from opratchet.operator.model import Tolerance

EXACT = Tolerance(rtol=0.0, atol=0.0)

_INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "bool")
_EIGHT_BIT_FLOATS = ("float8_e4m3", "float8_e4m3fn", "float8_e5m2")

DEFAULTS: Mapping[str, Tolerance] = {
    "float16": Tolerance(rtol=1e-2, atol=1e-2),
    "bfloat16": Tolerance(rtol=1.6e-2, atol=1.6e-2),
    "float32": Tolerance(rtol=1e-4, atol=1e-4),
    "float64": Tolerance(rtol=1e-7, atol=1e-7),
    **dict.fromkeys(_INTEGERS, EXACT),
}

DTYPES = frozenset(DEFAULTS) | frozenset(_EIGHT_BIT_FLOATS)

_OTHER_NAMES = {
    "half": "float16",
    "fp16": "float16",
    "bf16": "bfloat16",
    "float": "float32",
    "fp32": "float32",
    "double": "float64",
    "fp64": "float64",
    "int": "int32",
    "long": "int64",
}


def canonical(dtype: str) -> str:
    """The name used here for a dtype, e.g. `float16` for `half`; an unknown name comes back as it is."""
    return _OTHER_NAMES.get(dtype, dtype)
