"""The least time that trials of equal work can take."""

from collections.abc import Sequence
from itertools import accumulate


def lower_bound_s(trials: int, work_s: float, speeds: Sequence[float]) -> float:
    """For trials of so much work each on a slot of speed 1, if they may be moved at any moment for nothing.

    No slot does more than its speed, and k trials are never on more than the k fastest slots.
    """
    fastest = list(accumulate(sorted(speeds, reverse=True)))
    each = (k * work_s / speed for k, speed in enumerate(fastest[:trials], start=1))
    return max(trials * work_s / fastest[-1], *each)
