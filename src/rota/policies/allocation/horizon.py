"""Estimates of the makespan, compiled.

Slots are assumed to change trials freely once they are free. But a trial is on one slot at a time, so the k
trials with most work are not done before the k best slots could do their work. And assigned trials come back
when their assignment ends: work that comes back after some time is done after it.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rota.core.arrays import Floats, Ints
from rota.core.compiled import kernel
from rota.core.population.view import TrialStatus

FINISHED, ASSIGNED = int(TrialStatus.FINISHED), int(TrialStatus.ASSIGNED)
NEARLY = 1 + 1e-12
UNKNOWN, LARGEST = 0.05, 0.1
"""Relative standard deviation of an interval before any was measured, and the largest that is trusted: a node
that has slowed down is not one that varies."""


class Slots(NamedTuple):
    """When slots become free, and their speeds. Few arrays, since compiled code counts references to each."""

    free_s: Floats
    """Slot → seconds until its assignment ends; infinite if it is not usable."""
    speeds: Floats
    """Slot → speed relative to the mean; 0 if it is not usable."""
    order: Ints
    """Usable slots, fastest first."""
    dispatch_s: float
    could: Floats
    best: Ints
    """Scratch space, with `could`."""


class World(NamedTuple):
    """Trials and slots at one instant, for compiled code."""

    step_s: Floats
    """Slot, kind → seconds per step."""
    kind: Ints
    """Trial → kind."""
    left: Ints
    """Trial → steps that are not assigned yet."""
    busy: NDArray[np.bool_]
    """Trial → whether it is assigned."""
    work: Floats
    """Trial → work left, in seconds at speed 1."""
    slots: Slots
    dispatch_s: float
    interval: int
    doubt: float
    """Relative standard deviation of the time of an interval."""
    units_s: Floats
    """Kind → seconds per step at speed 1."""
    latest: Ints
    """Slots whose assignments leave trials unfinished, the last to end first."""
    held: Floats
    """Slot → work that its assigned trials have left afterwards."""
    holds: Ints
    """Slot → number of such trials."""
    rest: Floats
    owed: Floats
    """Scratch space, with `rest`."""


@kernel
def world_of(step_s, spread, kind, state, given):  # type: ignore[no-untyped-def]
    """Return the trials and slots at this instant."""
    status, steps, assigned, at, up, retired, ends_s, now_s = state
    budget, interval, dispatch_s = given
    slots, trials = len(step_s), len(status)
    free_s, speeds = np.full(slots, np.inf), np.zeros(slots)
    units_s, usable = np.zeros(step_s.shape[1]), 0
    for slot in range(slots):
        if up[slot] and not retired[slot]:
            free_s[slot] = max(0.0, ends_s[slot] - now_s)
            units_s += step_s[slot]
            usable += 1
    units_s /= usable
    for slot in range(slots):
        if free_s[slot] < np.inf:
            speeds[slot] = units_s.sum() / step_s[slot].sum()
    left, work = np.zeros(trials, np.int64), np.zeros(trials)
    busy = status == ASSIGNED
    held, holds = np.zeros(slots), np.zeros(slots, np.int64)
    for trial in range(trials):
        if status[trial] < FINISHED:
            left[trial] = budget - steps[trial] - assigned[trial]
            work[trial] = left[trial] * units_s[kind[trial]]
            if busy[trial] and left[trial] > 0:
                held[at[trial]] += work[trial]
                holds[at[trial]] += 1
    order = most_first(speeds, np.empty(slots, np.int64))
    latest = most_first(np.where(holds > 0, free_s + 1.0, 0.0), np.empty(slots, np.int64))
    those = Slots(free_s, speeds, order, dispatch_s, np.empty(slots), np.empty(slots, np.int64))
    return World(
        step_s, kind, left, busy, work, those, dispatch_s, interval, doubted(spread), units_s, latest, held,
        holds, np.empty(trials), np.empty(slots),
    )  # fmt: skip


@kernel
def doubted(spread):  # type: ignore[no-untyped-def]
    """Return the relative standard deviation of an interval, over all slots."""
    total, known = 0.0, 0
    for each in spread.ravel():
        if each > 0.0:
            total += each
            known += 1
    return min(LARGEST, np.sqrt(total / known)) if known else UNKNOWN


@kernel
def most_first(values, found):  # type: ignore[no-untyped-def]
    """Return the positions of the largest values, as many as fit; values of 0 are left out."""
    count = 0
    for position in range(len(values)):
        value = values[position]
        if value <= 0.0 or (count == len(found) and value <= values[found[count - 1]]):
            continue
        at = min(count, len(found) - 1)
        while at > 0 and values[found[at - 1]] < value:
            found[at] = found[at - 1]
            at -= 1
        found[at] = position
        count = min(count + 1, len(found))
    return found[:count]


@kernel
def all_done(world, work, but=-1):  # type: ignore[no-untyped-def]
    """Return when all assignments and all unassigned work would be done.

    The assignment of one slot may be left out.
    """
    slots, end_s = world.slots, 0.0
    for slot in slots.order:
        if slot != but:
            end_s = max(end_s, slots.free_s[slot])
    owed = most_owed(work, world.owed[: len(slots.order)])
    total, most = work.sum(), len(owed)
    while total > 0.0:
        end_s = max(end_s, divided(slots, total, most, 0.0))
        total, most = too_much(slots, owed, end_s)
    return end_s if len(world.units_s) == 1 else max(end_s, longest(world, work))


@kernel
def longest(world, work):  # type: ignore[no-untyped-def]
    """Return when the largest trial of each kind could be done, since slots are unequally fast with kinds."""
    end_s, most = 0.0, np.zeros(len(world.units_s))
    for trial in range(len(work)):
        kind = world.kind[trial]
        most[kind] = max(most[kind], work[trial])
    for kind in range(len(most)):
        if most[kind] > 0.0:
            end_s = max(end_s, in_sequence(world, most[kind] / world.units_s[kind], kind, 0.0))
    return end_s


@kernel
def most_owed(work, owed):  # type: ignore[no-untyped-def]
    """Return the work of the largest trials, as many as fit."""
    number = 0
    for each in work:
        if each > 0.0 and (number < len(owed) or each > owed[-1]):
            at = min(number, len(owed) - 1)
            while at > 0 and owed[at - 1] < each:
                owed[at] = owed[at - 1]
                at -= 1
            owed[at] = each
            number = min(number + 1, len(owed))
    return owed[:number]


@kernel
def too_much(slots, owed, end_s):  # type: ignore[no-untyped-def]
    """Return the work of the first k trials that k slots cannot do in time, and k; zeros if there is none."""
    total, done = 0.0, 0.0
    for number, slot in enumerate(most_able(slots, len(owed), 0.0, end_s)):
        total += owed[number]
        done += slots.could[slot]
        if total > done * NEARLY:
            return total, number + 1
    return 0.0, 0


@kernel
def after_assignments(world, end_s, left, done_s):  # type: ignore[no-untyped-def]
    """Return when trials could be done that assignments leave unfinished, a further assignment included.

    `done_s` is when all others are done.
    """
    slots, work, count = world.slots, 0.0, 0
    for slot in world.latest:
        back_s = slots.free_s[slot]
        if left > 0.0 and back_s <= end_s:
            work, count, left = work + left, count + 1, 0.0
            done_s = at_least(slots, work, count, end_s, done_s)
        work, count = work + world.held[slot], count + world.holds[slot]
        done_s = at_least(slots, work, count, back_s, done_s)
    if left > 0.0:
        done_s = at_least(slots, work + left, count + 1, end_s, done_s)
    return done_s


@kernel
def at_least(slots, work, most, from_s, done_s):  # type: ignore[no-untyped-def]
    """Return `done_s`, or when work is done that up to `most` slots can start from `from_s` on, if later."""
    rest, used = work, 0
    for slot in slots.order:  # the fastest are often enough
        ready_s = max(from_s, slots.free_s[slot]) + slots.dispatch_s
        if ready_s < done_s:
            rest -= (done_s - ready_s) * slots.speeds[slot]
            used += 1
            if rest <= 0.0 or used == most:
                break
    return done_s if rest <= work * (NEARLY - 1) else max(done_s, divided(slots, work, most, from_s))


@kernel
def divided(slots, work, most, from_s):  # type: ignore[no-untyped-def]
    """Return when freely divisible work is done on up to `most` slots, each once it is free."""
    if work <= 0.0:
        return 0.0
    end_s, best = np.inf, slots.order
    while True:  # repeated with the slots that could do most until then
        speed, total, used = 0.0, work, 0
        for slot in best:
            ready_s = max(from_s, slots.free_s[slot]) + slots.dispatch_s
            if ready_s < end_s and used < most:
                speed += slots.speeds[slot]
                total += slots.speeds[slot] * ready_s
                used += 1
        if speed == 0.0 or total / speed >= end_s * (2 - NEARLY):
            return end_s
        end_s = total / speed
        if most < len(slots.order):
            best = most_able(slots, most, from_s, end_s)


@kernel
def most_able(slots, most, from_s, end_s):  # type: ignore[no-untyped-def]
    """Return the slots that could do most between two times."""
    could = slots.could
    for slot in range(len(could)):
        ready_s = max(from_s, slots.free_s[slot]) + slots.dispatch_s
        could[slot] = (end_s - ready_s) * slots.speeds[slot] if ready_s < end_s else 0.0
    return most_first(could, slots.best[:most])


@kernel
def in_sequence(world, steps, kind, from_s):  # type: ignore[no-untyped-def]
    """Return when consecutive steps are done on the best single slot."""
    slots, end_s = world.slots, np.inf
    for slot in slots.order:
        ready_s = max(from_s, slots.free_s[slot]) + slots.dispatch_s
        end_s = min(end_s, ready_s + steps * world.step_s[slot, kind])
    return end_s


@kernel
def lag(world, waiting):  # type: ignore[no-untyped-def]
    """Return the steps that waiting trials are behind the most advanced unfinished trial."""
    least, total = np.inf, 0.0
    for trial in range(len(world.left)):
        if world.left[trial] > 0 or world.busy[trial]:
            least = min(least, world.left[trial])
    for trial in waiting:
        total += world.left[trial] - least
    return total
