"""Asynchronous successive halving: at each rung only the best go on.

The rule is `rungs`, `limit_of` and `loses`, for whoever has values in whatever form. Who has reached a rung
is compared with all who reached it so far, each time it reports again: one that was good enough when it
came there can lose once better ones have come.
"""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite, nan
from typing import Literal

import numpy as np

from rota.core.errors import ConfigError
from rota.core.population.events import Continue, Stop
from rota.core.population.view import PopulationView
from rota.policies.config import TrialsConfig

Mode = Literal["max", "min"]


def rungs(reduction_factor: float, min_t: float, max_t: float) -> list[float]:
    """min_t, and so many times as much each time, up to max_t; the largest first. The first t is 1."""
    found = []
    at = min_t
    while at <= max_t:
        found.append(at)
        at *= reduction_factor
    return found[::-1]


def limit_of(values: Sequence[float], reduction_factor: float, mode: Mode) -> float:
    """Where the best 1 ÷ reduction_factor of a rung begin: NumPy's linear percentile of what is finite.

    Not a number where nothing is.
    """
    found = np.asarray(values, float)
    finite = found[np.isfinite(found)]
    share = 1.0 / reduction_factor
    return (
        float(np.percentile(finite, 100.0 * (share if mode == "min" else 1.0 - share)))
        if len(finite)
        else nan
    )


def loses(value: float, limit: float, mode: Mode) -> bool:
    """Whether a value is not among the best of its rung. What is not finite always loses."""
    return not (isfinite(value) and (value <= limit if mode == "min" else value >= limit))


def losers(values: Sequence[float], reduction_factor: float, mode: Mode) -> list[bool]:
    """Position → whether it is not among the best 1 ÷ reduction_factor of a rung."""
    limit = limit_of(values, reduction_factor, mode)
    return [loses(value, limit, mode) for value in values]


@dataclass(frozen=True, slots=True)
class Asha:
    """Stops trials that are not among the best of a rung. A trial's t is the number of its intervals."""

    reduction_factor: float = 4.0
    """One in so many goes on from each rung."""
    min_t: int = 1
    """The lowest rung, in intervals."""
    max_t: int = 50
    """No rung is higher."""

    def __post_init__(self) -> None:
        if not self.reduction_factor > 1.0:
            raise ConfigError(f"reduction_factor is {self.reduction_factor}; it must be above 1")
        if not self.max_t > self.min_t > 0:
            raise ConfigError(f"min_t is {self.min_t}, max_t {self.max_t}; give max_t > min_t > 0")

    def check(self, trials: TrialsConfig) -> None:
        """Whether trials are measured when they reach the lowest rung."""
        trials.check_measured(self.min_t * trials.interval)

    def judge(self, view: PopulationView, trial: int) -> Continue | Stop:
        done = int(view.steps[trial])
        for rung in rungs(self.reduction_factor, self.min_t, self.max_t):
            steps = rung * view.terms.interval
            if steps <= done and self._loses(view, trial, steps):
                return Stop(trial)
        return Continue(trial, reviewed=True)

    def _loses(self, view: PopulationView, trial: int, steps: float) -> bool:
        """Whether it is among the losers of the rung at so many steps."""
        there = np.flatnonzero(view.steps >= steps).tolist()
        values = [_value(view.history[other], steps) for other in there]
        return losers(values, self.reduction_factor, "max")[there.index(trial)]


def _value(reports: list[tuple[int, float]], steps: float) -> float:
    """Of the first report after so many steps or more: intervals may have been reported in parts."""
    return reports[bisect_left(reports, steps, key=lambda report: report[0])][1]
