"""Step times of jobs whose stages are interleaved on the same GPUs.

The members of a group take turns: while one loads, another computes and a third synchronises. The period of a
group is the time in which each member does one iteration.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import permutations
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from rota.core import columns as c
from rota.core.compiled import kernel
from rota.core.costs import MURI_SCHEDULER_OVERHEAD

Stages = tuple[float, float, float]
Ordering = Literal["best", "worst"]

CONTENTION = {
    1: 1.0,
    2: 1.33 / MURI_SCHEDULER_OVERHEAD,
    3: 1.5 / MURI_SCHEDULER_OVERHEAD,
    4: 1.37 / MURI_SCHEDULER_OVERHEAD,
}
"""Factor by which a measured period is longer than the computed one, by group size, as measured by Muri."""
CONTENTION_UNMATCHED = {**CONTENTION, 4: 1.3 / MURI_SCHEDULER_OVERHEAD}
"""The factors of the variant without matching, which differ for groups of four."""


def period_s(members: Sequence[Stages], resources: int, ordering: Ordering) -> float:
    """Return the computed period of a group under the best (or worst) order of its members."""
    choose = min if ordering == "best" else max
    stages = np.array(members)
    orders = _orders(len(members))
    periods = pipelined(stages, orders) if resources == 4 else rotated(stages, orders, resources)
    if resources == 4 and len(members) == 2:
        periods = [*periods, _half_cycle(*members)]
    return float(choose(periods))


@cache
def _orders(members: int) -> NDArray[np.int64]:
    return np.array(list(permutations(range(members))))


def _half_cycle(a: Stages, b: Stages) -> float:
    """Return the period of two jobs in half cycles: one loads while the other does everything else."""
    return max(a[0], b[1] + b[2]) + max(b[0], a[1] + a[2])


@kernel
def pipelined(stages, orders):
    """Return the period for each order with four resources: loading takes storage and CPU, hence two slots.

    Two rounds of four slots are filled from a cold start; the period is taken as soon as it repeats.
    """
    periods = np.empty(orders.shape[0])
    n = orders.shape[1]
    f = np.zeros(9)
    for o in range(orders.shape[0]):
        order = orders[o]
        for i in range(8):
            f[i + 1] = 0.0
            if (i + 1) % 4 < n:
                f[i + 1] = max(f[i + 1], f[i] + stages[order[(i + 1) % 4], 2])
            if (i + 2) % 4 < n:
                f[i + 1] = max(f[i + 1], f[i] + stages[order[(i + 2) % 4], 1])
            if (i + 3) % 4 < n and i > 0:
                f[i + 1] = max(f[i + 1], f[i - 1] + stages[order[(i + 3) % 4], 0])
        periods[o] = f[8] - f[4]
        for i in range(4, 8):
            this, last = f[i + 1] - f[i - 3], f[i] - f[i - 4]
            if abs(this - last) <= 1e-3 * max(abs(this), abs(last)):
                periods[o] = this
                break
    return periods


@kernel
def rotated(stages, orders, resources):
    """Return the period for each order by the paper's formula: in slot i, member m is at stage i - m."""
    periods = np.zeros(orders.shape[0])
    for o in range(orders.shape[0]):
        for i in range(resources):
            slowest = 0.0
            for m in range(orders.shape[1]):
                stage = (i - m) % resources
                if stage < 3:
                    slowest = max(slowest, stages[orders[o, m], stage])
            periods[o] += slowest
    return periods


@dataclass(frozen=True, slots=True)
class GroupKind:
    """A kind of group: the profiles of its members, and the step time that follows."""

    profiles: tuple[int, ...]
    pace_s: float
    """Seconds per iteration of each member."""
    efficiency: float
    """Share of the resources' time that the group uses."""
    slower_than_in_turn: bool
    """Whether running the members one after another would be faster."""


class Catalogue:
    """All kinds of groups so far, numbered: a cache of pure arithmetic."""

    def __init__(self, resources: int, ordering: Ordering, contention: dict[int, float]) -> None:
        self._resources = resources
        self._ordering = ordering
        self._contention = contention
        self._jobs: dict[int, tuple[float, Stages]] = {}
        self._numbers: dict[tuple[int, ...], int] = {}
        self._pairs: dict[tuple[int, int], int] = {}
        self.kinds: list[GroupKind] = []
        self.worth: dict[tuple[int, int], int] = {}
        """Weight of a pair of kinds in a matching, where it is known."""
        self.pairings: dict[tuple[tuple[int, int], ...], NDArray[np.int64]] = {}
        """The best pairs of a bucket, by the number of groups of each kind in it."""

    def single(self, columns: NDArray[np.float64], row: int) -> int:
        """Return the number of the group that consists of one job."""
        profile = int(columns[c.PROFILE, row])
        if profile not in self._jobs:
            iteration_s = float(columns[c.ITERATION_S, row])
            load, compute, sync = columns[c.LOAD_S : c.SYNC_S + 1, row].tolist()
            self._jobs[profile] = (iteration_s, (load, compute, sync))
        return self._number((profile,))

    def pair(self, a: int, b: int) -> int:
        """Return the number of the group that two groups form together."""
        key = (a, b) if a <= b else (b, a)
        number = self._pairs.get(key)
        if number is None:
            number = self._number(tuple(sorted(self.kinds[a].profiles + self.kinds[b].profiles)))
            self._pairs[key] = number
        return number

    def _number(self, profiles: tuple[int, ...]) -> int:
        number = self._numbers.get(profiles)
        if number is None:
            number = self._numbers[profiles] = len(self.kinds)
            self.kinds.append(self._kind(profiles))
        return number

    def _kind(self, profiles: tuple[int, ...]) -> GroupKind:
        iterations = [self._jobs[profile][0] for profile in profiles]
        if len(profiles) == 1:
            best_s = pace_s = iterations[0]
        else:
            stages = [self._jobs[profile][1] for profile in profiles]
            factor = self._contention.get(len(profiles), self._contention[4])
            best_s = period_s(stages, self._resources, "best") * factor
            pace_s = (
                best_s if self._ordering == "best" else period_s(stages, self._resources, "worst") * factor
            )
        used = sum(sum(self._jobs[profile][1]) for profile in profiles)
        return GroupKind(profiles, pace_s, used / (self._resources * pace_s), best_s / sum(iterations) > 1.0)
