"""The compiled calls of a population's engine: `advance` to the next question, and decisions by numbers.

Time passes here: a slot trains the intervals of its assignment one by one, and reports each, or all at its
end. Where metrics come from arrays, and a compiled allocation answers, nothing leaves compiled code before.
"""

import numpy as np

from rota.core.calls import call_advance
from rota.core.compiled import carray, kernel
from rota.core.memory import pointer
from rota.core.population.changes import (
    assign,
    empty,
    go_on,
    join,
    lose,
    most_parts,
    move_s,
    report,
    write,
)
from rota.core.population.memory import (
    BEGAN_AS,
    BEGAN_S,
    CHANGE,
    CURRENT,
    DRAWN,
    DRIFT,
    DRIFTS,
    DUE,
    END_S,
    IDLED,
    INTERVAL,
    JOINED,
    JOINS,
    KIND,
    MEMORY,
    MOVED_S,
    NEXT,
    NODE,
    NODE_FAILED,
    OK,
    OVER,
    PART_STEPS,
    PASS,
    REVIEWS,
    SINCE,
    SLOWS,
    SPAN_BEGAN_S,
    SPAN_ENDED_S,
    SPAN_MOVED_S,
    STATUS,
    TRIAL,
    UNREPORTED,
    WAITS_S,
    by_kind,
    parts_of,
    population_at,
    seconds_of,
    slots_of,
    spans_of,
    trials_of,
)
from rota.core.population.outcomes import ALONG_TREES, ASKED, NOTHING_MEASURED, metric_after
from rota.core.population.trees import metric_along, recorded_s
from rota.core.population.view import FINISHED

REVIEW, ASSIGN, OUTCOME = 1, 2, 3
"""What `advance` asks: to review the trials that reported, to assign idle slots, the metric of a trial after
some more steps, or (`PREPARE`) the numbers that a compiled allocation needs."""
DONE, STUCK, GROW, UNREVIEWED = -1, -2, -3, -4
"""What else it returns: nothing is left to do; trials are left but nothing will happen; an array is full;
or a trial that reported was not reviewed."""
AT_FIRST, NEXT_INSTANT, ENDS, REVIEWS_DUE, ASSIGNS, BEGINS, GOOD_ENOUGH = range(7)
"""What comes next."""


@kernel
def advance(address):
    """Go on until something is to be decided; return what, or why nothing is."""
    p = population_at(address)
    while True:
        code = OK
        if is_full(p):
            return GROW
        if p.stage == AT_FIRST:
            join_first(p)
        elif p.stage == NEXT_INSTANT:
            code = find_next(p)
        elif p.stage == ENDS:
            code = happen(p)
        elif p.stage == REVIEWS_DUE:
            code = review(p)
        elif p.stage == ASSIGNS:
            code = ask(p, address)
        elif p.stage == BEGINS:
            begin_next(p)
        else:
            code = DONE
        if code != OK:
            return code


@kernel
def is_full(p, parts=0):
    """Return whether an array may be too small for the next step, in which so many intervals are assigned."""
    p.need_parts = parts
    events = p.count + 2 * p.parts_used + p.n_slots + p.n_nodes + 8
    if events > p.event_room or p.parts_used + parts > p.part_room:
        return True
    return (p.noise != 0.0 and p.most_drawn >= p.trial_width) or (
        p.drift != 0.0 and p.most_drifted >= p.slot_width
    )


@kernel
def join_first(p):
    """Let the nodes join at the beginning whose first change is not that they join."""
    changes = carray(pointer(p.changes), p.n_changes, CHANGE)
    for node in range(p.n_nodes):
        late = False
        for change in changes:
            if change.node == node and change.what != SLOWS:
                late = change.what == JOINS
                break
        if not late:
            begin_instant(p)
            write(p, JOINED, node, -1, 0, 0)
            join(p, node)
    p.stage = REVIEWS_DUE if p.happened else NEXT_INSTANT


@kernel
def begin_instant(p):
    """Begin an instant with its first event."""
    if not p.happened:
        p.now_s = p.at_s
        p.freed = 0
        p.happened = 1
        p.instants += 1
        if not p.keeps_timeline:
            p.count = 0


@kernel
def find_next(p):
    """Find the time of the next instant."""
    if p.left == 0:
        return DONE
    ends, changes = seconds_of(p)[END_S], carray(pointer(p.changes), p.n_changes, CHANGE)
    at_s = ends.min()
    if p.changed < p.n_changes:
        at_s = min(at_s, changes[p.changed].at_s)
    if at_s > p.deadline_s:
        p.now_s = p.deadline_s
        return DONE
    if at_s == np.inf:
        return STUCK
    p.at_s = at_s
    p.happened = 0
    p.ending = -1
    p.stage = ENDS
    return OK


@kernel
def happen(p):
    """Let an interval end that ends now, or else nodes change."""
    if p.ending < 0:
        p.ending = next_end(p)
        if p.ending >= 0 and not end(p, p.ending):
            p.ending = -1
            return OK
    if p.ending >= 0:
        code = report_all(p, p.ending)
        if code == OK:
            end_reports(p, p.ending)
            p.ending = -1
        return code
    change_nodes(p)
    p.stage = NEXT_INSTANT
    if p.happened:
        p.stage = REVIEWS_DUE
        if p.best >= p.enough:
            p.stage = GOOD_ENOUGH
    return OK


@kernel
def next_end(p):
    """Return the slot whose interval ends now, of several that which began first; -1 if there is none."""
    ends, began_as, found = seconds_of(p)[END_S], slots_of(p)[BEGAN_AS], -1
    for slot in range(p.n_slots):
        if ends[slot] == p.at_s and (found < 0 or began_as[slot] < began_as[found]):
            found = slot
    return found


@kernel
def end(p, slot):
    """End the interval of a slot; return whether its assignment reports now."""
    slots, seconds = slots_of(p), seconds_of(p)
    part = slots[CURRENT, slot]
    seconds[END_S, slot] = np.inf
    if part >= 0:
        spans = spans_of(p)
        spans[SPAN_BEGAN_S, part], spans[SPAN_ENDED_S, part] = seconds[BEGAN_S, slot], p.at_s
        spans[SPAN_MOVED_S, part] = seconds[MOVED_S, slot]
        slots[CURRENT, slot] = parts_of(p)[NEXT, part]
        if slots[CURRENT, slot] >= 0 and not p.report_each:
            begin(p, slot, p.at_s)
            return False
    begin_instant(p)
    return True


@kernel
def report_all(p, slot):
    """Report the trained intervals of a slot; a trial that reached the target is trained no further."""
    slots, parts, spans = slots_of(p), parts_of(p), spans_of(p)
    while slots[UNREPORTED, slot] != slots[CURRENT, slot]:
        part = slots[UNREPORTED, slot]
        if not parts[OVER, part]:
            trial, steps = parts[TRIAL, part], parts[PART_STEPS, part]
            if p.outcome == ASKED and not p.answered:
                p.trial, p.steps = trial, steps
                return OUTCOME
            metric = p.answer if p.outcome == ASKED else outcome(p, trial, steps)
            p.answered = 0
            if metric >= p.target:
                give_up(p, part, trial)
            report(
                p, slot, trial, steps, spans[SPAN_BEGAN_S, part], spans[SPAN_ENDED_S, part],
                spans[SPAN_MOVED_S, part], metric, 0,
            )  # fmt: skip
        slots[UNREPORTED, slot] = parts[NEXT, part]
    return OK


@kernel
def give_up(p, part, trial):
    """Mark the later intervals of a trial in its assignment as over."""
    parts = parts_of(p)
    part = parts[NEXT, part]
    while part >= 0:
        if parts[TRIAL, part] == trial:
            parts[OVER, part] = 1
        part = parts[NEXT, part]


@kernel
def end_reports(p, slot):
    """Let a slot go on with what is left of its assignment, or be idle."""
    slots, parts = slots_of(p), parts_of(p)
    part = slots[CURRENT, slot]
    while part >= 0 and parts[OVER, part]:
        part = parts[NEXT, part]
    slots[CURRENT, slot] = slots[UNREPORTED, slot] = part
    if part >= 0:
        slots[DUE, p.due] = slot
        p.due += 1
    else:
        write(p, IDLED, slot, -1, 0, 0)
        empty(p, slot)


@kernel
def outcome(p, trial, steps):
    """Return the metric of a trial after some more steps, from arrays."""
    if p.outcome == NOTHING_MEASURED:
        return np.nan
    if p.outcome == ALONG_TREES:
        return metric_along(p, trial)
    n, rows, width = p.n_trials, p.n_curves, p.curve_width
    return metric_after(
        p.outcome, trial, float(steps), carray(pointer(p.progress), n, np.float64),
        carray(pointer(p.reached), n, np.float64), carray(pointer(p.curve), n, np.int64),
        carray(pointer(p.grown), n, np.int64), carray(pointer(p.curves), (rows, width), np.float64),
        carray(pointer(p.curve_steps), width, np.float64), p.gain,
    )  # fmt: skip


@kernel
def change_nodes(p):
    """Let nodes slow down, fail and join that do so now."""
    changes = carray(pointer(p.changes), p.n_changes, CHANGE)
    while p.changed < p.n_changes and changes[p.changed].at_s == p.at_s:
        change = changes[p.changed]
        if change.what == SLOWS:
            slow_down(p, change.node, change.factor)
        else:
            begin_instant(p)
            if change.what == JOINS:
                write(p, JOINED, change.node, -1, 0, 0)
                join(p, change.node)
            else:
                write(p, NODE_FAILED, change.node, -1, 0, 0)
                lose(p, change.node)
        p.changed += 1


@kernel
def slow_down(p, node, now):
    """Rescale the rest of the current interval of each slot of a node, in the order of their assignments."""
    slots, seconds = slots_of(p), seconds_of(p)
    slow = carray(pointer(p.slow), p.n_nodes, np.float64)
    factor = now / slow[node]
    slow[node] = now
    last = 0
    while True:
        found = -1
        for slot in range(p.n_slots):
            running = slots[NODE, slot] == node and seconds[END_S, slot] < np.inf
            since = slots[SINCE, slot]
            if running and since > last and (found < 0 or since < slots[SINCE, found]):
                found = slot
        if found < 0:
            return
        last = slots[SINCE, found]
        from_s = max(p.at_s, seconds[BEGAN_S, found] + seconds[MOVED_S, found])
        seconds[END_S, found] = from_s + (seconds[END_S, found] - from_s) * factor
        p.begun += 1
        slots[BEGAN_AS, found] = p.begun


# ── decisions ───────────────────────────────────────────────────────────────────────────────────────────────


@kernel
def review(p):
    """Ask about the trials that reported, or let them go on."""
    if p.to_review and p.reviews:
        if p.reviews == 2:
            return UNREVIEWED
        p.reviews = 2
        return REVIEW
    p.reviews = min(p.reviews, 1)
    reviews = trials_of(p)[REVIEWS]
    while p.to_review:
        go_on(p, reviews[0], False)
    p.turn = -1
    p.stage = ASSIGNS
    return OK


@kernel
def ask(p, address):
    """Ask who is assigned to which slot, or let the compiled allocation answer."""
    if p.propose == 0:
        p.stage = BEGINS
        return ASSIGN
    while True:
        if not p.proposed:
            code = call_advance(p.propose, address)
            if code == PASS:
                p.stage = BEGINS
                return OK
            if code != OK:
                return code
            p.proposed = 1
        if is_full(p, most_parts(p)):
            return GROW
        p.proposed = 0
        if p.chosen_trials or p.chosen_steps:
            assign(p, p.slot, p.start, p.chosen_trials, p.chosen_steps)


@kernel
def begin_next(p):
    """Let one of the slots that are due begin its next interval."""
    if p.due == 0:
        p.stage = NEXT_INSTANT
        return
    due = slots_of(p)[DUE]
    begin(p, due[0], p.now_s)
    for i in range(1, p.due):
        due[i - 1] = due[i]
    p.due -= 1


@kernel
def begin(p, slot, at_s):
    """Start the next interval of an assignment; or end it, if no remaining trial is to be trained."""
    trials, slots, seconds, parts = trials_of(p), slots_of(p), seconds_of(p), parts_of(p)
    part = slots[CURRENT, slot]
    while part >= 0 and (parts[OVER, part] or trials[STATUS, parts[TRIAL, part]] >= FINISHED):
        parts[OVER, part] = 1
        part = parts[NEXT, part]
    slots[CURRENT, slot] = part
    seconds[BEGAN_S, slot] = at_s
    seconds[END_S, slot] = at_s
    moved_s = seconds[WAITS_S, slot]
    seconds[WAITS_S, slot] = 0.0
    if part >= 0:
        trial, steps = parts[TRIAL, part], parts[PART_STEPS, part]
        if not is_kept(p, slot, trial):
            moved_s += move_s(p, trial, slot)
        if p.load_s != 0.0 or p.save_s != 0.0:
            moved_s += load_and_save_s(p, slot, trial)
        kind, evaluate_s = trials[KIND, trial], 0.0
        if p.evaluate_s != 0.0:
            evaluate_s = p.evaluate_s / by_kind(p, p.speeds)[slot, kind]
        step_s = by_kind(p, p.expected_s)[slot, kind]
        alone_s = steps * step_s
        if p.outcome == ALONG_TREES:
            alone_s = recorded_s(p, trial) / by_kind(p, p.speeds)[slot, kind]
        training_s = (alone_s + evaluate_s) * factor_of(p, trial, slot, steps / trials[INTERVAL, trial])
        slow = carray(pointer(p.slow), p.n_nodes, np.float64)
        seconds[END_S, slot] = at_s + (moved_s + training_s * slow[slots[NODE, slot]])
    seconds[MOVED_S, slot] = moved_s
    p.begun += 1
    slots[BEGAN_AS, slot] = p.begun


@kernel
def is_kept(p, slot, trial):
    """Return whether a trial was trained by the current assignment and has not been reported since."""
    slots, parts = slots_of(p), parts_of(p)
    part = slots[UNREPORTED, slot]
    while part != slots[CURRENT, slot]:
        if parts[TRIAL, part] == trial and not parts[OVER, part]:
            return True
        part = parts[NEXT, part]
    return False


@kernel
def load_and_save_s(p, slot, trial):
    """Return the seconds to load a trial that is not in memory, and to save its checkpoint."""
    memory = slots_of(p)[MEMORY]
    loading_s = 0.0 if memory[slot] == trial else p.load_s
    forget(p, trial)
    memory[slot] = trial
    return loading_s + p.save_s


@kernel
def forget(p, trial):
    """Remove a trial from the memory of all slots."""
    memory = slots_of(p)[MEMORY]
    for slot in range(p.n_slots):
        if memory[slot] == trial:
            memory[slot] = -1


@kernel
def factor_of(p, trial, slot, intervals):
    """Return the factor on the time of a trial's next interval: noise of the trial, drift of the slot."""
    off = 0.0
    if p.noise != 0.0:
        drawn = trials_of(p)[DRAWN]
        draws = carray(pointer(p.trial_draws), (p.n_trials, p.trial_width), np.float64)
        off = p.noise * (draws[trial, drawn[trial]] - p.noise / 2)
        drawn[trial] += 1
        p.most_drawn = max(p.most_drawn, drawn[trial])
    if p.drift != 0.0:
        drifts, drift = slots_of(p)[DRIFTS], seconds_of(p)[DRIFT]
        draws = carray(pointer(p.slot_draws), (p.n_slots, p.slot_width), np.float64)
        drift[slot] += p.drift * np.sqrt(intervals) * draws[slot, drifts[slot]]
        drifts[slot] += 1
        p.most_drifted = max(p.most_drifted, drifts[slot])
        off += drift[slot]
    return np.exp(off)
