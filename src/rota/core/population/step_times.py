"""Step times of slots as they are measured."""

import numpy as np

from rota.core.arrays import Floats
from rota.core.compiled import kernel

WEIGHT = 0.3
"""Weight of the newest measurement in the smoothed step time."""


@kernel
def observe(step_s, expected_s, spread, measured, off, slot, kind, seconds):
    """Take in a measurement in seconds per step; ignored if it is not above 0."""
    if not seconds > 0.0:
        return
    known, before = measured[slot, kind], step_s[slot, kind]
    weight = max(WEIGHT, 1.0 / (known + 1))
    now = before + weight * (seconds - before)
    measured[slot, kind] = known + 1
    step_s[slot, kind] = now
    if known > 0:
        apart = seconds / before - 1.0
        spread[slot, kind] += weight * (apart * apart - spread[slot, kind])
    off[slot] = now / expected_s[slot, kind]
    for other in range(step_s.shape[1]):
        if measured[slot, other] == 0:
            step_s[slot, other] = expected_s[slot, other] * off[slot]


class StepTimes:
    """Smoothed step times per slot and kind of trial, and the spread of their measurements.

    A kind never measured on a slot is expected to deviate as the slot's last measured kind does.
    """

    __slots__ = ("expected_s", "measured", "off", "spread", "step_s")

    def __init__(self, expected_s: Floats) -> None:
        self.expected_s = expected_s
        """Slot, kind → expected seconds per step before any measurement."""
        self.step_s = expected_s.copy()
        """Slot, kind → current estimate in seconds per step."""
        self.measured = np.zeros(expected_s.shape, np.int64)
        """Slot, kind → number of measurements."""
        self.spread = np.zeros(expected_s.shape)
        """Slot, kind → variance of measurements relative to their mean."""
        self.off = np.ones(len(expected_s))
        """Slot → estimate of the last measured kind relative to what was expected."""

    def observe(self, slot: int, kind: int, step_s: float) -> None:
        """Take in a measurement in seconds per step; ignored if it is not above 0."""
        observe(self.step_s, self.expected_s, self.spread, self.measured, self.off, slot, kind, float(step_s))

    def add_kind(self, expected_s: Floats) -> None:
        """Add a new kind of trial, with its expected step time on each slot."""
        self.expected_s = np.column_stack([self.expected_s, expected_s])
        self.step_s = np.column_stack([self.step_s, expected_s * self.off])
        self.measured = np.column_stack([self.measured, np.zeros(len(expected_s), np.int64)])
        self.spread = np.column_stack([self.spread, np.zeros(len(expected_s))])
