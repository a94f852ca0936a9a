"""Learned scheduling: a small network that starts at the best rule and corrects its order of the jobs.

The score of a job is the logarithm of what a rule ranks by, and a correction by a network of one hidden
layer.
Where durations are not known, the rule is the Gittins index (`gittins`); where they are, the shortest
remaining time. A network whose last layer is 0 decides exactly as the rule does.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from rota.core.arrays import Floats
from rota.core.calls import place, sort_rows
from rota.core.columns import (
    EXECUTED_S,
    GPUS,
    GROUP,
    KIND,
    MODEL,
    PLACE,
    SIZE,
    SUBMIT_S,
    UP,
)
from rota.core.compiled import kernel
from rota.core.driver import CompiledPlan, decide_placed, options_of
from rota.core.durations import NONE, DurationUse, known_left_s
from rota.core.memory import (
    columns_of,
    engine_at,
    floats,
    ints,
    nodes_of,
    order_of_jobs,
    own_groups_of,
    speeds_of,
    table_of,
)
from rota.core.placement import STYLES, Style
from rota.core.policy import Needs, Plan
from rota.core.view import ClusterView
from rota.policies.agents import (
    FACTS,
    WEIGHTS,
    AgentFacts,
    Feature,
    another_version,
    check_features,
    read_arrays,
    read_facts,
    write_agent_file,
    wrong_weights,
)
from rota.policies.cluster.gittins import INDEX, TOTAL, attained, learn, next_change_s, rank_by_index
from rota.policies.cluster.gittins import Gittins as Rule

KIND_OF_AGENT, NETWORK = "schedule", "correction"
AGENTS = Path(__file__).parents[2] / "agents"
SHIPPED = {"none": AGENTS / "schedule-unknown", "exact": AGENTS / "schedule-known"}
"""Agents that come with rota, for durations that are not known, and for those that are."""

Knowledge = Literal["none", "exact"]

# After the columns of gittins: the correction of a job, when it was found, and for which state; and over the
# groups, the pressure for which corrections were found last.
RULE = Rule().needs
NEEDS = Needs(own=(*RULE.own, "score", "scored_s", "state"), own_groups=(*RULE.own_groups, "pressure"))
SCORE, SCORED_S, STATE, PRESSURE = map(NEEDS.row, ("score", "scored_s", "state", "pressure"))
DRIFT = 0.05  # relative change of a waiting time, or of the pressure, after which a score is found anew

MEANINGS = {
    "rule": "logarithm of what the rule ranks by: the Gittins index, or 1 / remaining time, per hour, / 4",
    "gang": "log2(GPUs of the job) / 4",
    "runs": "1 if the job runs",
    "attained": "log(1 + minutes of work attained) / 5",
    "waited": "log(1 + minutes waited) / 5",
    "pressure": "log(1 + GPUs asked for / GPUs)",
    "history": "log(1 + jobs of its group and gang size that ended) / 4",
    "part": "GPUs of the job / GPUs",
    "queue": "log(1 + active jobs) / 5",
    "patience": "log((waited + 1 min) / (attained + 1 min)) / 4",
    "gain": "log(speed on the fastest device kind / mean speed over all slots)",
    "scarce": "share of the slots that are of the fastest kind for the job",
}
SEEN = tuple(Feature(name, 1, meaning) for name, meaning in MEANINGS.items())
"""What the agent sees of each job."""
FEATURES, RUNS = len(SEEN), 2


class CorrectionWeights(NamedTuple):
    """The two layers of the network: a row per hidden unit, its biases, and what it adds to the score."""

    a: Floats
    a0: Floats
    b: Floats

    @property
    def flat(self) -> Floats:
        """All numbers in a row, as the kernel reads them: for each hidden unit its row, bias and output."""
        return np.concatenate([self.a, self.a0[:, None], self.b[:, None]], axis=1).ravel()

    @classmethod
    def of(cls, flat: Floats) -> "CorrectionWeights":
        """Return the weights in a row of numbers."""
        rows = np.asarray(flat, np.float64).reshape(-1, FEATURES + 2)
        return cls(rows[:, :FEATURES].copy(), rows[:, FEATURES].copy(), rows[:, FEATURES + 1].copy())

    @classmethod
    def new(cls, hidden: int, seed: int) -> "CorrectionWeights":
        """Return weights that decide as the rule does: the hidden layer is random, the last one 0."""
        drawn = np.random.default_rng(seed).normal(size=(hidden, FEATURES)) / np.sqrt(FEATURES)
        return cls(drawn, np.zeros(hidden), np.zeros(hidden))


def write_agent(
    folder: Path, weights: CorrectionWeights, knows: Knowledge, about: Mapping[str, Any], **others: Any
) -> None:
    """Write an agent; `others` are its configuration, provenance and evaluation."""
    options: dict[str, int | float | str] = {"hidden": len(weights.a0), "durations": knows}
    found = AgentFacts(
        kind=KIND_OF_AGENT,
        network=NETWORK,
        options=options,
        features=SEEN,
        about=dict(about),
        sha256="",
        **others,
    )
    write_agent_file(
        folder, found, {name: each.astype(np.float32) for name, each in weights._asdict().items()}
    )
    read_weights.cache_clear()  # the folder may have held another agent
    _policy.cache_clear()


@cache
def read_weights(folder: Path) -> tuple[CorrectionWeights, Knowledge]:
    """Return the weights of an agent, and which durations it is for; InputError if they cannot be used."""
    found = read_facts(folder, KIND_OF_AGENT)
    arrays = read_arrays(folder, found)
    check_features(folder, found, SEEN)
    try:
        weights = CorrectionWeights(
            *(np.asarray(arrays[name], np.float64) for name in CorrectionWeights._fields)
        )
    except (KeyError, ValueError) as error:
        raise wrong_weights(folder, found, error) from None
    hidden = len(weights.a0)
    if (
        weights.a.shape != (hidden, FEATURES)
        or weights.b.shape != (hidden,)
        or not np.isfinite(weights.flat).all()
    ):
        raise wrong_weights(folder, found, f"arrays of shapes {[each.shape for each in weights]}")
    knows = found.options.get("durations")
    if knows not in SHIPPED:
        raise another_version(folder, found, f"it is for durations {knows!r}")
    return weights, "none" if knows == "none" else "exact"


@dataclass(frozen=True, slots=True)
class Corrected:
    """The rules, and the networks that correct their order of the jobs; then first fit."""

    unknown: tuple[float, ...] | None = ()
    """Network for durations that are not known, as `CorrectionWeights.flat`; empty: the rule; None: there is
    none, so durations must be known."""
    known: tuple[float, ...] | None = ()
    """Network for durations that are known; None: the other one is used, which looks at none."""
    placement: Style = "consolidated"

    @property
    def needs(self) -> Needs:
        use: DurationUse = (
            "unused" if self.known is None else "needed" if self.unknown is None else "optional"
        )
        return replace(NEEDS, durations=use)

    @property
    def _options(self) -> tuple[float, ...]:
        rule, unknown, known = Rule(), self.unknown or (), self.known or ()
        facts = (rule.prior, rule.others, rule.stickiness, rule.gang_power, STYLES[self.placement])
        return (*facts, len(unknown), *unknown, *known)

    @property
    def compiled(self) -> CompiledPlan:
        return CompiledPlan(plan_corrected, self._options)

    def plan(self, view: ClusterView) -> Plan:
        key = np.zeros(view.capacity)
        rank_corrected(view.address, np.array(self._options, np.float64), key)
        plan = view.first_fit(view.rank(key), style=self.placement)
        if view.knows == "none":
            plan.wake_at_s = next_change_s(view.address, plan.address, plan.jobs)
        return plan


@dataclass(frozen=True, slots=True)
class LearnedScheduler:
    """Rank by a rule that a learned network corrects, then first fit."""

    agent: Path | None = None
    """Folder of the agent; by default the shipped one that fits what is known of durations."""
    placement: Style = "consolidated"
    """How a gang is placed on nodes."""

    def __post_init__(self) -> None:
        if self.agent is not None:
            read_weights(self.agent)

    @property
    def needs(self) -> Needs:
        return self._policy.needs

    @property
    def compiled(self) -> CompiledPlan:
        return self._policy.compiled

    @property
    def agent_files(self) -> tuple[Path, ...]:
        """The files that decisions follow from."""
        folders = SHIPPED.values() if self.agent is None else [self.agent]
        return tuple(folder / name for folder in folders for name in (FACTS, WEIGHTS))

    @property
    def _policy(self) -> Corrected:
        return _policy(self.agent, self.placement)

    def plan(self, view: ClusterView) -> Plan:
        return self._policy.plan(view)


@lru_cache(maxsize=8)
def _policy(agent: Path | None, placement: Style) -> Corrected:
    if agent is None:
        found = {knows: read_weights(folder)[0] for knows, folder in SHIPPED.items()}
    else:
        weights, knows = read_weights(agent)
        found = {knows: weights}
    rows = {knows: tuple(weights.flat.tolist()) for knows, weights in found.items()}
    return Corrected(rows.get("none"), rows.get("exact"), placement)


@kernel
def plan_corrected(address):
    """Plan as `Corrected.plan`."""
    e = engine_at(address)
    options, key, order = options_of(e), floats(e.keys, e.capacity), order_of_jobs(e)
    rank_corrected(address, options, key)
    ranked = ints(e.ranking, e.active)
    sort_rows(e, order, key, ranked)
    order[:] = ranked
    keep = 1 - e.each_instant
    jobs = place(e, address, order, int(options[4]), 0, keep)
    wake_s = next_change_s(address, e.draft, jobs) if e.knows == NONE else np.inf
    decide_placed(e, jobs, wake_s)


@kernel
def rank_corrected(address, options, key):
    """Write the sort key of every active job: minus its score, which is found anew where it may differ."""
    e = engine_at(address)
    columns, table, order, groups = columns_of(e), table_of(e), order_of_jobs(e), own_groups_of(e)
    first, unknown, everyone = 6, int(options[5]), groups.shape[1] - 1
    if e.knows == NONE:
        learn(address)
        rank_by_index(address, options, key)
        weights = options[first : first + unknown]
    else:
        weights = options[first + unknown :]
        for row in order:
            columns[INDEX, row] = 1.0 / max(known_left_s(columns, row), 1e-3)
            key[row] = -columns[INDEX, row]
    if weights.shape[0] == 0:
        return
    asked = 0.0
    for row in order:
        asked += columns[GPUS, row]
    pressure = np.log1p(asked / e.slots)
    drifted = abs(pressure - groups[PRESSURE, everyone]) > DRIFT
    if drifted:
        groups[PRESSURE, everyone] = pressure
    features = np.empty(FEATURES)
    for row in order:
        runs = columns[PLACE, row] >= 0.0
        base = np.log(max(-key[row], 1e-12))
        state = columns[INDEX, row] * (2.0 if runs else 1.0)
        waited_s = max(e.now_s - columns[SUBMIT_S, row] - columns[EXECUTED_S, row], 0.0)
        stale = e.now_s - columns[SCORED_S, row] > DRIFT * (60.0 + waited_s + columns[EXECUTED_S, row])
        if (
            stale
            or drifted
            or abs(state - columns[STATE, row]) > DRIFT * state
            or columns[SCORED_S, row] == 0.0
        ):
            describe(e, columns, table, groups, row, waited_s, pressure, features)
            found = correction(features, weights)
            if runs:  # as it runs, a job may only rise: else two jobs could preempt each other for ever
                features[RUNS] = 0.0
                found = max(found, correction(features, weights))
            columns[SCORE, row] = found
            columns[SCORED_S, row] = max(e.now_s, 1e-9)
            columns[STATE, row] = state
        key[row] = -(base + columns[SCORE, row])


@kernel
def describe(e, columns, table, groups, row, waited_s, pressure, features):
    """Fill in what the agent sees of a job."""
    gpus, attained_s = columns[GPUS, row], attained(columns, table, row)
    features[0] = np.log(max(columns[INDEX, row], 1e-12) * 3600.0) / 4.0
    features[1] = np.log2(gpus) / 4.0
    features[RUNS] = 1.0 if columns[PLACE, row] >= 0.0 else 0.0
    features[3] = np.log1p(attained_s / 60.0) / 5.0
    features[4] = np.log1p(waited_s / 60.0) / 5.0
    features[5] = pressure
    features[6] = np.log1p(groups[TOTAL, int(columns[GROUP, row])]) / 4.0
    features[7] = gpus / e.slots
    features[8] = np.log1p(float(e.active)) / 5.0
    features[9] = np.log((waited_s + 60.0) / (attained_s + 60.0)) / 4.0
    features[10], features[11] = 0.0, 1.0
    if not e.is_even:
        nodes, speeds, model = nodes_of(e), speeds_of(e), int(columns[MODEL, row])
        fastest, total, slots, share = 0.0, 0.0, 0.0, 0.0
        for node in range(nodes.shape[1]):
            size = float(nodes[SIZE, node] * nodes[UP, node])
            speed = speeds[model, nodes[KIND, node]]
            total += size * speed
            slots += size
            if speed > fastest:
                fastest, share = speed, 0.0
            share += size if speed == fastest else 0.0
        if slots > 0.0:
            features[10] = np.log(fastest * slots / total)
            features[11] = share / slots


@kernel
def correction(features, weights):
    """Return what the network adds to the score of a job."""
    width = FEATURES + 2
    total = 0.0
    for unit in range(weights.shape[0] // width):
        begin = unit * width
        value = weights[begin + FEATURES]
        for i in range(FEATURES):
            value += weights[begin + i] * features[i]
        if value > 0.0:
            total += weights[begin + FEATURES + 1] * value
    return total
