"""Simulated machines: how they disturb the timing of two versions of a kernel, with the truth known.

Each trial draws from its own generator, in an order that does not depend on who times: how loaded the machine is, the
states of its processes, then blocks of noise. Two rules that are run on machines of the same seed therefore meet the same
processes and the same disturbances, call after call, however many each of them uses up.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from opratchet.judge.decision import Logs
from opratchet.lab.pairs import STEADY, WARM_BATCHES

Array = NDArray[np.float64]
NAME = "w"
WEIGHTS = {NAME: 1.0}
CALLS_A_TRIAL = 20  # of the plain rules that take ten of each: what "drift a trial" is spread over
BLOCK = 2048  # calls whose noise is drawn at once
PROCESSES = 2048  # processes whose states are drawn at once; no trial starts more


@dataclass(frozen=True)
class Noise:
    """How a machine disturbs the logarithm of a timing.

    Attributes:
        sd: Range from which each trial draws its standard deviation.
        spike: How often a timing takes three times as long.
        states: Half the distance of the two states of a process.
        drift: Growth or fall over a trial of `CALLS_A_TRIAL` timings; each machine draws which.
        first: Factor of the first timing of a process.
    """

    sd: tuple[float, float]
    spike: float = 0.0
    states: float = 0.0
    drift: float = 0.0
    first: float = 1.0


MODELS = {
    "gaussian 0.3 %": Noise((0.003, 0.003)),
    "gaussian 1.1 %": Noise((0.011, 0.011)),
    "heavy-tailed": Noise((0.15, 0.30), spike=0.03),
    "bimodal +-5 %": Noise((0.003, 0.003), states=0.05),
    "drift 1 % a trial": Noise((0.003, 0.003), drift=0.01),
    "first call 5x": Noise((0.003, 0.003), first=5.0),
    "all together": Noise((0.15, 0.30), spike=0.03, states=0.05, drift=0.01, first=5.0),
}


class Machine:
    """One machine with a clock that counts timings; its trial number 0 is the calibration.

    Args:
        noise: How it disturbs timings.
        seed: What everything that it draws depends on.
    """

    def __init__(self, noise: Noise, seed: int) -> None:
        self.noise = noise
        self.seed = seed
        self.calls = 0
        self.trial = -1
        way = 1.0 if np.random.default_rng([seed, 0, 1]).random() < 0.5 else -1.0
        self._slope = way * noise.drift / CALLS_A_TRIAL
        self._first = float(np.log(noise.first))
        self.begin_trial()

    def begin_trial(self) -> None:
        """Draw how loaded the machine is from here on, and the states of the processes to come."""
        self.trial += 1
        self._generator = np.random.default_rng([self.seed, self.trial])
        self._sd = float(self._generator.uniform(*self.noise.sd))
        signs = 2.0 * self._generator.integers(0, 2, PROCESSES if self.noise.states else 0) - 1.0
        self._states = iter((self.noise.states * signs).tolist())
        self._ahead = np.empty(0)
        self._used = 0

    def process(self) -> float:
        """State of a fresh process, added to all its log times."""
        return float(next(self._states)) if self.noise.states else 0.0

    def times(self, count: int) -> Array:
        """Log disturbances of the next timings, whoever's they are, in order."""
        found = self._peek(count)
        if self._slope:
            found = found + self._slope * (self.calls + np.arange(count))
        self._used += count
        self.calls += count
        return found

    def alone(self, level: float, count: int) -> Array:
        """Log times of one fresh process that is timed on its own, first call included."""
        found = self.times(count) + (level + self.process())
        found[0] += self._first
        return found

    def warm_up(self) -> None:
        """As `lab.pairs`: a first call that never counts, then calls until the last three are steady."""
        self.times(1)
        ahead = self._peek(WARM_BATCHES)
        for used in range(3, WARM_BATCHES + 1):
            last = ahead[used - 3 : used].tolist()
            if max(last) - min(last) <= _STEADY:
                break
        self._used += used
        self.calls += used

    @contextmanager
    def bout(self, gain: float) -> Iterator[SimulatedBout]:
        """A pair of fresh processes; the candidate is faster by `gain`, a fraction."""
        yield SimulatedBout(self, float(np.log1p(gain)))

    def _peek(self, count: int) -> Array:
        """Noise of the next calls, which stay to be taken."""
        if self._used + count > self._ahead.size:
            left = [self._ahead[self._used :]]
            while sum(map(len, left)) < count:
                left.append(self._block())
            self._ahead, self._used = np.concatenate(left), 0
        return self._ahead[self._used : self._used + count]

    def _block(self) -> Array:
        """Noise of a block of calls."""
        drawn = self._generator.normal(0.0, self._sd, BLOCK)
        if self.noise.spike:
            drawn += _SPIKE * (self._generator.random(BLOCK) < self.noise.spike)
        return drawn


_STEADY = float(np.log1p(STEADY))
_SPIKE = float(np.log(3.0))


class SimulatedBout:
    """Two processes in turns, as the lab times them: warmed up until steady, then ABBA."""

    def __init__(self, machine: Machine, gain: float) -> None:
        self.machine = machine
        self.apart = machine.process() - machine.process() + gain
        machine.warm_up()
        machine.warm_up()

    def take(self, pairs: int) -> Logs:
        """Log ratios of pairs in the order AB BA."""
        drawn = self.machine.times(2 * pairs)
        ratios = drawn[::2] - drawn[1::2]
        ratios[1::2] *= -1.0
        return {NAME: (ratios + self.apart).tolist()}
