"""What the joint agent sees of each candidate: a waiting trial, and a change of its network or none.

All numbers are shares, ranks or differences, so that they mean the same in any population. Nothing is read
from recordings: only what was reported, step times, and which changes are possible.
"""

from math import inf
from typing import Any

import numpy as np

from rota.core.compiled import carray, kernel
from rota.core.memory import pointer
from rota.core.population.changes import move_s
from rota.core.population.memory import (
    BUDGET,
    ENDS_S,
    GIVEN,
    INTERVAL,
    KIND,
    QUEUE,
    RETIRED,
    STATUS,
    STEPS,
    UP,
    data_of,
    flags_of,
    metric_of,
    seconds_of,
    step_s_of,
    trials_of,
)
from rota.core.population.outcomes import ALONG_TREES
from rota.core.population.trees import kind_after, may_grow
from rota.core.population.view import ASSIGNED, FINISHED
from rota.policies.agents import Feature

MEANINGS = {
    "idle": "1 if the slot stays idle; the features below then are 0, but for those of the population",
    "grows": "1 if the network grows first",
    "new": "1 if the trial has not been trained yet",
    "depth": "share of the trial's intervals that it has reported",
    "below": "10 × (its last accuracy − the best of all)",
    "above.mean": "10 × (its last accuracy − the mean of its family after as many intervals)",
    "rank": "share of the trials that were better after as many intervals",
    "slope": "10 × (its last accuracy − that before it)",
    "next": "10 × the mean gain of its family in the next interval; 0 if none was there",
    "next.known": "1 if some were",
    "expected": "10 × (its last accuracy + that gain − the best of all)",
    "later": "10 × the mean gain of the others from there to where they are",
    "interval": "duration of the next interval / time left, at most 1",
    "rest": "duration of all its intervals here / time left, at most 3",
    "finishes": "1 if it can finish here before the deadline",
    "fits": "share of its intervals that fit here before the deadline",
    "cut": "share of its intervals that do not",
    "slower": "log(step time here / on the fastest slot) / 2",
    "lr": "2 × (log10 of its learning rate + 2.3); 0 if it has none",
    "lr.squared": "square of that, halved",
    "neighbours": "10 × mean deviation of others from their families' means, by nearness of learning rates",
    "neighbours.known": "how much of that is known, from 0 to 1",
    "deviation": "10 × mean deviation of the trial from its family's mean",
    "leads": "1 if it has the best accuracy; of an idle slot: 1 if that trial is being trained",
    "grown": "number of changes of its network, at most 3, / 3",
    "cost": "step time with the change / without − 1",
    "gain": "10 × mean gain of others in intervals after a change, beyond that in those without",
    "gain.known": "how much of that is known, from 0 to 1",
    "time": "share of the time that is over",
    "new.share": "share of the trials that have not been trained",
    "trials": "trials / 16",
    "slots": "usable slots / 12",
    "idle.share": "idle slots / usable slots",
    "busy": "share of the trials that are being trained",
    "to.one": "1 − the best accuracy",
    "deepest": "1 if it is the most advanced trial, unchanged",
    "advised": "1 if the rule chooses it: every trial once, then the best first, unchanged",
    "one": "1",
}
SEEN = tuple(Feature(name, 1, meaning) for name, meaning in MEANINGS.items())
"""What the agent sees of each candidate."""
FEATURES = len(SEEN)
NAMES = list(MEANINGS)
IDLE, GROWS, ADVISED, RANKED = (NAMES.index(name) for name in ("idle", "grows", "advised", "expected"))
LR, FAMILY, HAS_LR = range(3)
TRAITS = 3
"""Numbers of a trial that do not change."""
CENTRE, NEAR = 2.3, 0.35
"""Middle of the usual learning rates, and how near others count, both as log10."""
PER_UNIT = 10.0
"""Accuracies are seen in tenths."""


@kernel
def notes_of(p):  # type: ignore[no-untyped-def]
    """Return what the agent keeps: reports and changes of trials, traits, and curves of both."""
    n, width = p.n_trials, p.notes_width
    flat = carray(pointer(p.notes), n * (2 + TRAITS + 2 * width), np.float64)
    counts, made = flat[:n], flat[n : 2 * n]
    at = 2 * n
    traits = flat[at : at + TRAITS * n].reshape((n, TRAITS))
    at += TRAITS * n
    curves = flat[at : at + n * width].reshape((n, width))
    at += n * width
    return counts, made, traits, curves, flat[at : at + n * width].reshape((n, width))


def empty_notes(view: Any) -> dict[str, Any]:
    """Return new notes of a population, with the traits of its trials."""
    trials = len(view.hyper)
    width = int((-(-view.budget // view.reports_every)).max()) + 2
    found = np.zeros(trials * (2 + TRAITS + 2 * width))
    traits = found[2 * trials : (2 + TRAITS) * trials].reshape(trials, TRAITS)
    families: dict[object, int] = {}
    for trial, hyper in enumerate(view.hyper):
        lr = hyper.get("lr")
        if isinstance(lr, int | float) and lr > 0.0:
            traits[trial, [LR, HAS_LR]] = np.log10(lr) + CENTRE, 1.0
        traits[trial, FAMILY] = families.setdefault(hyper.get("model"), len(families))
    return {"notes": found, "width": width}


@kernel
def take_notes(p):  # type: ignore[no-untyped-def]
    """Note what was reported since the last time."""
    trials, metric = trials_of(p), metric_of(p)
    counts, made, _, curves, grown = notes_of(p)
    for i in range(p.n_trials):
        there = min(-(-trials[STEPS, i] // trials[INTERVAL, i]), p.notes_width - 1)
        value = 0.0 if np.isnan(metric[i]) else metric[i]
        while counts[i] < there:
            counts[i] += 1.0
            curves[i, int(counts[i])] = value
            grown[i, int(counts[i])] = made[i]


@kernel
def number_of_changes(p):  # type: ignore[no-untyped-def]
    """Return how many changes there are to choose from."""
    return p.tree_changes - 1 if p.outcome == ALONG_TREES else p.n_data // p.n_trials


@kernel
def changed_kind(p, trial, column):  # type: ignore[no-untyped-def]
    """Return the kind of a trial with a change, the first of which is 1; -1 if it may not make it now."""
    if p.outcome == ALONG_TREES:
        return kind_after(p, trial, column) if may_grow(p, trial, column) else -1
    return int(data_of(p)[trial * (p.n_data // p.n_trials) + column - 1])


@kernel
def families_of(p):  # type: ignore[no-untyped-def]
    """Return means by family and interval: accuracies, gains, how many of both; the last row is of all."""
    counts, _, traits, curves, _ = notes_of(p)
    rows = int(traits[:, FAMILY].max()) + 2
    found = np.zeros((4, rows, p.notes_width + 1))
    for i in range(p.n_trials):
        for row in (int(traits[i, FAMILY]), rows - 1):
            for d in range(1, int(counts[i]) + 1):
                found[0, row, d] += curves[i, d]
                found[2, row, d] += 1.0
                if d > 1:
                    found[1, row, d] += curves[i, d] - curves[i, d - 1]
                    found[3, row, d] += 1.0
    for what in range(2):
        for row in range(rows):
            for d in range(p.notes_width + 1):
                if found[2 + what, row, d] > 0.0:
                    found[what, row, d] /= found[2 + what, row, d]
    return found


@kernel
def deviations_of(p, families):  # type: ignore[no-untyped-def]
    """Return the mean deviation of each trial from its family."""
    counts, _, traits, curves, _ = notes_of(p)
    found = np.zeros(p.n_trials)
    for i in range(p.n_trials):
        for d in range(1, int(counts[i]) + 1):
            found[i] += curves[i, d] - families[0, int(traits[i, FAMILY]), d]
        found[i] /= max(counts[i], 1.0)
    return found


@kernel
def growth_gain(p, families):  # type: ignore[no-untyped-def]
    """Return how much more an interval after a change gained than others, and how many such there were."""
    counts, _, traits, curves, grown = notes_of(p)
    total, number, usual, others = 0.0, 0, 0.0, 0
    for i in range(p.n_trials):
        for d in range(2, int(counts[i]) + 1):
            gained = curves[i, d] - curves[i, d - 1] - families[1, int(traits[i, FAMILY]), d]
            if grown[i, d] > grown[i, d - 1]:
                total, number = total + gained, number + 1
            else:
                usual, others = usual + gained, others + 1
    return (total / number if number else 0.0) - (usual / others if others else 0.0), number


@kernel
def time_left_s(p):  # type: ignore[no-untyped-def]
    """Return the time until the deadline; without one, until all would be done on slots without gaps."""
    if p.deadline_s < inf:
        return max(p.deadline_s - p.now_s, 1e-9)
    trials, step_s, flags, work, speed = trials_of(p), step_s_of(p), flags_of(p), 0.0, 0.0
    for i in range(p.n_trials):
        if trials[STATUS, i] < FINISHED:
            work += trials[BUDGET, i] - trials[STEPS, i]
    for slot in range(p.n_slots):
        if flags[UP, slot] and not flags[RETIRED, slot]:
            speed += 1.0 / step_s[slot].mean()
    return max(work / max(speed, 1e-12), 1e-9)


@kernel
def describe(p, slot, features, trial_at, change, kind):  # type: ignore[no-untyped-def]
    """Fill in the candidates for a slot: features, position in the queue, change and kind; return how many.

    The last one leaves the slot idle, if others work, or if a trial has reported and a deadline will come.
    Intervals that end after the deadline are no candidates.
    """
    take_notes(p)
    families = families_of(p)
    deviations = deviations_of(p, families)
    gain, gains = growth_gain(p, families)
    left_s = time_left_s(p)
    waiting, trials, step_s = trials_of(p)[QUEUE], trials_of(p), step_s_of(p)
    count = 0
    for at in range(p.waiting):
        i = waiting[at]
        for column in range(number_of_changes(p) + 1):
            now = trials[KIND, i] if column == 0 else changed_kind(p, i, column)
            if now < 0:
                continue
            interval_s = starts_s(p, i, slot) + trials[INTERVAL, i] * step_s[slot, now]
            if interval_s > left_s * (1.0 + 1e-9) and p.deadline_s < inf:
                continue
            trial_at[count], change[count], kind[count] = at, column, now
            features[count] = 0.0
            describe_trial(p, slot, i, now, features[count], families, left_s, interval_s)
            describe_neighbours(p, i, features[count], deviations)
            if column:
                f = features[count]
                f[GROWS] = 1.0
                f[25] = step_s[slot, now] / step_s[slot, trials[KIND, i]] - 1.0
                f[26], f[27] = PER_UNIT * gain, gains / (gains + 2.0)
            count += 1
    mark_advised(p, features, change, trial_at, count)
    if count and (working(p) or (p.deadline_s < inf and best_of(p) > 0.0)):
        trial_at[count], change[count], kind[count] = -1, 0, 0
        describe_idling(p, slot, features[count], left_s)
        count += 1
    describe_population(p, features, count, left_s)
    return count


@kernel
def starts_s(p, trial, slot):  # type: ignore[no-untyped-def]
    """Return the seconds before a trial trains on a slot."""
    return p.dispatch_s + (0.0 if p.moves_are_free else move_s(p, trial, slot))


@kernel
def working(p):  # type: ignore[no-untyped-def]
    """Return the number of trials that are being trained."""
    found, status = 0, trials_of(p)[STATUS]
    for i in range(p.n_trials):
        found += status[i] == ASSIGNED
    return found


@kernel
def fastest_s(p, kind):  # type: ignore[no-untyped-def]
    """Return the least step time of a kind on any usable slot."""
    found, step_s, flags = inf, step_s_of(p), flags_of(p)
    for slot in range(p.n_slots):
        if flags[UP, slot] and not flags[RETIRED, slot]:
            found = min(found, step_s[slot, kind])
    return found


@kernel
def best_of(p):  # type: ignore[no-untyped-def]
    """Return the best accuracy that a trial has now; 0 before the first report."""
    found = 0.0
    for metric in metric_of(p):
        if metric > found:
            found = metric
    return found


@kernel
def describe_trial(p, slot, i, kind, f, families, left_s, interval_s):  # type: ignore[no-untyped-def]
    """Fill in what is about one trial, with this kind of network."""
    counts, made, traits, curves, _ = notes_of(p)
    trials, step_s, best = trials_of(p), step_s_of(p)[slot, kind], best_of(p)
    d, family, whole = int(counts[i]), int(traits[i, FAMILY]), len(families[0]) - 1
    all_ = max(1, -(-trials[BUDGET, i] // trials[INTERVAL, i]))
    f[2], f[3], f[24] = 1.0 if d == 0 else 0.0, d / all_, min(made[i], 3.0) / 3.0
    if d > 0:
        value, better, later, others = curves[i, d], 0, 0.0, 0
        for k in range(p.n_trials):
            if k != i and counts[k] >= d:
                better += curves[k, d] > value
                if counts[k] > d:
                    later += curves[k, int(counts[k])] - curves[k, d]
                    others += 1
        row = family if families[3, family, d + 1] > 0.0 else whole
        known = families[3, row, d + 1] > 0.0
        coming = families[1, row, d + 1] if known else 0.0
        f[4] = PER_UNIT * (value - best)
        f[5] = PER_UNIT * (value - families[0, family, d])
        f[6] = better / families[2, whole, d]
        f[7] = PER_UNIT * (value - curves[i, d - 1]) if d > 1 else 0.0
        f[8], f[9] = PER_UNIT * coming, 1.0 if known else 0.0
        f[10] = f[4] + f[8]
        f[11] = PER_UNIT * later / max(others, 1)
        f[23] = 1.0 if value >= best else 0.0
    remaining = trials[BUDGET, i] - trials[STEPS, i] - trials[GIVEN, i]
    starts = starts_s(p, i, slot)
    fits = min(remaining, max(0.0, (left_s - starts) / step_s) * (1.0 + 1e-9)) // trials[INTERVAL, i]
    rest_s = starts + remaining * step_s
    f[12], f[13] = min(interval_s / left_s, 1.0), min(rest_s / left_s, 3.0)
    f[14] = 1.0 if rest_s <= left_s * (1.0 + 1e-9) else 0.0
    f[15], f[16] = fits / all_, (remaining / trials[INTERVAL, i] - fits) / all_
    f[17] = np.log(step_s / fastest_s(p, kind)) / 2.0


@kernel
def describe_neighbours(p, i, f, deviations):  # type: ignore[no-untyped-def]
    """Fill in the learning rate of a trial, and how trials with nearly the same do."""
    counts, _, traits, _, _ = notes_of(p)
    lr, weights, total = traits[i, LR], 0.0, 0.0
    f[18], f[19] = 2.0 * lr, 2.0 * lr * lr
    for k in range(p.n_trials):
        if k != i and counts[k] > 0.0:
            off = (traits[k, LR] - lr) / NEAR
            weight = np.exp(-0.5 * off * off) * (1.0 if traits[k, FAMILY] == traits[i, FAMILY] else 0.5)
            weights, total = weights + weight, total + weight * deviations[k]
    f[20], f[21] = PER_UNIT * total / (weights + 0.5), weights / (weights + 1.0)
    f[22] = PER_UNIT * deviations[i]


@kernel
def describe_idling(p, slot, f, left_s):  # type: ignore[no-untyped-def]
    """Fill in what is about leaving a slot idle."""
    counts, _, _, curves, _ = notes_of(p)
    trials, ends, soonest, best = trials_of(p), seconds_of(p)[ENDS_S], inf, best_of(p)
    for other in range(p.n_slots):
        if ends[other] > p.now_s:
            soonest = min(soonest, ends[other])
    f[:] = 0.0
    f[IDLE] = 1.0
    f[12] = min(1.0, (soonest - p.now_s) / left_s)
    mine, fastest = step_s_of(p)[slot].mean(), inf
    for other in range(p.n_slots):
        fastest = min(fastest, step_s_of(p)[other].mean())
    f[17] = np.log(mine / fastest) / 2.0
    for i in range(p.n_trials):
        if trials[STATUS, i] == ASSIGNED and counts[i] > 0 and curves[i, int(counts[i])] >= best:
            f[23] = 1.0


@kernel
def describe_population(p, features, count, left_s):  # type: ignore[no-untyped-def]
    """Fill in what is the same for all candidates."""
    counts, _, _, _, _ = notes_of(p)
    flags, new, usable = flags_of(p), 0, 0
    for i in range(p.n_trials):
        new += counts[i] == 0.0
    for slot in range(p.n_slots):
        usable += flags[UP, slot] and not flags[RETIRED, slot]
    for row in range(count):
        f = features[row]
        f[28] = p.now_s / (p.now_s + left_s)
        f[29], f[30], f[31] = new / p.n_trials, p.n_trials / 16.0, usable / 12.0
        f[32], f[33] = p.idle / max(usable, 1), working(p) / p.n_trials
        f[34], f[37] = 1.0 - best_of(p), 1.0


@kernel
def mark_advised(p, features, change, trial_at, count):  # type: ignore[no-untyped-def]
    """Mark the most advanced trial, and the one that the rule chooses: new ones first, then the best."""
    counts, _, _, curves, _ = notes_of(p)
    waiting = trials_of(p)[QUEUE]
    deepest, advised, most, best = -1, -1, -1.0, -1.0
    for row in range(count):
        if change[row]:
            continue
        i = waiting[trial_at[row]]
        value = 2.0 if counts[i] == 0.0 else curves[i, int(counts[i])]
        if counts[i] > most:
            deepest, most = row, counts[i]
        if value > best:
            advised, best = row, value
    if deepest >= 0:
        features[deepest, 35] = 1.0
        features[advised, ADVISED] = 1.0
