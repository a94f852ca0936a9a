"""How long a step takes on each slot: measured where it was, expected where it was not."""

import numpy as np
from numpy.typing import NDArray

WEIGHT = 0.3
"""Of the newest measurement."""


class Paces:
    """Seconds per step for slot and kind of trial, smoothed, and how far measurements are apart.

    A kind that was never measured on a slot is expected to be off by what the slot is off with others.
    """

    __slots__ = ("_off", "_unknown", "expected_s", "measured", "spread", "step_s")

    def __init__(self, expected_s: NDArray[np.float64]) -> None:
        self.expected_s = expected_s
        """Slot, kind → what was said before anything was measured."""
        self.step_s = expected_s.copy()
        """Slot, kind → seconds, as far as is known now."""
        self.measured = np.zeros(expected_s.shape, np.int64)
        """Slot, kind → how often."""
        self.spread = np.zeros(expected_s.shape)
        """Slot, kind → variance of measurements, relative to their mean."""
        self._off = np.ones(len(expected_s))
        self._unknown = [expected_s.shape[1]] * len(expected_s)
        """Slot → kinds that were never measured on it."""

    def observe(self, slot: int, kind: int, step_s: float) -> None:
        """Take a measurement in; one of nothing, shorter than the clock can tell, says nothing."""
        if not step_s > 0.0:
            return
        known, before = self.measured.item(slot, kind), self.step_s.item(slot, kind)
        weight = max(WEIGHT, 1.0 / (known + 1))
        now = before + weight * (step_s - before)
        self.measured[slot, kind] = known + 1
        self.step_s[slot, kind] = now
        if known:
            off, spread = step_s / before - 1.0, self.spread.item(slot, kind)
            self.spread[slot, kind] = spread + weight * (off * off - spread)
        else:
            self._unknown[slot] -= 1
        self._off[slot] = now / self.expected_s.item(slot, kind)
        if self._unknown[slot]:
            unknown = self.measured[slot] == 0
            self.step_s[slot, unknown] = self.expected_s[slot, unknown] * self._off[slot]

    def add_kind(self, expected_s: NDArray[np.float64]) -> None:
        """A kind of trial that was not there before, with what is expected of each slot."""
        self.expected_s = np.column_stack([self.expected_s, expected_s])
        self.step_s = np.column_stack([self.step_s, expected_s * self._off])
        self.measured = np.column_stack([self.measured, np.zeros(len(expected_s), np.int64)])
        self.spread = np.column_stack([self.spread, np.zeros(len(expected_s))])
        self._unknown = [kinds + 1 for kinds in self._unknown]
