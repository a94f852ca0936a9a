"""The few statistics that a comparison needs."""

import math
from bisect import bisect_right, insort
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from typing import NamedTuple

import numpy as np


class Versus(NamedTuple):
    """The same quantity, for real and simulated."""

    real: float
    simulated: float

    @property
    def error_percent(self) -> float | None:
        """Above 0 if the simulation says too much; None where nothing can be divided by."""
        return 100.0 * (self.simulated / self.real - 1.0) if self.real > 0.0 else None


class Agreement(NamedTuple):
    """Whether two orders are the same."""

    same: bool
    """No two have changed places; who is level with somebody may be before or behind."""
    tau: float | None
    """Kendall's, with ties (τ-b): 1 for the same order, −1 for the opposite; None if all are level."""


def correlation(xs: Sequence[float], ys: Sequence[float]) -> float | None:
    """Pearson's; None where one of both does not vary."""
    if len(xs) < 2 or min(xs) == max(xs) or min(ys) == max(ys):
        return None
    return float(np.corrcoef(xs, ys)[0, 1])


def agreement(xs: Sequence[float], ys: Sequence[float]) -> Agreement:
    """Of the orders of two columns."""
    discordant = _inversions(y for _, y in sorted(zip(xs, ys, strict=True)))
    level_x, level_y, level_both = _level(xs), _level(ys), _level(list(zip(xs, ys, strict=True)))
    pairs = len(xs) * (len(xs) - 1) // 2
    concordant = pairs - level_x - level_y + level_both - discordant
    scale = math.sqrt((pairs - level_x) * (pairs - level_y))
    return Agreement(discordant == 0, (concordant - discordant) / scale if scale else None)


def _inversions(values: Iterable[float]) -> int:
    """Pairs in which the later one is smaller."""
    before: list[float] = []
    found = 0
    for value in values:
        found += len(before) - bisect_right(before, value)
        insort(before, value)
    return found


def _level(values: Sequence[Hashable]) -> int:
    """Pairs that are equal."""
    return sum(count * (count - 1) // 2 for count in Counter(values).values())
