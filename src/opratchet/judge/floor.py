"""Gate 5: figures that no run can have given, each with the arithmetic that shows it.

`impossible` asks it of anything that claims to be a time: it has to be a number, finite and over zero. `below_floor`
asks it of a latency against the physical floor of its workload (`opratchet.profile.roofline`): nothing is faster
than its bytes over the peak bandwidth, or its operations over the peak rate.

A figure that either of them names is `profile_invalid` and goes into no average: one zero or one infinity among
a thousand honest figures would decide the whole.
"""

from __future__ import annotations

import math
from decimal import Decimal
from numbers import Real
from typing import Any

from opratchet.operator.problems import shown
from opratchet.profile.roofline import Floor


def impossible(value: object, unit: str, where: str) -> str:
    """Why this cannot be a time; empty when it can. What passes has a logarithm as a float.

    Args:
        value: What claims to be a time: anything at all, since it may come from a candidate's process.
        unit: Its unit, e.g. `ns`.
        where: What it claims to be the time of, e.g. `n64: a batch of 12 calls`.
    """
    number = _as_float(value)
    if number is None:
        return f"{where} took {_shown(value)}, which is not a number of {unit}"
    took = f"{where} took {number:.6g} {unit}"
    if math.isnan(number):
        return f"{took}, which is not a number"
    if number == math.inf:
        return f"{took}: it would not have ended yet"
    if number == 0:
        return f"{took}: nothing is done in no time"
    if number < 0:
        return f"{took}: it would have ended before it began"
    return ""


def below_floor(measured_us: float, floor: Floor | None) -> str:
    """Why a latency is too good to be true, with the arithmetic; empty when it is not, or when no floor is known.

    Args:
        measured_us: Latency of a call, microseconds.
        floor: The time that no honest version can beat.
    """
    wrong = impossible(measured_us, "us", "a call")
    if wrong:
        return wrong
    if floor is None or measured_us >= floor.us:
        return ""
    return f"{measured_us:.6g} us is less than physics allows: {floor.arithmetic}"


def _as_float(value: object) -> float | None:
    """The value as a float, infinite when it is too large for one; None when it is not a number (a bool is none)."""
    if isinstance(value, bool) or not isinstance(value, (Real, Decimal)):
        return None
    number: Any = value
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf
    except (ValueError, TypeError, ArithmeticError):
        return None


def _shown(value: object) -> str:
    """What was sent instead of a number, short; its type alone where its `repr` fails, as of very long numbers."""
    try:
        return f"{shown(value)} ({type(value).__name__})"
    except Exception:  # a foreign `__repr__` may raise anything, and must not stop the judge
        return f"a {type(value).__name__}"
