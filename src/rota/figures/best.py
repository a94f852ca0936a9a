"""The best accuracy of any trial so far, and its mean and range over repetitions."""

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from rota.core.arrays import Floats

MOMENTS = 400
"""Number of moments at which repetitions are combined."""

Rose = tuple[Floats, Floats]
"""Times at which the best accuracy rose, and its values from then on."""


class Bands(NamedTuple):
    """Mean and range over the repetitions; NaN before all have measured something."""

    mean: Floats
    least: Floats
    most: Floats


def best_so_far(reports: Iterable[tuple[float, float]]) -> Rose:
    """Return when the best metric rose, and to what, from (time, metric) in order; NaN changes nothing."""
    at_s: list[float] = []
    best: list[float] = []
    for when_s, metric in reports:
        if metric > (best[-1] if best else -math.inf):
            at_s.append(when_s)
            best.append(metric)
    return np.array(at_s), np.array(best)


def bands(repetitions: Sequence[Rose], moments: Floats) -> Bands:
    """Return the mean and the range of the best metric at each moment."""
    rows = []
    for rose_s, best in repetitions:
        place = np.searchsorted(rose_s, moments, side="right")
        rows.append(np.r_[np.nan, best][place])
    values = np.array(rows)
    return Bands(values.mean(0), values.min(0), values.max(0))
