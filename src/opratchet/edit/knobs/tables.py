"""What may be written into `@tilelang.jit(...)`, by target. Every row was tried on the tool it is for.

Flags of g++ 12, tried with the generated code of the shipped examples:

- glibc declares its vector `exp`, `erf`, `tanh` (libmvec, at most 4 units in the last place) only where
  `__FAST_MATH__` is defined, and GCC calls them only where `errno` need not be set. `-fno-math-errno -D__FAST_MATH__`
  gives just that, and changes no other rule of arithmetic.
- `-ffast-math` also links start-up code (GCC before 13, into shared objects too) that flushes denormal numbers to zero in
  the whole thread. The value `fast_math.parts` is the same set of rules without that.
- g++ makes a vector of a maximum only where neither NaN nor the sign of a zero counts; `fast_math.finite` gives just that.
- `-Ofast` is not listed as an optimisation level, because it turns fast-math on by the way.

Pass configurations of TileLang 0.1.15: of all keys of its `PassConfigKey`, only those below change the code that the `c`
target makes from the shipped examples. `tl.disable_safe_memory_legalize` is left out on purpose: it takes away bounds
checks, and a test on chosen shapes cannot prove that none is needed.
"""

from __future__ import annotations

import platform
from collections.abc import Mapping
from dataclasses import dataclass

OPTIMISATION = "optimisation"
FAST_MATH = "fast_math"

_PARTS = (
    "-fno-math-errno -fno-trapping-math -fno-signed-zeros -fassociative-math"
    " -freciprocal-math -ffinite-math-only -D__FAST_MATH__"
)
_GCC: Mapping[str, tuple[str, ...]] = {
    "unroll": ("", "-funroll-loops"),
    "cost_model": ("", "-fvect-cost-model=unlimited"),
    "loop_patterns": ("", "-fno-tree-loop-distribute-patterns"),
    OPTIMISATION: ("", "-O3 -march=native", "-O2 -march=native", "-O3", "-O2"),
    f"{FAST_MATH}.vector_library": ("", "-fno-math-errno -D__FAST_MATH__"),
    f"{FAST_MATH}.no_traps": ("", "-fno-math-errno -fno-trapping-math"),
    f"{FAST_MATH}.reassociate": ("", "-fassociative-math -fno-signed-zeros -fno-trapping-math"),
    f"{FAST_MATH}.reciprocal": ("", "-freciprocal-math"),
    f"{FAST_MATH}.finite": ("", "-ffinite-math-only -fno-signed-zeros"),
    f"{FAST_MATH}.parts": ("", _PARTS),
    FAST_MATH: ("", "-ffast-math"),
}
_WIDTHS = (64, 32, 16)  # bytes of a zmm, ymm and xmm register


def gcc_flag_groups(vector_bytes: int) -> dict[str, tuple[str, ...]]:
    """Groups of g++ flags with their legal values, for `Target.compile_flags`; the first value is "absent".

    Args:
        vector_bytes: Width of the machine's vector registers.
    """
    if platform.machine().lower() not in ("x86_64", "amd64"):
        return dict(_GCC)
    fitting = [width for width in _WIDTHS if width <= vector_bytes]
    widths = [f"-mprefer-vector-width={8 * width}" for width in fitting[:2]]
    return {"vector_width": ("", *widths), **_GCC}


@dataclass(frozen=True)
class PassConfig:
    """One pass configuration.

    Attributes:
        key: Key in the dict.
        constant: Its name in `PassConfigKey`, as sources may write it; empty when it has none.
        values: Legal values as Python text, without "absent".
        what: What it does, for people.
        buffers: Whether it decides how many buffers a copy is given.
    """

    key: str
    constant: str
    values: tuple[str, ...]
    what: str
    buffers: bool = False


PASS_CONFIGS: Mapping[str, tuple[PassConfig, ...]] = {
    "tilelang-c": (
        PassConfig(
            "tirx.disable_vectorize",
            "TIR_DISABLE_VECTORIZE",
            ("True",),
            "copies stay scalar loops, which g++ may then vectorise with the widest registers",
        ),
        PassConfig(
            "tl.storage_rewrite_detect_inplace",
            "TL_STORAGE_REWRITE_DETECT_INPLACE",
            ("True",),
            "a result may take the buffer of an operand that is not needed any more",
        ),
        PassConfig(
            "tl.UnrollLoop",
            "",
            ('{"explicit_unroll": True, "auto_max_step": 16}', '{"explicit_unroll": True}'),
            "short loops are written out",
        ),
        PassConfig(
            "tl.config_index_bitwidth",
            "TL_CONFIG_INDEX_BITWIDTH",
            ("64",),
            "64-bit indices, which need no sign extension on a 64-bit machine",
        ),
    ),
    "tilelang-npuir": (
        PassConfig(
            "npuir.enable_auto_multi_buffer",
            "",
            ("True", "False"),
            "the compiler gives each copy several buffers",
            buffers=True,
        ),
        PassConfig(
            "npuir.disable_hivm_auto_inject_sync",
            "",
            ("True", "False"),
            "the compiler puts in no synchronisation of its own",
        ),
    ),
}
