"""The least time that trials of equal work can take."""

from collections.abc import Sequence
from itertools import accumulate


def lower_bound_s(trials: int, work_s: float, speeds: Sequence[float]) -> float:
    """For trials of so much work each on a slot of speed 1, if they may be moved at any moment for nothing.

    No slot does more than its speed, and k trials are never on more than the k fastest slots.
    """
    return bound_s([k * work_s for k in range(1, trials + 1)], speeds)


def bound_s(largest: Sequence[float], speeds: Sequence[float]) -> float:
    """The same, given the work of the k largest trials together, for each k."""
    fastest = list(accumulate(sorted(speeds, reverse=True)))
    each = (work_s / speed for work_s, speed in zip(largest, fastest, strict=False))
    return max(largest[-1] / fastest[-1], *each)
