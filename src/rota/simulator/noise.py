"""Simulated deviations from nominal times: noise, drift of slots, and the overhead of reports."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rota.core.errors import ConfigError

MOST_NOISE = 10.0
AHEAD = 32  # numbers drawn at once for each row


@dataclass(frozen=True, slots=True)
class TimingNoise:
    """Random deviations of step times."""

    noise: float = 0.0
    """Standard deviation of the logarithm of an interval's time; the mean factor is 1."""
    drift: float = 0.0
    """Standard deviation of the change of the logarithm of a slot's speed over one interval."""
    seed: int = 0

    def __post_init__(self) -> None:
        if not (0.0 <= self.noise < MOST_NOISE and 0.0 <= self.drift < MOST_NOISE):
            raise ConfigError(f"sigma is {self.noise}, drift {self.drift}; give 0 to {MOST_NOISE:g}")

    def draws(self, trials: int, slots: int) -> tuple["Draws", "Draws"]:
        """Return the random numbers of trials and of slots.

        The n-th interval of a trial has the same noise under any allocation; lost ones count too.
        """
        return _draws((self.seed, 0), trials), _draws((self.seed, 1), slots)


@lru_cache(maxsize=16)
def _draws(seed: tuple[int, ...], rows: int) -> "Draws":
    return Draws(seed, rows)


def normals(noise: TimingNoise, trials: int, parts: int) -> NDArray[np.float64]:
    """Return the standard normal number behind each trial's n-th factor, for at least `parts` intervals."""
    draws = _draws((noise.seed, 0), trials)
    return np.hstack([draws.block(number) for number in range(-(-parts // AHEAD))])


class Draws:
    """Standard normal numbers, a sequence for each row that does not depend on the order of calls."""

    def __init__(self, seed: tuple[int, ...], rows: int) -> None:
        self._seed, self._rows = seed, rows
        self._blocks: list[NDArray[np.float64]] = []

    def block(self, number: int) -> NDArray[np.float64]:
        """Return a block of numbers for all rows, since creating a generator per row is slow."""
        while len(self._blocks) <= number:
            random = np.random.default_rng((*self._seed, len(self._blocks)))
            self._blocks.append(random.standard_normal((self._rows, AHEAD)))
        return self._blocks[number]


@dataclass(frozen=True, slots=True)
class ReportOverhead:
    """Overhead of each interval, apart from its steps."""

    load_s: float = 0.0
    """Seconds to load a trial that is not in the slot's memory, from its checkpoint or from the start."""
    evaluate_s: float = 0.0
    """Seconds to evaluate the trial, on a slot of speed 1; they count as training time."""
    save_s: float = 0.0
    """Seconds to save its checkpoint."""

    def __post_init__(self) -> None:
        for field in fields(self):
            if not 0.0 <= getattr(self, field.name) < math.inf:
                raise ConfigError(f"{field.name} is {getattr(self, field.name)}; it must be 0 or more")

    @classmethod
    def recorded(cls, details: Mapping[str, Any]) -> "ReportOverhead":
        """Return the overhead measured with curves; none if it was not."""
        return cls(**details.get("overhead", details.get("besides", {})))
