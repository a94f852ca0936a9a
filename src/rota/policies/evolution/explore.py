"""Exploration of hyper-parameters: drawn again, perturbed, or shifted along a list."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rota.core.errors import ConfigError, unknown
from rota.core.population.events import Hyper


@dataclass(frozen=True, slots=True)
class Space:
    """The values of a hyper-parameter: `low` to `high`, `low` to just `below` a limit, or a list."""

    low: float | None = None
    """Lowest value of a range."""
    high: float | None = None
    """Highest value of a range."""
    below: float | None = None
    """Limit that is not reached, instead of `high`: 1 for a momentum."""
    log: bool = False
    """Draw from a range uniformly in its logarithm."""
    values: tuple[float, ...] = ()
    """Numbers to choose from, instead of a range; whole numbers stay whole."""
    names: tuple[str, ...] = ()
    """Words to choose from."""

    def __post_init__(self) -> None:
        if (self.low is not None) + bool(self.values) + bool(self.names) != 1:
            raise ConfigError("give low and high, low and below, values, or names")
        if self.low is None:
            if (self.high, self.below, self.log) != (None, None, False):
                raise ConfigError("high, below and log belong to a range; give low with them, and no list")
        elif (self.high is None) == (self.below is None):
            raise ConfigError("a range has low and either high or below")
        elif not (-math.inf < self.low < self.most < math.inf and (self.low > 0.0 or not self.log)):
            raise ConfigError(
                f"a range of {self.low:g} to {self.most:g}; give less before more, both above 0 for log"
            )

    @property
    def most(self) -> float:
        """The upper end of a range, whether it may be reached or not."""
        end = self.below if self.high is None else self.high
        return math.nan if end is None else end

    @property
    def listed(self) -> Sequence[Any]:
        """The values to choose from; empty for a range."""
        return self.values or self.names

    def draw(self, random: np.random.Generator) -> Any:
        """Return a value drawn uniformly."""
        if self.listed:
            return self.listed[int(random.integers(len(self.listed)))]
        ends = np.array([self.low, self.most], float)
        drawn = math.exp(random.uniform(*np.log(ends))) if self.log else random.uniform(*ends)
        return self.kept(drawn, drawn)

    def shifted(self, value: Any, random: np.random.Generator) -> Any:
        """Return the previous or next value of the list, if there is one."""
        at = self.listed.index(value) + (1 if random.random() < 0.5 else -1)
        return self.listed[min(max(at, 0), len(self.listed) - 1)]

    def kept(self, value: float, before: float) -> float:
        """Return a value within the range; one that would reach the excluded end goes half-way there."""
        assert self.low is not None
        if self.below is None:
            return min(max(value, self.low), self.most)
        if value >= self.below:
            value = min((before + self.below) / 2, math.nextafter(self.below, -math.inf))
        return max(value, self.low)


USUAL: Mapping[str, Space] = {"lr": Space(1e-4, 1.0), "momentum": Space(1e-4, below=1.0)}
"""Spaces that are explored by default."""


@dataclass(frozen=True, slots=True)
class Explorer:
    """A way to perturb hyper-parameters."""

    spaces: Mapping[str, Space]
    resample: float
    """Probability that a value is drawn again."""
    factors: tuple[float, ...]
    """Factors by one of which the value is multiplied otherwise."""
    clamp: bool = True
    """Keep to the ranges; else a factor may leave them."""

    def explore(self, hyper: Hyper, random: np.random.Generator) -> dict[str, Any]:
        """Return a perturbed copy; hyper-parameters without a space are unchanged."""
        changed = dict(hyper)
        for name, space in self.spaces.items():
            if name not in changed:
                raise ConfigError(unknown("hyper-parameter in space:", name, changed))
            changed[name] = self._changed(space, changed[name], random)
        return changed

    def _changed(self, space: Space, value: Any, random: np.random.Generator) -> Any:
        again = random.random() < self.resample
        if space.listed:
            new = space.draw(random) if again or value not in space.listed else space.shifted(value, random)
        elif again:
            new = space.draw(random)
        else:
            new = self._perturbed(space, value, random)
        return self._whole(space, new) if isinstance(value, int) and isinstance(new, float) else new

    def _perturbed(self, space: Space, value: float, random: np.random.Generator) -> float:
        factor = self.factors[int(random.integers(len(self.factors)))]
        return space.kept(value * factor, value) if self.clamp else value * factor

    def _whole(self, space: Space, value: float) -> int | float:
        """Return the nearest allowed whole number; the value itself if there is none."""
        near = sorted((math.floor(value), math.ceil(value)), key=lambda whole: abs(whole - value))
        for whole in near:
            if self._allowed(space, whole):
                return whole
        return value

    def _allowed(self, space: Space, whole: int) -> bool:
        if space.listed:
            return whole in space.listed
        return not self.clamp or space.kept(whole, whole) == whole
