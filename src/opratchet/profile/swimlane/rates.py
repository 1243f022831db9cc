"""The three rates by which PyPTO's procedure judges a swimlane."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Rates:
    """Fractions; how they are computed is told where they are made (`upstream`, `honest`).

    Attributes:
        core_utilisation: Share of the core time that was spent on tasks, 0 to 1.
        bubble: Share that was lost waiting for the scheduler, 0 to 1.
        load_balance: 1 when all cores worked equally long. Upstream's is 1 - deviation / mean, which falls below 0
            where the deviation is larger than the mean.
    """

    core_utilisation: float
    bubble: float
    load_balance: float
