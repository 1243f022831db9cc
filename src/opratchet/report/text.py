"""How single figures and texts are written in a page. A figure that does not exist is a dash, never a zero."""

from __future__ import annotations

from opratchet.ledger.words import Accuracy, Latency, Ratio
from opratchet.report.figures import Interval, is_accurate

NONE = "-"


def number(us: float | None) -> str:
    """Microseconds to 1/100; below 1 us four significant digits, because simulated figures can be that small."""
    if us is None:
        return NONE
    return f"{us:.2f}" if us >= 1 else f"{us:.4g}"


def percent(value: float | None) -> str:
    """`12.3%`, or a dash."""
    return NONE if value is None else f"{value:.1f}%"


def spread(latency: Latency | Interval | None) -> str:
    """Both ends of a latency's interval, `[240.90, 242.30]`, or a dash."""
    return NONE if latency is None else f"[{number(latency.low_us)}, {number(latency.high_us)}]"


def speedup(ratio: Ratio | None) -> str:
    """`1.72x [1.70, 1.74]`, or a dash. Three decimals near 1, where two could not tell gain from loss."""
    if ratio is None:
        return NONE
    digits = 3 if 0.9 < ratio.value < 1.1 else 2
    return f"{ratio.value:.{digits}f}x [{ratio.low:.{digits}f}, {ratio.high:.{digits}f}]"


def verdict(checks: list[Accuracy]) -> str:
    """`pass`, `fail`, or a dash when the accuracy gate was not reached."""
    passed = is_accurate(checks)
    return NONE if passed is None else "pass" if passed else "fail"


def one_line(text: str) -> str:
    """All on one line, so that a value cannot break the list or key it stands in."""
    return " ".join(text.split())


def cell(text: str) -> str:
    """A table cell: one line, bars escaped, a dash when empty."""
    return one_line(text).replace("|", "\\|") or NONE
