"""Finish: minimise the estimated makespan, the fastest idle slot first."""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from rota.core.arrays import Floats
from rota.core.compiled import kernel
from rota.core.errors import ConfigError
from rota.core.population.changes import move_s
from rota.core.population.events import Interval
from rota.core.population.memory import (
    AT,
    ENDS_S,
    GIVEN,
    KIND,
    PASS,
    QUEUE,
    RETIRED,
    STATUS,
    UP,
    by_kind,
    flags_of,
    population_at,
    seconds_of,
    step_s_of,
    trials_of,
)
from rota.core.population.memory import STEPS as TRAINED
from rota.core.population.policies import CompiledAllocation, ProposingAllocation
from rota.core.population.proposals import begin_turns, has_no_turn, idle_slots, next_turn, propose_steps
from rota.core.population.view import PopulationView
from rota.policies.allocation.horizon import (
    after_assignments,
    all_done,
    divided,
    in_sequence,
    lag,
    world_of,
)

INTERVALS = np.array([0.25, 0.5, 1.0, 2.0, 4.0, 8.0])
"""Lengths of assignments, in intervals."""
WHOLE = 2
"""Position of a whole interval among them."""
SHARES = np.array([0.125, 0.25, 0.5, 0.75, 1.0])
"""Lengths of assignments, in fair shares."""
LISTS = len(INTERVALS) + len(SHARES)
CANDIDATES = 1 + 2 * LISTS
"""Number of candidates: no assignment; assignments from the head of the queue; those from where it suits the
slot."""

STEPS, ENDS, ALL_DONE, LAST, TRIALS, MOVES, FIRST, REST, MORE = range(9)
"""Columns of a candidate: steps, end of the assignment, estimated makespan, earliest end of its last trial,
number of trials, seconds before training, steps left of its first trial before and of its last one after, and
seconds of later dispatches. Times count from now."""
COLUMNS = 9

DONE, UNDONE, SEQUENCE, MEAN, BEHIND = range(5)
"""Facts about all candidates: makespan if the slot is used best, number of unfinished trials, earliest end of
the largest trial, mean steps left of a trial, and total steps that waiting trials are behind the leading
one."""
FACTS = 5

CAUTION = 1.0
"""Standard deviations by which an assignment is expected to end later."""

NOTHING = 0


class Outlook:
    """An idle slot, and its candidate assignments."""

    __slots__ = ("about", "candidates", "suits", "waiting")

    def __init__(self, view: PopulationView, slot: int, *, short: bool = False) -> None:
        """With `short`, leave out assignments longer than an interval."""
        self.waiting = np.array(view.waiting)
        self.candidates = np.empty((CANDIDATES, COLUMNS))
        """Candidate → columns as above."""
        self.about = np.empty(FACTS)
        state = (
            view.status,
            view.steps,
            view.assigned,
            view.at,
            view.up,
            view.retired,
            view.ends_s,
            view.now_s,
        )
        given = (view.terms.steps, view.terms.interval, view.costs.dispatch_s, short)
        idle = np.zeros(len(view.up), np.bool_)
        idle[view.idle] = True
        self.suits = look(
            self.candidates, self.about, slot, self.waiting, moves_s(view, slot), idle,
            view.step_times.step_s, view.step_times.spread, view.kind, state, given,
        )  # fmt: skip
        """The queue position that suits the slot."""

    def parts(self, view: PopulationView, candidate: int) -> list[Interval]:
        """Return the intervals of a candidate."""
        start = 0 if candidate <= LISTS else self.suits
        order = [*view.waiting[start:], *view.waiting[:start][::-1]]
        return view.intervals(order, int(self.candidates[candidate, STEPS]))


def moves_s(view: PopulationView, slot: int) -> Floats:
    """Return the seconds to transfer each waiting trial to a slot."""
    if view.costs.moves_are_free:
        return np.zeros(len(view.waiting))
    return np.array([view.move_s(trial, slot) for trial in view.waiting])


def fastest_first(view: PopulationView) -> list[int]:
    """Return the idle slots in the order in which they get assignments."""
    if not view.idle or not view.waiting:
        return []
    if len(view.idle) == 1:
        return list(view.idle)
    step_s = view.step_times.step_s.mean(1).tolist()
    return sorted(view.idle, key=lambda slot: (step_s[slot], slot))


@kernel
def look(candidates, about, slot, waiting, moves, idle, step_s, spread, kind, state, given):  # type: ignore[no-untyped-def]
    """Fill in the candidates and the facts about all; return the queue position that suits the slot."""
    short = given[-1]
    world = world_of(step_s, spread, kind, state, given[:-1])
    next_s = wait_for_next(world, slot, idle)
    trials = ((world.left > 0) | world.busy).sum()
    best = all_done(world, world.work)
    about[DONE], about[UNDONE], about[MEAN] = best, trials, world.left.sum() / trials
    about[SEQUENCE] = divided(world.slots, world.work.max(), 1, 0.0)
    about[BEHIND] = lag(world, waiting)
    share = max(0.0, best - world.dispatch_s) / step_s[slot, kind[waiting[0]]]
    start = suitable(world, slot, waiting, trials)
    before_s = world.slots.free_s[slot]
    for c in range(len(candidates)):
        row = candidates[c]
        if c == NOTHING:
            row[:] = 0.0
            row[ALL_DONE] = np.inf  # some slot has to work
            if next_s < np.inf:
                row[MORE] = more_dispatches_s(world, slot, waiting[0], best - next_s)
                world.slots.free_s[slot] = next_s + row[MORE]
                row[ALL_DONE] = after_assignments(world, 0.0, 0.0, all_done(world, world.work))
        elif c > LISTS and start == 0:
            row[:] = candidates[c - LISTS]
        else:
            steps = int(length((c - 1) % LISTS, world.interval, share))
            if short and (c - 1) % LISTS > WHOLE:
                row[:] = 0.0
                row[STEPS], row[ALL_DONE] = steps, np.inf
            else:
                consider(row, world, slot, waiting, moves, start if c > LISTS else 0, steps, best)
        world.slots.free_s[slot] = before_s
    return start


@kernel
def wait_for_next(world, slot, idle):  # type: ignore[no-untyped-def]
    """Return when the next assignment ends; idle slots that were served before this one count as free then.

    They were left idle. If each could still be counted on, none would ever do anything.
    """
    next_s = np.inf
    for other in world.slots.order:
        if not idle[other]:
            next_s = min(next_s, world.slots.free_s[other])
    mine_s = world.step_s[slot].mean()
    for other in world.slots.order:
        if idle[other] and (world.step_s[other].mean(), other) < (mine_s, slot):
            world.slots.free_s[other] = next_s
    return next_s


@kernel
def suitable(world, slot, waiting, trials):  # type: ignore[no-untyped-def]
    """Return the queue position of a trial that suits the slot.

    A slot on which trials gain on the mean is for the least advanced. On other slots trials fall behind:
    these are for the least advanced of those that can afford it.
    """
    kind = world.kind[waiting[0]]
    rate, used = 0.0, 0
    for other in world.slots.order:
        if used < trials:
            rate += 1.0 / world.step_s[other, kind]
            used += 1
    meanwhile = world.interval * world.step_s[slot, kind] * rate / trials
    if meanwhile <= world.interval:
        return 0
    most = world.left.sum() / trials - meanwhile + world.interval
    for at in range(len(waiting)):
        if world.left[waiting[at]] <= most:
            return at
    return len(waiting) - 1


@kernel
def length(number, interval, share):  # type: ignore[no-untyped-def]
    """Return the steps of an assignment; at least those of the shortest, to avoid ever smaller ones."""
    shortest = max(1.0, INTERVALS[0] * interval)
    if number < len(INTERVALS):
        return max(shortest, INTERVALS[number] * interval)
    return max(shortest, SHARES[number - len(INTERVALS)] * share)


@kernel
def more_dispatches_s(world, slot, trial, left_s):  # type: ignore[no-untyped-def]
    """Return the seconds of later dispatches: one for each halving of the time that is left."""
    shortest_s = max(world.dispatch_s, world.interval * world.step_s[slot, world.kind[trial]])
    return world.dispatch_s * np.log2(1.0 + max(0.0, left_s) / shortest_s)


@kernel
def consider(row, world, slot, waiting, moves, first, steps, best):  # type: ignore[no-untyped-def]
    """Fill in the row of an assignment of this many steps."""
    taken, made, moved_s, trained_s, left, last = 0, 0, 0.0, 0.0, 0, -1
    rest = world.rest
    rest[:] = world.work
    while taken < len(waiting) and made < steps:
        at = first + taken if first + taken < len(waiting) else len(waiting) - 1 - taken
        last = waiting[at]
        mine = min(world.left[last], steps - made)
        left = world.left[last] - mine
        moved_s += moves[at]
        trained_s += mine * world.step_s[slot, world.kind[last]]
        rest[last] = left * world.units_s[world.kind[last]]
        made += mine
        taken += 1
    end_s = world.dispatch_s + moved_s + trained_s
    more_s = more_dispatches_s(world, slot, waiting[0], best - end_s)
    world.slots.free_s[slot] = end_s + more_s
    rest_s = all_done(world, rest, slot)
    row[STEPS] = made
    row[ENDS] = end_s
    row[LAST] = end_s if left == 0 else in_sequence(world, left, world.kind[last], end_s)
    late_s = (
        end_s + CAUTION * world.doubt * np.sqrt(made * world.interval) * world.step_s[slot, world.kind[last]]
    )
    row[ALL_DONE] = after_assignments(world, late_s, rest[last], max(late_s, rest_s, row[LAST]))
    row[TRIALS] = taken
    row[MOVES] = moved_s + world.dispatch_s
    row[FIRST] = world.left[waiting[first]]
    row[REST] = left
    row[MORE] = more_s


SLACK, PATIENCE = 0.002, 100.0


@dataclass(frozen=True, slots=True)
class Finish(ProposingAllocation):
    """Choose the assignment with the lowest estimated makespan.

    Of equals it takes one with fewer expected dispatches, then whole intervals before fractions, then trials
    that suit the slot, then the shortest. A slot is left idle only if that is better than any assignment.
    """

    slack: float = SLACK
    """Relative difference below which estimates are equal."""
    patience: float = PATIENCE
    """Longest assignment of more than an interval, as a multiple of its dispatch and transfer times: what is
    assigned stays on a slot, whatever happens to it."""

    def __post_init__(self) -> None:
        if not (self.slack >= 0.0 and self.patience >= 0.0):
            raise ConfigError(f"slack is {self.slack}, patience {self.patience}; give 0 or more")

    @property
    def compiled(self) -> CompiledAllocation:
        return _form(self)


@lru_cache(maxsize=64)
def _form(finish: Finish) -> CompiledAllocation:
    return CompiledAllocation(propose, (finish.slack, finish.patience))


@kernel
def propose(address):  # type: ignore[no-untyped-def]
    """Propose the best candidate for the fastest slot in turn."""
    p = population_at(address)
    slot = next_by_speed(p)
    if slot < 0:
        return PASS
    candidates, about = np.empty((CANDIDATES, COLUMNS)), np.empty(FACTS)
    free = p.dispatch_s == 0.0 and p.moves_are_free != 0
    suits = look_at(p, candidates, about, slot, free)
    chosen = choose(candidates, p.interval, p.option0, p.option1)
    return propose_candidate(p, slot, candidates, chosen, suits)


@kernel
def next_by_speed(p):  # type: ignore[no-untyped-def]
    """Return the next idle slot in turn, the fastest first; -1 if there is none."""
    if p.turn < 0:
        if has_no_turn(p):
            return -1
        step_s, keys = step_s_of(p), np.empty(p.n_slots)
        for slot in range(p.n_slots):
            keys[slot] = step_s[slot].mean()
        begin_turns(p, keys, np.sort(idle_slots(p)))
    return next_turn(p)


@kernel
def look_at(p, candidates, about, slot, short):  # type: ignore[no-untyped-def]
    """Do `look` for a slot of an engine."""
    trials, flags = trials_of(p), flags_of(p)
    waiting, moves = trials[QUEUE][: p.waiting], np.zeros(p.waiting)
    if not p.moves_are_free:
        for at in range(p.waiting):
            moves[at] = move_s(p, waiting[at], slot)
    idle = np.zeros(p.n_slots, np.bool_)
    for other in idle_slots(p):
        idle[other] = True
    state = (
        trials[STATUS], trials[TRAINED], trials[GIVEN], trials[AT], flags[UP], flags[RETIRED],
        seconds_of(p)[ENDS_S], p.now_s,
    )  # fmt: skip
    return look(
        candidates, about, slot, waiting, moves, idle, step_s_of(p), by_kind(p, p.spread), trials[KIND],
        state, (p.budget, p.interval, p.dispatch_s, short),
    )  # fmt: skip


@kernel
def propose_candidate(p, slot, candidates, chosen, suits):  # type: ignore[no-untyped-def]
    """Propose a candidate."""
    start = suits if chosen > LISTS else 0
    return propose_steps(p, slot, start, int(candidates[chosen, STEPS]) if chosen != NOTHING else 0)


@kernel
def choose(candidates, interval, slack, patience):  # type: ignore[no-untyped-def]
    """Return the position of the best candidate."""
    soonest = np.inf
    for row in candidates:
        if row[STEPS] <= interval or row[ENDS] <= patience * row[MOVES]:
            soonest = min(soonest, row[ALL_DONE])
    best, best_key = NOTHING, (2, 0.0, 0, 0, 0.0)
    for c in range(len(candidates)):
        row = candidates[c]
        key = (int(c == NOTHING), row[MORE], int(row[STEPS] < interval), int(c <= LISTS), row[STEPS])
        short = row[STEPS] <= interval or row[ENDS] <= patience * row[MOVES]
        if short and row[ALL_DONE] <= soonest * (1.0 + slack) and key < best_key:
            best, best_key = c, key
    return best
