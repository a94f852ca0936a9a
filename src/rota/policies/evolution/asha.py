"""Asynchronous successive halving (ASHA): only the best trials of each rung continue.

`rungs`, `limit_of` and `loses` are the rule, for values in any form. A trial is compared at each of its rungs
with all that have reached it so far, again at each of its reports: one that was good enough when it arrived
can lose once better ones have arrived.
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
    """Return min_t, min_t · reduction_factor … up to max_t, largest first."""
    found = []
    at = min_t
    while at <= max_t:
        found.append(at)
        at *= reduction_factor
    return found[::-1]


def limit_of(values: Sequence[float], reduction_factor: float, mode: Mode) -> float:
    """Return the limit of the best 1 ÷ reduction_factor of a rung: a linear percentile of finite values.

    NaN if no value is finite.
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
    """Return whether a value is not among the best of its rung; a value that is not finite always loses."""
    return not (isfinite(value) and (value <= limit if mode == "min" else value >= limit))


def losers(values: Sequence[float], reduction_factor: float, mode: Mode) -> list[bool]:
    """Return for each value whether it is not among the best 1 ÷ reduction_factor of a rung."""
    limit = limit_of(values, reduction_factor, mode)
    return [loses(value, limit, mode) for value in values]


@dataclass(frozen=True, slots=True)
class Asha:
    """Stop trials that are not among the best of a rung. A trial's t is its number of intervals."""

    reduction_factor: float = 4.0
    """One trial in this many continues from each rung."""
    min_t: int = 1
    """The lowest rung, in intervals."""
    max_t: int = 50
    """The limit of the highest rung, in intervals."""

    def __post_init__(self) -> None:
        if not self.reduction_factor > 1.0:
            raise ConfigError(f"reduction_factor is {self.reduction_factor}; it must be above 1")
        if not self.max_t > self.min_t > 0:
            raise ConfigError(f"min_t is {self.min_t}, max_t {self.max_t}; give max_t > min_t > 0")

    def check(self, trials: TrialsConfig) -> None:
        """Raise ConfigError if trials have no metric when they reach the lowest rung."""
        trials.check_measured(self.min_t * trials.interval)

    def decide(self, view: PopulationView, trial: int) -> Continue | Stop:
        done = int(view.steps[trial])
        for rung in rungs(self.reduction_factor, self.min_t, self.max_t):
            if rung * int(view.reports_every[trial]) <= done and self._loses(view, trial, rung):
                return Stop(trial)
        return Continue(trial, reviewed=True)

    def _loses(self, view: PopulationView, trial: int, rung: float) -> bool:
        """Return whether a trial is among the losers of the rung after this many intervals."""
        steps = rung * view.reports_every
        there = np.flatnonzero(view.steps >= steps).tolist()
        values = [_value(view.history[other], steps[other]) for other in there]
        return losers(values, self.reduction_factor, "max")[there.index(trial)]


def _value(reports: list[tuple[int, float]], steps: float) -> float:
    """Return the metric of the first report at or after this many steps; reports may be irregular."""
    return reports[bisect_left(reports, steps, key=lambda report: report[0])][1]
