"""Asynchronous successive halving by promotion: the best of each rung are trained further first.

The published form of ASHA (Li et al., 2020), for a deadline: nobody is stopped, and no slot is left idle.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from math import inf, isnan

from rota.core.errors import ConfigError
from rota.core.population.events import Interval
from rota.core.population.policies import Allocation
from rota.core.population.view import PopulationView


@dataclass(frozen=True)
class Promote(Allocation):
    """Train the best of the highest rung for one more interval; a trial's rung is its number of intervals."""

    reduction_factor: float = 3.0
    """One trial in this many is promoted from each rung. A large number begins all trials, and then trains
    the best one; 1 trains one trial to its end before it begins another."""

    def __post_init__(self) -> None:
        if not self.reduction_factor >= 1.0:
            raise ConfigError(f"reduction_factor is {self.reduction_factor}; it must be 1 or more")

    def assign(self, view: PopulationView) -> Iterator[tuple[int, list[Interval]]]:
        for slot in sorted(view.idle, key=lambda slot: float(view.step_times.step_s[slot].mean())):
            if not view.waiting:
                return
            yield slot, [view.interval(self._next(view))]

    def _next(self, view: PopulationView) -> int:
        """Return the trial to train: one to promote, else one that is new, else the best."""
        waiting = view.waiting
        rung = {trial: int(view.steps[trial] // view.reports_every[trial]) for trial in waiting}
        for level in sorted({level for level in rung.values() if level}, reverse=True):
            there = [reports[level - 1][1] for reports in view.history if len(reports) >= level]
            limit = sorted(map(_ranked, there), reverse=True)[: int(len(there) / self.reduction_factor)]
            best = _best(view, [trial for trial in waiting if rung[trial] == level])
            if limit and _ranked(view.metric.item(best)) >= limit[-1]:
                return best
        new = [trial for trial in waiting if not rung[trial]]
        return new[0] if new else _best(view, waiting)


def _best(view: PopulationView, trials: list[int]) -> int:
    """Return the trial with the best metric, the first of equals."""
    return max(trials, key=lambda trial: _ranked(view.metric.item(trial)))


def _ranked(metric: float) -> float:
    return -inf if isnan(metric) else metric
