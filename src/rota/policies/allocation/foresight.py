"""How much a trial has still to do, if it may stop early because it is good enough."""

from math import exp, isnan, log

import numpy as np

from rota.core.population.view import PopulationView, TrialStatus

RECENT = 8
"""Reports that are looked at: what a trial was like long ago, or as another, says little."""


def steps_left(view: PopulationView, trial: int) -> float:
    """Steps until the target is reached, or the budget is used up if that comes first.

    A straight line is laid through the trial's recent metrics over the logarithm of its steps, by least
    squares: metric = a + b·ln(steps). The target is expected at exp((target − a) / b). With fewer than two
    reports, or no rise, all of the budget is expected to be needed.
    """
    done, budget = int(view.steps[trial]), view.terms.steps
    curve = [(log(steps), metric) for steps, metric in view.history[trial][-RECENT:] if not isnan(metric)]
    if len(curve) < 2:
        return budget - done
    offset, slope = _line(curve)
    if slope <= 0.0 or view.terms.target >= offset + slope * log(budget):
        return budget - done
    return max(0.0, exp((view.terms.target - offset) / slope) - done)


def intervals_left(view: PopulationView) -> float:
    """Of all trials that are not done, each of which has one to do at least."""
    each = (steps_left(view, int(trial)) for trial in np.flatnonzero(view.status < TrialStatus.FINISHED))
    return sum(max(1.0, steps / view.terms.interval) for steps in each)


def _line(points: list[tuple[float, float]]) -> tuple[float, float]:
    """Offset and slope of the line with the least squares."""
    x, y = np.array(points).T
    spread = ((x - x.mean()) ** 2).sum()
    slope = ((x - x.mean()) * (y - y.mean())).sum() / spread if spread > 0.0 else 0.0
    return float(y.mean() - slope * x.mean()), float(slope)
