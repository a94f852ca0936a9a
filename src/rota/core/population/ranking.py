"""Trials by how good they are, kept in order from report to report."""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable
from math import inf, isnan


class Ranking:
    """Trials, worst first, equals by their number. Whose value is not a number has no place in it."""

    def __init__(self, values: Iterable[float]) -> None:
        self._values = list(values)
        self._order = sorted((value, trial) for trial, value in enumerate(self._values) if not isnan(value))

    def put(self, trial: int, value: float) -> None:
        """From now on it is as good as this."""
        before = self._values[trial]
        if not isnan(before):
            del self._order[bisect_left(self._order, (before, trial))]
        if not isnan(value):
            insort(self._order, (value, trial))
        self._values[trial] = value

    def __len__(self) -> int:
        return len(self._order)

    def __getitem__(self, place: int) -> int:
        """Which trial has a place."""
        return self._order[place][1]

    def place(self, trial: int) -> int:
        """0 is the worst; -1 if it has none."""
        value = self._values[trial]
        return -1 if isnan(value) else bisect_left(self._order, (value, trial))

    def above(self, trial: int) -> int:
        """The first place of those that are better than a trial which has one."""
        return bisect_right(self._order, (self._values[trial], inf))
