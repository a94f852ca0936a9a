"""What a joint agent is compared with: combinations of rules, random choices, and what could be reached.

All of them are simulated on the same cases with the same draws. The oracle is exact for the accuracy of the
best trial: no more than one trial is needed, it can have the fastest slot to itself, and its whole tree is
known, so the best node that it can reach in time is what the best choices reach. Being the largest of many
noisy measurements, it is higher than any rule that does not know them can be expected to come.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from rota.core.arrays import Floats
from rota.core.intervals import mean_interval
from rota.core.network import GrowthPolicy
from rota.core.population.events import Interval, Reported
from rota.core.population.policies import Allocation
from rota.core.population.view import PopulationView
from rota.learning.joint.cases import JointCase
from rota.policies.allocation.registry import allocation_class
from rota.policies.evolution.asha import Asha
from rota.policies.evolution.registry import Unchanged
from rota.policies.growth.registry import growth_class
from rota.policies.population import PopulationPolicy
from rota.simulator.population import SimulatedPopulation, simulate_trials

LONGEST = 7
"""Most intervals of a path."""


class Part(NamedTuple):
    """A policy of a rule: its name, and its options."""

    name: str
    options: tuple[tuple[str, Any], ...] = ()

    def __str__(self) -> str:
        said = ", ".join(f"{name}={_said(value)}" for name, value in self.options)
        return f"{self.name}({said})" if said else self.name


def _said(value: Any) -> str:
    return " ".join(map(str, value)) if isinstance(value, tuple) else f"{value:g}"


ALLOCATION = (
    *map(Part, ("fifo", "era", "eta", "hrfs", "finish", "learned")),
    *(Part("promote", (("reduction_factor", factor),)) for factor in (1.0, 2.0, 4.0, 1000.0)),
)
GROWTH = (
    *map(Part, ("never", "at-start")),
    *(Part("fixed", (("at", at),)) for at in ((0,), (2,), (0, 2))),
    *(Part("stump", (("left", left),)) for left in (0.5, 0.7, 0.85)),
    Part("random"),
)
STOPPING = (Part("none"), Part("asha", (("reduction_factor", 2.0),)))


class Rule(NamedTuple):
    """A combination of rules: which trial, whether it grows, and who stops."""

    allocation: Part
    growth: Part = Part("never")
    stopping: Part = Part("none")

    def __str__(self) -> str:
        return " + ".join(str(part) for part in self if part.name != "none")

    def policy(self, agent: Path | None = None) -> PopulationPolicy:
        """Return the policy; `agent` is the folder of an adaptation agent, for growth by it."""
        allocation = allocation_class(self.allocation.name)(**dict(self.allocation.options))
        stops: Any = Unchanged()
        if self.stopping.name == "asha":
            stops = Asha(max_t=LONGEST, **dict(self.stopping.options))
        growth: GrowthPolicy | None = None
        if self.growth.name != "never":
            options = dict(self.growth.options) | ({"agent": agent} if self.growth.name == "agent" else {})
            growth = growth_class(self.growth.name)(**options)
        return PopulationPolicy(allocation, stops, growth=growth)


def all_rules(*, agent: bool = False) -> list[Rule]:
    """Return every combination of rules; with those of an adaptation agent if there is one."""
    growth = (*GROWTH, Part("agent")) if agent else GROWTH
    return [Rule(*parts) for parts in product(ALLOCATION, growth, STOPPING)]


@dataclass(frozen=True)
class RandomAllocation(Allocation):
    """Any waiting trial for any idle slot: a baseline."""

    def assign(self, view: PopulationView) -> Iterator[tuple[int, list[Interval]]]:
        for slot in view.idle:
            if waiting := view.waiting:
                yield slot, [view.interval(int(view.random.choice(waiting)))]


def random_policy() -> PopulationPolicy:
    """Return the policy that makes any feasible choice, all as likely."""
    return PopulationPolicy(RandomAllocation(), growth=growth_class("random")())


@dataclass(frozen=True, eq=False)
class Reached:
    """What a policy reached on a case."""

    reports: tuple[tuple[float, int, float], ...]
    """Time, trial and accuracy of each report."""
    test_accuracies: tuple[float, ...]
    """Trial → test accuracy where it is at the deadline."""

    @cached_property
    def last(self) -> dict[int, float]:
        """Trial → accuracy at its last report."""
        return {trial: accuracy for _, trial, accuracy in self.reports if not math.isnan(accuracy)}

    @property
    def accuracy(self) -> float:
        """The accuracy of the best trial at the deadline; 0 if none has reported."""
        return max(self.last.values(), default=0.0)

    @property
    def best_three(self) -> float:
        """The mean accuracy of the best three trials at the deadline."""
        best = sorted(self.last.values())[-3:]
        return sum(best) / 3

    @property
    def test_accuracy(self) -> float:
        """The test accuracy of the trial that has the best accuracy at the deadline; 0 if there is none."""
        if not self.last:
            return 0.0
        return self.test_accuracies[max(sorted(self.last), key=self.last.__getitem__)]

    def time_to(self, accuracy: float) -> float:
        """Return when a trial first had an accuracy; infinite if none ever had."""
        return next((at_s for at_s, _, found in self.reports if found >= accuracy), math.inf)


def reached(done: SimulatedPopulation) -> Reached:
    """Return what a simulation on growth trees reached."""
    trees = done.state.walked
    assert trees is not None
    reports = tuple((e.at_s, e.trial, e.metric) for e in done.timeline if isinstance(e, Reported))
    return Reached(reports, tuple(trees.nodes.test_accuracy[trees.node_of].tolist()))


def play(case: JointCase, policy: PopulationPolicy, seed: int = 0) -> Reached:
    """Simulate a policy on a case; `seed` is that of its own draws."""
    return reached(simulate_trials(case.scene, case.landscape(), policy, seed))


def oracle(case: JointCase) -> float:
    """Return the best accuracy that any choices can reach on a case."""
    nodes = case.trees.nodes
    best = 0.0
    for tree in set(case.places):
        start = int(nodes.start[tree])
        kind = case.trees.kinds[nodes.structure[start]].name
        budget_s = case.deadline_s * max(slot.speed_of(kind) for slot in case.cluster.all_slots)
        level = [(int(child), 0.0) for child in nodes.child[start] if child >= 0]
        while level:
            node, before_s = level.pop()
            end_s = before_s + float(nodes.node_seconds[node])
            if end_s > budget_s * (1.0 + 1e-12):
                continue
            best = np.fmax(best, nodes.accuracy[node])
            level += [(int(child), end_s) for child in nodes.child[node] if child >= 0]
    return float(best)


class TunedRule(NamedTuple):
    """The best of several rules on some cases."""

    rule: Rule
    accuracy: float
    """Mean accuracy at the deadline on these cases."""
    table: tuple[tuple[Rule, float], ...]
    """All rules, the best first."""


def tune(
    cases: Sequence[JointCase],
    rules: Sequence[Rule] | None = None,
    agent: Path | None = None,
    tick: Callable[[], object] = lambda: None,
) -> TunedRule:
    """Return the rule with the best mean accuracy at the deadline; of equal ones the first."""
    rows = []
    for rule in rules or all_rules(agent=agent is not None):
        policy = rule.policy(agent)
        rows.append((rule, float(np.mean([play(case, policy).accuracy for case in cases]))))
        tick()
    rows.sort(key=lambda row: -row[1])
    return TunedRule(*rows[0], tuple(rows))


class Difference(NamedTuple):
    """A mean paired difference and its 95 % interval."""

    mean: float
    low: float
    high: float
    clusters: int


def paired(cases: Sequence[JointCase], differences: Iterable[float] | Floats) -> Difference:
    """Return the mean of differences on cases with its interval over clusters, which count alike.

    A cluster is a model and data set; those that are mixed in a case are one.
    """
    labels = cluster_labels(cases)
    values: dict[int, list[float]] = {}
    for label, difference in zip(labels, differences, strict=True):
        values.setdefault(label, []).append(float(difference))
    return Difference(*mean_interval([float(np.mean(each)) for each in values.values()]), len(values))


def cluster_labels(cases: Sequence[JointCase]) -> list[int]:
    """Return the cluster of each case: cases that have a model and data set in common are in one."""
    parent: dict[tuple[str, str], tuple[str, str]] = {}

    def root(pair: tuple[str, str]) -> tuple[str, str]:
        while parent.setdefault(pair, pair) != pair:
            pair = parent[pair]
        return pair

    for case in cases:
        first, *others = case.pairs
        for other in others:
            parent[root(other)] = root(first)
    numbers = {pair: at for at, pair in enumerate(dict.fromkeys(root(case.pairs[0]) for case in cases))}
    return [numbers[root(case.pairs[0])] for case in cases]
