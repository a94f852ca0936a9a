"""Learned placement: a small network trained by REINFORCE."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from math import inf
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rota.core.arrays import Singles
from rota.core.compiled import carray, kernel
from rota.core.memory import pointer
from rota.core.population.memory import KIND as TRIAL_KIND
from rota.core.population.memory import (
    PASS,
    PREPARE,
    QUEUE,
    RETIRED,
    UP,
    by_kind,
    flags_of,
    population_at,
    step_s_of,
    trials_of,
)
from rota.core.population.policies import CompiledAllocation, ProposingAllocation
from rota.core.population.view import PopulationView
from rota.policies.agents import (
    AgentFacts,
    Feature,
    another_version,
    check_features,
    read_arrays,
    read_facts,
    write_agent_file,
    wrong_weights,
)
from rota.policies.allocation.finish import (
    ALL_DONE,
    BEHIND,
    CANDIDATES,
    COLUMNS,
    DONE,
    ENDS,
    FACTS,
    FIRST,
    LAST,
    LISTS,
    MEAN,
    MOVES,
    NOTHING,
    PATIENCE,
    REST,
    SEQUENCE,
    SLACK,
    STEPS,
    TRIALS,
    UNDONE,
    Outlook,
    choose,
    look_at,
    next_by_speed,
    propose_candidate,
)

KIND, NETWORK = "placement", "scorer"
SHIPPED = Path(__file__).parents[2] / "agents" / "place"


class Weights(NamedTuple):
    """Weights and biases of three layers, and weights of the linear path past them.

    The first two have a row per input, so that compiled code can add up whole rows.
    """

    a: Singles
    a0: Singles
    b: Singles
    b0: Singles
    c: Singles
    c0: Singles
    past: Singles


def write_agent(folder: Path, weights: Weights, about: Mapping[str, Any], **others: Any) -> None:
    """Write an agent; `others` are its configuration, provenance and evaluation."""
    options: dict[str, int | float | str] = {"hidden": len(weights.a0)}
    found = AgentFacts(
        kind=KIND, network=NETWORK, options=options, features=SEEN, about=dict(about), sha256="", **others
    )
    write_agent_file(folder, found, weights._asdict())
    read_weights.cache_clear()  # the folder may have held another agent
    _form.cache_clear()


@cache
def read_weights(folder: Path) -> Weights:
    """Return the weights of an agent. Raises InputError if they are missing, damaged or of another agent."""
    found = read_facts(folder, KIND)
    arrays = read_arrays(folder, found)
    try:
        weights = Weights(*(np.ascontiguousarray(arrays[name], np.float32) for name in Weights._fields))
    except (KeyError, ValueError) as error:
        raise wrong_weights(folder, found, error) from None
    check_features(folder, found, SEEN)
    if weights.a.shape[0] != FEATURES:
        raise another_version(folder, found, f"it sees {weights.a.shape[0]} features, not {FEATURES}")
    return weights


FAR = 2.0
MEANINGS = {
    "late": "estimated makespan beyond that of the best candidate / horizon, at most 3",
    "late.log": "log(1 + 30 late)",
    "end": "end of the assignment / horizon, at most 3",
    "last": "earliest end of the last trial in the assignment beyond the horizon, / horizon, at most 3",
    "moves": "share of the assignment's time before it trains",
    "length": "log2(intervals of the assignment) / 4",
    "nothing": "1 if the slot stays idle",
    "partial": "1 if the assignment is shorter than an interval",
    "suits": "1 if the trials are those that suit the slot, not those at the head of the queue",
    "trials": "trials of the assignment / trials that wait",
    "speed": "log(speed of the slot / speed of the fastest) / 3",
    "share": "speed of the slot / speed of all slots",
    "queue": "log(trials that wait / usable slots) / 3",
    "idle": "idle slots / usable slots",
    "dispatch.interval": "log(1 + dispatch cost / duration of an interval on the slot)",
    "horizon.slot": "log(horizon / duration of an interval on the slot) / 4",
    "horizon.fastest": "log(horizon / duration of an interval on the fastest slot) / 4",
    "dispatch.horizon": "dispatch cost / horizon, at most 1",
    "noise": "5 times the standard deviation of the slot's step times, as a share of the expected",
    "beyond": "estimated makespan beyond the horizon, / horizon, at most 3",
    "undone": "log(trials that are not done / usable slots) / 2",
    "sequence": "earliest end of the largest trial / horizon, at most 2",
    "first": "steps left of the first trial beyond the mean of all trials, / mean, from -2 to 2",
    "rest": "steps left of the last trial afterwards / (these + steps of the assignment)",
    "faster": "faster slots / usable slots",
    "faster.speed": "log(mean speed of the faster slots / speed of the slot) / 3",
    "advised": "1 if the rule `finish` chooses this assignment",
    "meanwhile.behind": "log(intervals of others in one of this slot / intervals that trials are behind) / 3",
    "meanwhile.undone": "log(intervals of others in one of this slot / intervals that are left) / 3",
}
SEEN = tuple(Feature(name, 1, meaning) for name, meaning in MEANINGS.items())
"""What the agent sees of each candidate; the horizon is the estimated makespan if the slot is used best."""
FEATURES = len(SEEN)
LATE, ADVISED = 0, 26
"""Features: the increase of the estimated makespan over the best candidate, and whether `finish` would choose
this one."""


@dataclass(frozen=True, slots=True)
class Learned(ProposingAllocation):
    """Choose the assignment that the agent scores highest."""

    agent: Path | None = None
    """Folder of the agent; the shipped one if not given."""
    careful: bool = True
    """Follow `finish` while nodes are absent, or step times far from nominal: no agent has learned from
    that."""

    def __post_init__(self) -> None:
        read_weights(self.agent or SHIPPED)

    @property
    def compiled(self) -> CompiledAllocation:
        return _form(self.agent or SHIPPED, self.careful)


@lru_cache(maxsize=8)
def _form(agent: Path, careful: bool) -> CompiledAllocation:
    return form_of(read_weights(agent), careful=careful)


def form_of(weights: Weights, *, careful: bool = False) -> CompiledAllocation:
    """Return an agent as a compiled allocation."""
    flat = np.concatenate([values.ravel() for values in weights]).astype(np.float32)
    return CompiledAllocation(
        propose, (careful,), arrays={"weights": flat}, numbers={"hidden": len(weights.a0), "draw_room": 0}
    )


@kernel
def propose(address):  # type: ignore[no-untyped-def]
    """Propose the candidate with the highest score for the fastest slot in turn.

    A share of the decisions is drawn, if there is room for any. These are noted, with what was seen.
    """
    p = population_at(address)
    if p.draw_room > 0 and p.drawn == p.draw_room:
        return PREPARE
    slot = next_by_speed(p)
    if slot < 0:
        return PASS
    candidates, about = np.empty((CANDIDATES, COLUMNS)), np.empty(FACTS)
    suits = look_at(p, candidates, about, slot, False)
    p.asked += 1
    if p.option0 and is_unusual(p):
        chosen = choose(candidates, p.interval, SLACK, PATIENCE)
        return propose_candidate(p, slot, candidates, chosen, suits)
    trials, flags = trials_of(p), flags_of(p)
    features, allowed = np.zeros((CANDIDATES, FEATURES), np.float32), np.zeros(CANDIDATES, np.bool_)
    describe(
        features, allowed, candidates, about, slot, step_s_of(p), by_kind(p, p.spread), flags[UP],
        flags[RETIRED], trials[TRIAL_KIND, trials[QUEUE, 0]], suits, p.waiting, p.idle, p.interval,
        p.dispatch_s,
    )  # fmt: skip
    found = scores(features, allowed, weights_of(p))
    best = np.argmax(found)
    if p.draw_room > 0 and np.random.random() < p.share:
        for c in range(CANDIDATES):
            found[c] -= np.log(-np.log(np.random.random()))
        best = np.argmax(found)
        shape = p.draw_room, CANDIDATES
        carray(pointer(p.features), (*shape, FEATURES), np.float32)[p.drawn] = features
        carray(pointer(p.allowed), shape, np.bool_)[p.drawn] = allowed
        carray(pointer(p.chosen), p.draw_room, np.int64)[p.drawn] = best
        p.drawn += 1
    return propose_candidate(p, slot, candidates, best, suits)


@kernel
def seed_draws(seed):  # type: ignore[no-untyped-def]
    """Begin the random numbers of drawn decisions."""
    np.random.seed(seed)


@kernel
def is_unusual(p):  # type: ignore[no-untyped-def]
    """Return whether a node is absent, or a slot takes twice or half its expected time."""
    off = step_s_of(p) / by_kind(p, p.expected_s)
    return not flags_of(p)[UP].all() or off.max() > FAR or off.min() < 1.0 / FAR


@kernel
def weights_of(p):  # type: ignore[no-untyped-def]
    """Return the weights of the agent."""
    h, n = p.hidden, 0
    flat = carray(pointer(p.weights), FEATURES * h + h + h * h + h + h + 1 + FEATURES, np.float32)
    a = flat[: FEATURES * h].reshape((FEATURES, h))
    n = FEATURES * h
    a0 = flat[n : n + h]
    n += h
    b = flat[n : n + h * h].reshape((h, h))
    n += h * h
    b0 = flat[n : n + h]
    n += h
    c = flat[n : n + h].reshape((1, h))
    n += h
    c0 = flat[n : n + 1]
    past = flat[n + 1 : n + 1 + FEATURES].reshape((1, FEATURES))
    return Weights(a, a0, b, b0, c, c0, past)


def seen(view: PopulationView, slot: int, outlook: Outlook) -> tuple[Singles, NDArray[np.bool_]]:
    """Return the features of each candidate, and which candidates exist."""
    features = np.zeros((CANDIDATES, FEATURES), np.float32)
    allowed = np.zeros(CANDIDATES, np.bool_)
    describe(
        features, allowed, outlook.candidates, outlook.about, slot, view.step_times.step_s,
        view.step_times.spread, view.up, view.retired, int(view.kind[outlook.waiting[0]]),
        outlook.suits, len(view.waiting), len(view.idle), view.terms.interval, view.costs.dispatch_s,
    )  # fmt: skip
    return features, allowed


@kernel
def describe(  # type: ignore[no-untyped-def]
    features, allowed, candidates, about, slot, step_s, spread, up, retired, kind, suits, waiting, idle,
    interval, dispatch_s,
):  # fmt: skip
    """Fill in the features, and which candidates exist: each assignment once."""
    fastest, total, usable, faster, ahead, meanwhile = inf, 0.0, 0, 0, 0.0, 0
    mine = step_s[slot, kind]
    for j in range(len(step_s)):
        if up[j] and not retired[j]:
            fastest = min(fastest, step_s[j, kind])
            total += 1.0 / step_s[j, kind]
            usable += 1
            meanwhile += int(mine / step_s[j, kind]) if j != slot else 0
            faster += step_s[j, kind] < mine
            ahead += (1.0 / step_s[j, kind]) if step_s[j, kind] < mine else 0.0
    soonest = candidates[:, ALL_DONE].min()
    horizon = max(about[DONE], 1e-9)
    undone, mean = about[UNDONE], max(about[MEAN], 1.0)
    advised = choose(candidates, interval, SLACK, PATIENCE)
    if suits == 0 and advised > LISTS:
        advised -= LISTS  # the same assignment
    interval_s = interval * mine
    same = np.zeros(FEATURES, np.float32)  # those that are the same for all candidates
    same[10] = np.log(fastest / mine) / 3.0
    same[11] = 1.0 / mine / total
    same[12] = np.log(waiting / usable) / 3.0
    same[13] = idle / usable
    same[14] = np.log1p(dispatch_s / interval_s)
    same[15] = np.log(horizon / interval_s) / 4.0
    same[16] = np.log(horizon / (interval * fastest)) / 4.0
    same[17] = min(1.0, dispatch_s / horizon)
    same[18] = np.sqrt(spread[slot].mean()) * 5.0
    same[20] = np.log(undone / usable) / 2.0
    same[21] = min(2.0, about[SEQUENCE] / horizon)
    same[24] = faster / usable
    same[25] = 0.0 if faster == 0 else np.log(ahead / faster * mine) / 3.0
    same[27] = np.log((1.0 + meanwhile) / (1.0 + about[BEHIND] / interval)) / 3.0
    same[28] = np.log((1.0 + meanwhile) / (1.0 + about[MEAN] * undone / interval)) / 3.0
    for c in range(len(candidates)):
        row, f = candidates[c], features[c]
        allowed[c] = row[ALL_DONE] < inf
        for other in range(1 if c <= LISTS or suits == 0 else LISTS + 1, c):
            if candidates[other, STEPS] == row[STEPS]:
                allowed[c] = False
        if not allowed[c]:
            continue
        f[:] = same
        late = min(3.0, (row[ALL_DONE] - soonest) / horizon)
        f[LATE] = late
        f[1] = np.log1p(30.0 * late)
        f[2] = min(3.0, row[ENDS] / horizon)
        f[3] = min(3.0, (row[LAST] - horizon) / horizon)
        f[4] = row[MOVES] / max(row[ENDS], 1e-9)
        f[5] = np.log2(max(row[STEPS], 1.0) / interval) / 4.0 if c > NOTHING else 0.0
        f[6] = 1.0 if c == NOTHING else 0.0
        f[7] = 1.0 if 0 < row[STEPS] < interval else 0.0
        f[8] = 1.0 if c > LISTS else 0.0
        f[9] = row[TRIALS] / waiting
        f[19] = min(3.0, (row[ALL_DONE] - horizon) / horizon)
        f[22] = max(-2.0, min(2.0, (row[FIRST] - mean) / mean)) if c > NOTHING else 0.0
        f[23] = row[REST] / max(row[REST] + row[STEPS], 1.0)
        f[ADVISED] = 1.0 if c == advised else 0.0


@kernel
def scores(features, allowed, weights):  # type: ignore[no-untyped-def]
    """Return the score of each candidate; minus infinity where there is none."""
    a, a0, b, b0, c, c0, past = weights
    found = np.full(len(features), -np.inf, np.float32)
    one, two = np.empty(len(a0), np.float32), np.empty(len(b0), np.float32)
    for row in range(len(features)):
        if allowed[row]:
            score = c0[0]
            one[:], two[:] = a0, b0
            for i in range(len(a)):
                score += past[0, i] * features[row, i]
                for j in range(len(one)):
                    one[j] += features[row, i] * a[i, j]
            for i in range(len(b)):
                if one[i] > 0.0:
                    for j in range(len(two)):
                        two[j] += one[i] * b[i, j]
            for j in range(len(two)):
                score += c[0, j] * max(two[j], np.float32(0.0))
            found[row] = score
    return found
