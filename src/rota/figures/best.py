"""The best accuracy that any trial has reached so far, and what repetitions have in common of it."""

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from rota.core.arrays import Floats

MOMENTS = 400
"""At which repetitions are put together."""

Rose = tuple[Floats, Floats]
"""When the best accuracy rose, and to what."""


class Bands(NamedTuple):
    """Over the repetitions; NaN before all have measured something."""

    mean: Floats
    least: Floats
    most: Floats


def best_so_far(reports: Iterable[tuple[float, float]]) -> Rose:
    """From (when, how good) in the order of time; what was not measured (NaN) changes nothing."""
    at_s: list[float] = []
    best: list[float] = []
    for when_s, metric in reports:
        if metric > (best[-1] if best else -math.inf):
            at_s.append(when_s)
            best.append(metric)
    return np.array(at_s), np.array(best)


def bands(repetitions: Sequence[Rose], moments: Floats) -> Bands:
    """What had been reached at each moment."""
    rows = []
    for rose_s, best in repetitions:
        place = np.searchsorted(rose_s, moments, side="right")
        rows.append(np.r_[np.nan, best][place])
    values = np.array(rows)
    return Bands(values.mean(0), values.min(0), values.max(0))
