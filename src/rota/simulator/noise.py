"""Why an interval takes longer than its steps: noise, slots that drift, and the overhead of reports."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import lru_cache
from math import exp, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rota.core.errors import ConfigError

MOST_NOISE = 10.0
AHEAD = 32  # numbers drawn at once for each row


@dataclass(frozen=True, slots=True)
class TimingNoise:
    """How far times are off."""

    noise: float = 0.0
    """Each part takes exp(N(-noise²/2, noise)) times as long: 1 on average."""
    drift: float = 0.0
    """How far the logarithm of a slot's speed wanders in an interval of training; in a part of one less."""
    seed: int = 0

    def __post_init__(self) -> None:
        if not (0.0 <= self.noise < MOST_NOISE and 0.0 <= self.drift < MOST_NOISE):
            raise ConfigError(f"sigma is {self.noise}, drift {self.drift}; give 0 to {MOST_NOISE:g}")


class NoiseStream:
    """The factors themselves. Part n of a trial has the same one whatever the allocation: runs compare."""

    def __init__(self, weather: TimingNoise, trials: int, slots: int) -> None:
        self._noise, self._drift = weather.noise, weather.drift
        self._of_trials = Draws((weather.seed, 0), trials)
        self._of_slots = Draws((weather.seed, 1), slots)
        self._off = [0.0] * slots

    def factor(self, trial: int, slot: int, intervals: float = 1.0) -> float:
        """Of the next part of a trial, of so many intervals. A part that is lost with its node counts."""
        off = 0.0
        if self._noise:
            off = self._noise * (self._of_trials.draw(trial) - self._noise / 2)
        if self._drift:
            self._off[slot] += self._drift * sqrt(intervals) * self._of_slots.draw(slot)
            off += self._off[slot]
        return exp(off)


@lru_cache(maxsize=4)
def normals(weather: TimingNoise, trials: int, parts: int) -> NDArray[np.float64]:
    """Trial, part → the normal number that luck makes its factor of; so many parts or more."""
    draws = Draws((weather.seed, 0), trials)
    return np.hstack([draws.block(number) for number in range(-(-parts // AHEAD))])


class Draws:
    """Normal numbers, a sequence for each row: the same in whichever order rows are asked for."""

    def __init__(self, seed: tuple[int, ...], rows: int) -> None:
        self._seed = seed
        self._blocks: list[NDArray[np.float64]] = []
        self._begun = [0] * rows
        self._next: list[list[float]] = [[] for _ in range(rows)]

    def draw(self, row: int) -> float:
        if not self._next[row]:
            self._next[row] = self.block(self._begun[row])[row, ::-1].tolist()
            self._begun[row] += 1
        return self._next[row].pop()

    def block(self, number: int) -> NDArray[np.float64]:
        """For all rows at once: a generator for each would take longer to make than to use."""
        while len(self._blocks) <= number:
            random = np.random.default_rng((*self._seed, len(self._blocks)))
            self._blocks.append(random.standard_normal((len(self._next), AHEAD)))
        return self._blocks[number]


@dataclass(frozen=True, slots=True)
class ReportOverhead:
    """Of each part that a slot trains."""

    load_s: float = 0.0
    """To take a trial up that the slot does not have in its memory, from its checkpoint or from the start."""
    evaluate_s: float = 0.0
    """To find out how good it is, on a slot of speed 1; counts as computing."""
    save_s: float = 0.0
    """To keep its checkpoint."""

    def __post_init__(self) -> None:
        for field in fields(self):
            if not 0.0 <= getattr(self, field.name) < math.inf:
                raise ConfigError(f"{field.name} is {getattr(self, field.name)}; it must be 0 or more")

    @classmethod
    def recorded(cls, details: Mapping[str, Any]) -> "ReportOverhead":
        """As measured with curves; nothing if it was not."""
        return cls(**details.get("overhead", details.get("besides", {})))
