"""A whole rehearsal in compiled code, to learn from: the same as `rehearse` gives, several times as fast.

For trials of equal cost without evolution, on slots that stay, where nothing has to be moved: what agents
learn from. A test holds it against the real loop, to the last bit.
"""

from math import exp

import numpy as np

from rota.core.compiled import kernel
from rota.core.population.step_times import WEIGHT
from rota.core.population.view import TrialStatus
from rota.policies.allocation.finish import CANDIDATES, COLUMNS, FACTS, LISTS, NOTHING, STEPS, look
from rota.policies.allocation.learned import FEATURES, describe, scores

WAITING, ASSIGNED, FINISHED = int(TrialStatus.WAITING), int(TrialStatus.ASSIGNED), int(TrialStatus.FINISHED)


@kernel
def episode(speeds, terms, dispatch_s, step_s, noise, draws, good_at, only_first, weights, seed, share):
    """Return the drawn decisions, their number, the makespan, and when the first trial was good enough.

    `draws` has a normal number for each part of each trial, `good_at` the steps after which a trial is as
    good as asked; `only_first` says that nobody waits for the others then. A `share` of the decisions is
    drawn; the others are what seems best.
    """
    budget, interval = terms
    slots, trials = len(speeds), len(draws)
    np.random.seed(seed)
    base_s = step_s / speeds
    pace, spread, measured = base_s.copy().reshape(slots, 1), np.zeros((slots, 1)), np.zeros(slots, np.int64)
    kind, status, on = np.zeros(trials, np.int64), np.full(trials, WAITING), np.full(trials, -1)
    steps, assigned, parts = (
        np.zeros(trials, np.int64),
        np.zeros(trials, np.int64),
        np.zeros(trials, np.int64),
    )
    up, retired, idle = np.ones(slots, np.bool_), np.zeros(slots, np.bool_), np.ones(slots, np.bool_)
    free_s, begun_s, waits_s, ends_s = (
        np.zeros(slots),
        np.zeros(slots),
        np.zeros(slots),
        np.full(slots, np.inf),
    )
    begun_as, reviewed, due = np.zeros(slots, np.int64), np.zeros(slots, np.int64), np.zeros(slots, np.int64)
    lists = np.zeros((slots, trials * (budget // interval + 2), 2), np.int64)
    at, count = np.zeros(slots, np.int64), np.zeros(slots, np.int64)
    waiting, queued = np.arange(trials), trials
    moves, candidates, about = np.zeros(trials), np.empty((CANDIDATES, COLUMNS)), np.empty(FACTS)
    features, allowed = np.zeros((64, CANDIDATES, FEATURES), np.float32), np.zeros((64, CANDIDATES), np.bool_)
    chosen = np.zeros(64, np.int64)
    drawn, made, dues, number, left, now_s, good_s = 0, 0, 0, 0, trials, 0.0, np.inf
    while True:
        # hand lists to idle slots, the fastest first
        order = np.argsort(pace[:, 0], kind="mergesort")
        for slot in order:
            if not idle[slot] or queued == 0:
                continue
            if drawn == len(chosen):
                features, allowed, chosen = grown(features), grown(allowed), grown(chosen)
            state = (status, steps, assigned, on, up, retired, free_s, now_s)
            queue = waiting[:queued]
            suits = look(
                candidates, about, slot, queue, moves[:queued], idle, pace, spread, kind, state,
                (budget, interval, dispatch_s, False),
            )  # fmt: skip
            describe(
                features[drawn], allowed[drawn], candidates, about, slot, pace, spread, up, retired, 0, suits,
                queued, idle.sum(), interval, dispatch_s,
            )  # fmt: skip
            found = scores(features[drawn], allowed[drawn], weights)
            made += 1
            best = np.argmax(found)
            if np.random.random() < share:
                for c in range(CANDIDATES):
                    found[c] -= np.log(-np.log(np.random.random()))
                best = np.argmax(found)
                chosen[drawn] = best
                drawn += 1
            if best != NOTHING:
                first = suits if best > LISTS else 0
                taken, parted, list_s = fill(
                    lists[slot], queue, first, int(candidates[best, STEPS]), steps, assigned, status, budget,
                    interval, now_s + dispatch_s, pace[slot, 0],
                )  # fmt: skip
                on[lists[slot, :parted, 0]] = slot
                low = min(first, queued - taken)
                waiting[low : queued - taken] = waiting[low + taken : queued].copy()
                queued -= taken
                free_s[slot], idle[slot], at[slot], count[slot] = list_s, False, 0, parted
                waits_s[slot], due[dues] = dispatch_s, slot
                dues += 1
        # slots begin what is next on their lists
        for slot in due[:dues]:
            trial, length = lists[slot, at[slot]]
            factor = exp(noise * (draws[trial, parts[trial] % draws.shape[1]] - noise / 2))
            parts[trial] += 1
            number += 1
            begun_s[slot], begun_as[slot] = now_s, number
            ends_s[slot] = now_s + (waits_s[slot] + length * base_s[slot] * factor)
        # the next instant, and what has ended then
        now_s, dues, reports = ends_s.min(), 0, 0
        while ends_s.min() == now_s:
            slot = next_end(ends_s, begun_as, now_s)
            ends_s[slot] = np.inf
            trial, length = lists[slot, at[slot]]
            seconds = (now_s - begun_s[slot] - waits_s[slot]) / length
            waits_s[slot] = 0.0
            observe(pace, spread, measured, slot, seconds)
            steps[trial] += length
            assigned[trial] -= length
            at[slot] += 1
            if steps[trial] >= good_at[trial]:
                good_s = min(good_s, now_s)
            if steps[trial] >= budget or steps[trial] >= good_at[trial]:
                status[trial], assigned[trial] = FINISHED, 0
                left -= 1
                while at[slot] < count[slot] and lists[slot, at[slot], 0] == trial:
                    at[slot] += 1
            else:
                reviewed[reports] = trial
                reports += 1
            if at[slot] == count[slot]:
                idle[slot], free_s[slot] = True, now_s
            else:
                due[dues] = slot
                dues += 1
        if left == 0 or (only_first and good_s < np.inf):
            return features[:drawn], allowed[:drawn], chosen[:drawn], made, now_s, good_s
        for trial in reviewed[:reports]:
            if assigned[trial] == 0:
                status[trial] = WAITING
                queued = queue_up(waiting, queued, steps, trial)


@kernel
def grown(values):
    """The same with room for twice as many."""
    more = np.zeros_like(values)
    return np.concatenate((values, more))


@kernel
def fill(parts, queue, first, wanted, steps, assigned, status, budget, interval, ends_s, pace_s):
    """Put so many steps on a list; returns trials taken, parts made, and when it is expected to be done."""
    taken, made = 0, 0
    while taken < len(queue) and wanted > 0:
        trial = queue[first + taken] if first + taken < len(queue) else queue[len(queue) - 1 - taken]
        taken += 1
        mine = min(wanted, budget - steps[trial] - assigned[trial])
        wanted -= mine
        status[trial] = ASSIGNED
        while mine > 0:
            length = min(interval, mine)
            parts[made, 0], parts[made, 1] = trial, length
            assigned[trial] += length
            ends_s += length * pace_s
            made += 1
            mine -= length
    return taken, made, ends_s


@kernel
def next_end(ends_s, begun_as, now_s):
    """The slot whose part ends now; of several, the one that began first."""
    found = -1
    for slot in range(len(ends_s)):
        if ends_s[slot] == now_s and (found < 0 or begun_as[slot] < begun_as[found]):
            found = slot
    return found


@kernel
def observe(pace, spread, measured, slot, seconds):
    """A measurement, as `Paces.observe` takes it in."""
    known, before = measured[slot], pace[slot, 0]
    weight = max(WEIGHT, 1.0 / (known + 1))
    measured[slot] = known + 1
    pace[slot, 0] = before + weight * (seconds - before)
    if known:
        off = seconds / before - 1.0
        spread[slot, 0] += weight * (off * off - spread[slot, 0])


@kernel
def queue_up(waiting, queued, steps, trial):
    """Queue a trial behind those that are as far; return how many wait."""
    at = queued
    while at > 0 and steps[waiting[at - 1]] > steps[trial]:
        waiting[at] = waiting[at - 1]
        at -= 1
    waiting[at] = trial
    return queued + 1
