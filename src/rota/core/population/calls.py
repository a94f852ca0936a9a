"""Calls of Python into a population's engine: decisions by their numbers, and what happened in a real run."""

from rota.core.compiled import kernel
from rota.core.population.changes import (
    append,
    begin_assignment,
    close,
    empty,
    end_assignment,
    fail,
    go_on,
    join,
    lose,
    remove,
    report,
    retire,
    stop,
    write,
)
from rota.core.population.memory import (
    AT,
    BUDGET,
    CHECKPOINT,
    CLONED,
    CURRENT,
    GIVEN,
    GREW,
    GROWN,
    IDLE,
    IDLED,
    INTERVAL,
    JOINED,
    NEXT,
    NODE_FAILED,
    OK,
    OVER,
    QUEUE,
    REPORTED_EVENT,
    SLOT_RETIRED,
    STATUS,
    STEPS,
    STOPPED_EVENT,
    TRIAL,
    TRIAL_FAILED,
    TRIAL_FINISHED,
    parts_of,
    population_at,
    slots_of,
    trials_of,
)
from rota.core.population.outcomes import ALONG_TREES
from rota.core.population.stepping import GROW, forget, is_full
from rota.core.population.trees import clone_along, grow_along, kind_after, may_grow
from rota.core.population.view import FINISHED, WAITING

NOT_IDLE, EMPTY, NOT_WAITING, WRONG_STEPS, CUT_INTERVAL = -11, -12, -13, -14, -15
"""Reasons for which an assignment is illegal."""


@kernel
def assign_parts(address, slot, given):
    """Assign intervals, rows of trial and steps, to an idle slot; return OK, GROW, or why it is illegal."""
    p = population_at(address)
    code = why_illegal(p, slot, given)
    if code != OK:
        return code
    if is_full(p, len(given)):
        return GROW
    last = -1
    begin_assignment(p, slot)
    for i in range(len(given)):
        last = append(p, slot, last, given[i, 0], given[i, 1])
    end_assignment(p, slot)
    return OK


@kernel
def why_illegal(p, slot, given):
    """Return why intervals cannot be assigned, and note the trial; OK if they can."""
    trials, idle = trials_of(p), slots_of(p)[IDLE]
    if not (idle[: p.idle] == slot).any():
        return NOT_IDLE
    if len(given) == 0:
        return EMPTY
    for i in range(len(given)):
        trial, steps = given[i, 0], given[i, 1]
        p.trial, p.wrong = trial, steps
        if not 0 <= trial < p.n_trials or trials[STATUS, trial] != WAITING:
            return NOT_WAITING
        p.steps = trials[BUDGET, trial] - trials[STEPS, trial]
        for j in range(i):
            p.steps -= given[j, 1] if given[j, 0] == trial else 0
        if not 1 <= steps <= p.steps:
            return WRONG_STEPS
        if p.outcome == ALONG_TREES and steps != trials[INTERVAL, trial]:
            p.steps = trials[INTERVAL, trial]
            return CUT_INTERVAL
    return OK


@kernel
def take_in(address, kind, slot, trial, steps, began_s, ended_s, moved_s, metric, more):
    """Take in an event of a real run."""
    p = population_at(address)
    if kind == REPORTED_EVENT:
        report(p, slot, trial, steps, began_s, ended_s, moved_s, metric, more)
        return
    write(p, kind, slot, trial, steps, more)
    if kind == IDLED:
        empty(p, slot)
    elif kind == TRIAL_FAILED:
        fail(p, trial)
    elif kind == NODE_FAILED:
        lose(p, slot)
    elif kind == JOINED:
        join(p, slot)


@kernel
def decide(address, kind, item, more):
    """Continue or stop a trial, or retire a slot, which must be possible."""
    p = population_at(address)
    if kind == STOPPED_EVENT:
        stop(p, item)
    elif kind == SLOT_RETIRED:
        retire(p, item)
    else:
        go_on(p, item, more)


@kernel
def clone(address, trial, donor, more):
    """Continue a trial, whose kind is set, as a copy of its donor."""
    p = population_at(address)
    checkpoints = trials_of(p)[CHECKPOINT]
    checkpoints[trial] = checkpoints[donor]
    if p.outcome == ALONG_TREES:
        clone_in_tree(p, trial, donor)
    elif trial != donor:
        trials_of(p)[GREW, trial] = trials_of(p)[GREW, donor]
    go_on(p, trial, True)
    forget(p, trial)
    write(p, CLONED, donor, trial, 0, more)
    trials = trials_of(p)
    if trials[STEPS, trial] >= trials[BUDGET, trial]:  # its donor is at the end of a path
        p.waiting = remove(trials[QUEUE], p.waiting, trial)
        close(p, trial, FINISHED)
        write(p, TRIAL_FINISHED, -1, trial, 0, 0)


@kernel
def clone_in_tree(p, trial, donor):
    """Put a trial where its donor is; it has the intervals left that follow there."""
    trials, parts = trials_of(p), parts_of(p)
    if trials[GIVEN, trial]:  # the rest of its assignment would be of another tree
        part = slots_of(p)[CURRENT, trials[AT, trial]]
        while part >= 0:
            if parts[TRIAL, part] == trial:
                parts[OVER, part] = 1
            part = parts[NEXT, part]
        trials[GIVEN, trial] = 0
    trials[BUDGET, trial] = trials[STEPS, trial] + trials[BUDGET, donor] - trials[STEPS, donor]
    trials[INTERVAL, trial] = trials[INTERVAL, donor]
    clone_along(p, trial, donor)


@kernel
def grow(address, trial, column, more):
    """Change the network of a waiting trial, whose kind is set unless it walks along a tree."""
    p = population_at(address)
    if p.outcome == ALONG_TREES:
        grow_along(p, trial, column)
        return
    trials_of(p)[GREW, trial] = 1
    p.growths += 1
    write(p, GROWN, -1, trial, -1, more)


@kernel
def may_grow_at(address, trial, column):
    """Do `may_grow`, for Python."""
    return may_grow(population_at(address), trial, column)


@kernel
def kind_after_at(address, trial, column):
    """Do `kind_after`, for Python."""
    return kind_after(population_at(address), trial, column)


@kernel
def is_full_at(address):
    """Do `is_full`, for Python."""
    return is_full(population_at(address))
