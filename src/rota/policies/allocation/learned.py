"""Learned placement: a small network trained by REINFORCE."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from math import inf
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rota.core.arrays import Singles
from rota.core.compiled import kernel
from rota.core.population.events import Assign
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
    DONE,
    ENDS,
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
    fastest_first,
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
class Learned:
    """Choose the assignment that the agent scores highest."""

    agent: Path | None = None
    """Folder of the agent; the shipped one if not given."""
    careful: bool = True
    """Follow `finish` while nodes are absent, or step times far from nominal: no agent has learned from
    that."""

    def __post_init__(self) -> None:
        read_weights(self.agent or SHIPPED)

    def hand_out(self, view: PopulationView) -> Iterator[Assign]:
        weights = read_weights(self.agent or SHIPPED)
        for slot in fastest_first(view):
            if not view.waiting:
                return
            outlook = Outlook(view, slot)
            if self.careful and unusual(view):
                chosen = choose(outlook.candidates, view.terms.interval, SLACK, PATIENCE)
            else:
                chosen = int(np.argmax(scores(*seen(view, slot, outlook), weights)))
            if chosen != NOTHING:
                yield Assign(slot, outlook.parts(view, chosen))


def unusual(view: PopulationView) -> bool:
    """Return whether a node is absent, or a slot takes twice or half its expected time."""
    off = view.step_times.step_s / view.step_times.expected_s
    return bool(not view.up.all() or off.max() > FAR or off.min() < 1.0 / FAR)


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
    for c in range(len(candidates)):
        row, f = candidates[c], features[c]
        allowed[c] = row[ALL_DONE] < inf
        for other in range(1 if c <= LISTS or suits == 0 else LISTS + 1, c):
            if candidates[other, STEPS] == row[STEPS]:
                allowed[c] = False
        if not allowed[c]:
            continue
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
        f[10] = np.log(fastest / mine) / 3.0
        f[11] = 1.0 / mine / total
        f[12] = np.log(waiting / usable) / 3.0
        f[13] = idle / usable
        f[14] = np.log1p(dispatch_s / interval_s)
        f[15] = np.log(horizon / interval_s) / 4.0
        f[16] = np.log(horizon / (interval * fastest)) / 4.0
        f[17] = min(1.0, dispatch_s / horizon)
        f[18] = np.sqrt(spread[slot].mean()) * 5.0
        f[19] = min(3.0, (row[ALL_DONE] - horizon) / horizon)
        f[20] = np.log(undone / usable) / 2.0
        f[21] = min(2.0, about[SEQUENCE] / horizon)
        f[22] = max(-2.0, min(2.0, (row[FIRST] - mean) / mean)) if c > NOTHING else 0.0
        f[23] = row[REST] / max(row[REST] + row[STEPS], 1.0)
        f[24] = faster / usable
        f[25] = 0.0 if faster == 0 else np.log(ahead / faster * mine) / 3.0
        f[ADVISED] = 1.0 if c == advised else 0.0
        f[27] = np.log((1.0 + meanwhile) / (1.0 + about[BEHIND] / interval)) / 3.0
        f[28] = np.log((1.0 + meanwhile) / (1.0 + about[MEAN] * undone / interval)) / 3.0


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
