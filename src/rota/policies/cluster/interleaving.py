"""Step times of jobs whose stages are interleaved on the same GPUs.

The members of a group take turns: while one loads, another computes and a third synchronises. The period of a
group is the time in which each member does one iteration.
"""

from dataclasses import dataclass
from itertools import permutations
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from rota.core.columns import ITERATION_S, LOAD_S, PROFILE
from rota.core.compiled import carray, kernel
from rota.core.costs import MURI_SCHEDULER_OVERHEAD
from rota.core.memory import floats, ints, pointer
from rota.core.record import SharedRecord

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


@kernel
def half_cycle(a, b):
    """Return the period of two jobs in half cycles: one loads while the other does everything else."""
    return max(a[0], b[1] + b[2]) + max(b[0], a[1] + a[2])


@kernel
def period_s(stages, orders, resources, worst):
    """Return the computed period of a group, a row per member, under the best (or worst) of some orders."""
    periods = pipelined(stages, orders) if resources == 4 else rotated(stages, orders, resources)
    chosen = periods.max() if worst else periods.min()
    if resources == 4 and stages.shape[0] == 2:
        half_s = half_cycle(stages[0], stages[1])
        chosen = max(chosen, half_s) if worst else min(chosen, half_s)
    return chosen


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


# A catalogue of kinds of groups as compiled code sees it: addresses of arrays, and numbers.
CATALOGUE = np.dtype(
    [
        (name, "i8")
        for name in (
            *("profiles", "members", "pace_s", "efficiency", "split", "found", "jobs", "orders"),
            *("first_order", "factors", "count", "room", "job_room", "resources", "largest", "worst"),
        )
    ]
)
JOB_FACTS = 4  # of a profile: the seconds of an iteration, 0 if it is not known yet, and of its stages
FULL = -1
"""What is returned in place of a number if the catalogue has no room for one more kind."""


@kernel
def catalogue_at(address):
    """Return the record of a catalogue."""
    return carray(pointer(address), 1, CATALOGUE)[0]


@kernel
def members_of(c):
    """Return the number of members of each kind."""
    return ints(c.members, c.room)


@kernel
def profiles_of(c):
    """Return the profiles of the members of each kind, in ascending order."""
    return carray(pointer(c.profiles), (c.room, c.largest), np.int32)


@kernel
def single_of(c, columns, row):
    """Return the number of the group that consists of one job; FULL if there is no room for it."""
    profile = int(columns[PROFILE, row])
    if profile >= c.job_room:
        return FULL
    facts = carray(pointer(c.jobs), (c.job_room, JOB_FACTS), np.float64)[profile]
    if facts[0] == 0.0:
        facts[0] = columns[ITERATION_S, row]
        for stage in range(3):
            facts[1 + stage] = columns[LOAD_S + stage, row]
    wanted = np.empty(c.largest, np.int32)
    wanted[0] = profile
    return number_of(c, wanted, 1)


@kernel
def pair_of(c, a, b):
    """Return the number of the group that two groups form together; FULL if there is no room for it."""
    members, profiles = members_of(c), profiles_of(c)
    wanted = np.empty(c.largest, np.int32)
    i = 0
    j = 0
    while i < members[a] or j < members[b]:
        if j == members[b] or (i < members[a] and profiles[a, i] <= profiles[b, j]):
            wanted[i + j] = profiles[a, i]
            i += 1
        else:
            wanted[i + j] = profiles[b, j]
            j += 1
    return number_of(c, wanted, i + j)


@kernel
def place_of(c, wanted, n):
    """Return where the number of a kind is, or would be, among those that were found."""
    found, members, profiles = ints(c.found, 4 * c.room), members_of(c), profiles_of(c)
    last = 4 * c.room - 1  # the room is a power of two
    mixed = np.int64(n)
    for i in range(n):
        mixed = (mixed ^ np.int64(wanted[i])) * np.int64(0x9E3779B97F4A7C1)
        mixed ^= mixed >> 29
    at = mixed & last
    while found[at] >= 0:
        kind = found[at]
        same = members[kind] == n
        for i in range(n if same else 0):
            same = same and profiles[kind, i] == wanted[i]
        if same:
            return at
        at = (at + 1) & last
    return at


@kernel
def number_of(c, wanted, n):
    """Return the number of the kind of group with these profiles; FULL if it is new and there is no room."""
    at, found = place_of(c, wanted, n), ints(c.found, 4 * c.room)
    if found[at] >= 0:
        return np.int64(found[at])
    if c.count == c.room:
        return np.int64(FULL)
    kind = c.count
    found[at] = kind
    members_of(c)[kind] = n
    profiles_of(c)[kind, :n] = wanted[:n]
    facts = carray(pointer(c.jobs), (c.job_room, JOB_FACTS), np.float64)
    iteration_s = 0.0
    used_s = 0.0
    stages = np.empty((n, 3))
    for i in range(n):
        stages[i] = facts[wanted[i], 1:]
        iteration_s += facts[wanted[i], 0]
        used_s += stages[i, 0] + stages[i, 1] + stages[i, 2]
    best_s = iteration_s
    pace_s = iteration_s
    if n > 1:
        first = ints(c.first_order, c.largest + 2)
        count = (first[n + 1] - first[n]) // n
        orders = carray(pointer(c.orders + 8 * first[n]), (count, n), np.int64)
        factor = floats(c.factors, c.largest + 1)[n]
        best_s = period_s(stages, orders, c.resources, False) * factor
        pace_s = period_s(stages, orders, c.resources, True) * factor if c.worst else best_s
    floats(c.pace_s, c.room)[kind] = pace_s
    floats(c.efficiency, c.room)[kind] = used_s / (c.resources * pace_s)
    ints(c.split, c.room)[kind] = best_s / iteration_s > 1.0
    c.count += 1
    return np.int64(kind)


@kernel
def single_at(address, columns, row):
    """Do `single_of`, for Python."""
    return single_of(catalogue_at(address), columns, row)


@kernel
def pair_at(address, a, b):
    """Do `pair_of`, for Python."""
    return pair_of(catalogue_at(address), a, b)


@kernel
def find_again(address):
    """Write all kinds anew to where they are found."""
    c = catalogue_at(address)
    found, members, profiles = ints(c.found, 4 * c.room), members_of(c), profiles_of(c)
    found[:] = -1
    for kind in range(c.count):
        found[place_of(c, profiles[kind], members[kind])] = kind


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


class Catalogue(SharedRecord):
    """All kinds of groups so far, numbered: a cache of pure arithmetic, shared with compiled code."""

    def __init__(
        self, resources: int, ordering: Ordering, contention: dict[int, float], largest: int = 4
    ) -> None:
        self.lay_out_record(CATALOGUE)
        self.kinds: list[GroupKind] = []
        """Kinds by their numbers, as far as `single` and `pair` have returned them."""
        self._jobs: dict[int, int] = {}
        self._pairs: dict[tuple[int, int], int] = {}
        self.worth: dict[tuple[int, int], int] = {}
        """Weight of a pair of kinds in a matching, where it is known."""
        self.pairings: dict[tuple[tuple[int, int], ...], NDArray[np.int64]] = {}
        """The best pairs of a bucket, by the number of groups of each kind in it."""
        orders = [np.array(list(permutations(range(n))), np.int64).ravel() for n in range(2, largest + 1)]
        self.put(
            orders=np.concatenate([*orders, np.zeros(0, np.int64)]),
            first_order=np.cumsum([0, 0, 0, *map(len, orders)]).astype(np.int32),
            factors=np.array([contention.get(n, contention[4]) for n in range(largest + 1)]),
        )
        self.write(resources=resources, largest=largest, worst=ordering == "worst")
        self._make_room(kinds=64, jobs=64)

    def single(self, columns: NDArray[np.float64], row: int) -> int:
        """Return the number of the group that consists of one job."""
        profile = int(columns[PROFILE, row])
        number = self._jobs.get(profile)
        if number is None:
            if profile >= self.number("job_room"):
                self._make_room(jobs=2 * profile)
            if (number := single_at(self.address, columns, row)) == FULL:
                self._make_room(kinds=2 * self.number("room"))
                number = single_at(self.address, columns, row)
            self._jobs[profile] = number
            self._list_kinds()
        return number

    def pair(self, a: int, b: int) -> int:
        """Return the number of the group that two groups form together."""
        key = (a, b) if a <= b else (b, a)
        number = self._pairs.get(key)
        if number is None:
            if (number := pair_at(self.address, *key)) == FULL:
                self._make_room(kinds=2 * self.number("room"))
                number = pair_at(self.address, *key)
            self._pairs[key] = number
            self._list_kinds()
        return number

    def _list_kinds(self) -> None:
        """List the kinds that are not listed yet, whoever has found them."""
        arrays = self.arrays
        for kind in range(len(self.kinds), self.number("count")):
            profiles = arrays["profiles"][kind, : arrays["members"][kind]].tolist()
            pace_s, efficiency = float(arrays["pace_s"][kind]), float(arrays["efficiency"][kind])
            self.kinds.append(GroupKind(tuple(profiles), pace_s, efficiency, bool(arrays["split"][kind])))

    def _make_room(self, kinds: int = 0, jobs: int = 0) -> None:
        """Make room for so many kinds, or for so many profiles of jobs."""
        if kinds:
            names = {"profiles": "i4", "members": "i4", "split": "i4", "pace_s": "f8", "efficiency": "f8"}
            for name, code in names.items():
                shape = (kinds, self.number("largest")) if name == "profiles" else (kinds,)
                array = np.zeros(shape, code)
                if name in self.arrays:
                    array[: len(self.arrays[name])] = self.arrays[name]
                self.put(**{name: array})
            self.put(found=np.zeros(4 * kinds, np.int32))
            self.write(room=kinds)
            find_again(self.address)
        if jobs:
            facts = np.zeros((jobs, JOB_FACTS))
            if "jobs" in self.arrays:
                facts[: len(self.arrays["jobs"])] = self.arrays["jobs"]
            self.put(jobs=facts)
            self.write(job_room=jobs)
