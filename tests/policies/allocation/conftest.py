"""What the tests of allocations have in common."""

from collections.abc import Callable
from math import exp
from typing import Any

import pytest

from rota.core.cluster import Cluster
from rota.core.population.costs import AssignmentCosts
from rota.core.population.engine import PopulationEngine
from rota.core.population.events import Assign, Continue, Idled, Joined, Reported
from rota.core.population.view import Terms
from rota.policies.population import PopulationPolicy
from rota.simulator.landscapes import Equal


class Rising(Equal):
    """Trials that become better: 1 − exp(−steps × rate), each at its own rate, of two kinds."""

    def __init__(self, step_s: float = 0.01, size_mb: float = 0.0) -> None:
        super().__init__(step_s, size_mb)
        self._rates: dict[int, float] = {}
        self._steps: dict[int, int] = {}

    def kind(self, hyper, changes):
        return hyper.get("kind", "small")

    def step_s(self, kind):
        return self._step_s * (3.0 if kind == "large" else 1.0)

    def begin(self, trial, hyper):
        self._rates[trial], self._steps[trial] = hyper.get("rate", 0.01), 0

    def train(self, trial, steps):
        self._steps[trial] += steps
        return 1.0 - exp(-self._steps[trial] * self._rates[trial])


@pytest.fixture(scope="session")
def rising() -> type[Rising]:
    return Rising


@pytest.fixture
def population() -> Callable[..., PopulationEngine]:
    """Trials that wait, on slots that are idle."""

    def build(
        trials: int,
        slots: Cluster | list[float],
        costs: AssignmentCosts | None = None,
        **terms: Any,
    ) -> PopulationEngine:
        cluster = slots if isinstance(slots, Cluster) else Cluster.of_speeds(slots)
        state = PopulationEngine(
            [{}] * trials, cluster, Terms(**terms), costs or AssignmentCosts(), Equal(0.01)
        )
        state.apply([Joined(0.0, node) for node in range(len(cluster.nodes))])
        return state

    return build


@pytest.fixture
def lists() -> Callable[..., dict[int, list[int]]]:
    """What an allocation hands out now: slot → trials. The state is as it is after that."""

    def ask(state: PopulationEngine, allocation: Any, retirement: Any = None) -> dict[int, list[int]]:
        decisions = state.request(PopulationPolicy(allocation, retirement=retirement).plan(state.view))
        hands = [decision for decision in decisions if isinstance(decision, Assign)]
        return {hand.slot: [part.trial for part in hand.parts] for hand in hands}

    return ask


@pytest.fixture
def done() -> Callable[..., None]:
    """Lets a slot do its list: each step takes so many seconds. The trials wait again, or are stopped."""

    def finish(
        state: PopulationEngine,
        slot: int,
        trials: list[int],
        step_s: float,
        after: Callable[[int], Any] = Continue,
    ) -> None:
        at_s = state.now_s
        steps = {trial: int(state.assigned[trial]) for trial in trials}
        reports = [
            Reported(at_s, slot, trial, steps[trial], at_s - steps[trial] * step_s, at_s, 0.0, 0.1)
            for trial in trials
        ]
        state.apply([*reports, Idled(at_s, slot)])
        state.request([after(trial) for trial in list(state.to_review)])

    return finish
