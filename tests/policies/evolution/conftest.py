"""Populations that have come so far, and a landscape that hyper-parameters alone decide about."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from rota.core.cluster import Cluster
from rota.core.population.costs import AssignmentCosts
from rota.core.population.engine import PopulationEngine
from rota.core.population.events import Hyper
from rota.core.population.view import Terms, TrialStatus
from rota.simulator.landscapes import Equal

NAN = float("nan")


@pytest.fixture(scope="session")
def population() -> Callable[..., PopulationEngine]:
    """Gives a function that makes a population whose trials have these metrics after an interval of 50.

    A trial without a metric has not reported, and all others are due to be looked at.
    """

    def make(metrics: Sequence[float], hypers: Sequence[Hyper] = (), seed: int = 0) -> PopulationEngine:
        hypers = hypers or [{"lr": 0.1 * (trial + 1)} for trial in range(len(metrics))]
        state = PopulationEngine(hypers, Cluster.of_speeds([1.0]), Terms(), AssignmentCosts(), Equal(), seed)
        state.metric[:] = metrics
        reported = ~np.isnan(state.metric)
        state.steps[reported] = state.fresh[reported] = 50
        state.checkpoint_node[reported] = 0
        state.status[reported] = TrialStatus.REPORTED
        state.to_review = np.flatnonzero(reported).tolist()
        state.waiting = np.flatnonzero(~reported).tolist()
        return state

    return make


class Slope:
    """Each step adds lr × (1 − momentum) to the metric of a trial; no two begin with the same."""

    def __init__(self) -> None:
        self.level: dict[int, float] = {}
        self.pace: dict[int, float] = {}

    def kind(self, hyper: Hyper, changes: tuple[str, ...]) -> str:
        return f"slope {hyper['batch_size']} {len(changes)}"

    def step_s(self, kind: str) -> float:
        _, batch, changes = kind.split()
        return int(batch) / 64 * 1.5 ** int(changes)

    def size_mb(self, kind: str) -> float:
        return 1.0

    def begin(self, trial: int, hyper: Hyper) -> None:
        self.level[trial] = 0.001 * trial
        self.clone(trial, trial, hyper, ())

    def train(self, trial: int, steps: int) -> float:
        self.level[trial] += steps * self.pace[trial]
        return self.level[trial]

    def clone(self, trial: int, donor: int, hyper: Hyper, changes: tuple[str, ...]) -> None:
        self.level[trial] = self.level[donor]
        self.pace[trial] = hyper["lr"] * (1.0 - hyper["momentum"])


@pytest.fixture(scope="session")
def slope() -> type[Slope]:
    return Slope


@pytest.fixture(scope="session")
def drawn() -> Callable[[int, int], tuple[Hyper, ...]]:
    """Gives a function that draws hyper-parameters for so many trials, with a seed."""

    def make(trials: int, seed: int) -> tuple[Any, ...]:
        random = np.random.default_rng(seed)
        return tuple(
            {
                "lr": float(random.uniform(1e-4, 1.0)),
                "momentum": float(random.uniform(1e-4, 0.999)),
                "batch_size": int(random.choice((16, 32, 64))),
            }
            for _ in range(trials)
        )

    return make
