"""Compare a placement agent with the rules, on slots and populations that it has not learned from."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import numpy as np

from rota.core.population.costs import AssignmentCosts
from rota.core.population.view import Terms
from rota.core.processes import WorkerPool
from rota.learning.placement.cases import STEP_S, CaseDistribution, Goal, PlacementCase
from rota.learning.placement.outcome import AGENT, ComparedRow, PlacementComparison
from rota.learning.placement.rollout import play
from rota.policies.allocation.learned import Learned, Weights, write_agent
from rota.policies.allocation.registry import ALLOCATIONS, allocation_class
from rota.policies.population import AllocationPolicy, PopulationPolicy
from rota.simulator.noise import TimingNoise
from rota.simulator.population import simulate_trials

CASES = CaseDistribution()
"""Test cases, whatever was learned from: 4 to 16 slots, speeds up to 160 times apart, 10 to 60 trials."""
TERMS = Terms(interval=50, steps=1000)
DISPATCHES = (0.0, 0.1, 0.25, 0.5)
"""Dispatch costs, in intervals of a slot of speed 1."""
NOISE = 0.05
REPETITIONS = 3
"""Number of repetitions of a case, each with other noise."""
UNSEEN = (0, 0, 0, 1)
"""End of the seed of a test case. Seeds of learning are shorter, which means padded with 0."""


class ComparedCase(NamedTuple):
    """One case at one dispatch cost, and the agent."""

    number: int
    dispatch: float
    goal: Goal
    weights: Weights


def compare(
    weights: Weights,
    tests: int,
    pool: WorkerPool,
    goal: Goal = "makespan",
    on_tried: Callable[[int], object] = lambda count: None,
) -> PlacementComparison:
    """Compare an agent with all rules, on `tests` cases at each dispatch cost."""
    cases = product(range(tests), DISPATCHES)
    calls = [(ComparedCase(number, cost, goal, weights),) for number, cost in cases]
    found: dict[int, ComparedRow] = {}
    for place, row in pool.each(try_out, calls):
        found[place] = row
        on_tried(1)
    return PlacementComparison(tuple(row for _, row in sorted(found.items())), goal)


def try_out(asked: ComparedCase) -> ComparedRow:
    """Simulate all allocations on one case, with the same noise."""
    cases = [
        case_of(asked.number, asked.dispatch, repetition, asked.goal) for repetition in range(REPETITIONS)
    ]
    shuffles = [shuffled(asked.weights, repetition) for repetition in range(REPETITIONS)]
    with _written(asked.weights) as agent:
        ratios = {name: _mean_ratio(cases, _allocation(name, agent)) for name in ALLOCATIONS}
    speeds = [slot.speed for slot in cases[0].scene.cluster.all_slots]
    return ComparedRow(
        number=asked.number,
        slots=len(speeds),
        trials=len(cases[0].scene.hypers),
        spread=float(f"{max(speeds) / min(speeds):.4g}"),
        dispatch=asked.dispatch,
        ratios=ratios,
        shuffled=float(np.mean([play(*each).ratio for each in zip(cases, shuffles, strict=True)])),
    )


def case_of(number: int, dispatch: float, repetition: int, goal: Goal = "makespan") -> PlacementCase:
    """Return the case of a number; slots and population are the same at each dispatch cost."""
    cases = replace(CASES, goal=goal, intervals=(TERMS.steps // TERMS.interval,) * 2)
    drawn = cases.draw(np.random.default_rng((number, *UNSEEN)))
    costs = AssignmentCosts(dispatch_s=dispatch * TERMS.interval * STEP_S)
    noise = TimingNoise(NOISE, seed=REPETITIONS * number + repetition)
    return replace(drawn, scene=replace(drawn.scene, costs=costs, noise=noise))


def shuffled(weights: Weights, seed: int) -> Weights:
    """Return weights that are permuted within each array."""
    random = np.random.default_rng(seed)
    return Weights(*(random.permutation(values.ravel()).reshape(values.shape) for values in weights))


def _allocation(name: str, agent: Path) -> AllocationPolicy:
    found: AllocationPolicy = Learned(agent) if name == AGENT else allocation_class(name)()
    return found


def _mean_ratio(cases: list[PlacementCase], allocation: AllocationPolicy) -> float:
    return float(np.mean([_ratio(case, allocation) for case in cases]))


def _ratio(case: PlacementCase, allocation: AllocationPolicy) -> float:
    done = simulate_trials(case.scene, case.landscape(), PopulationPolicy(allocation))
    return case.ratio(done.timeline, done.makespan_s)


@contextmanager
def _written(weights: Weights) -> Iterator[Path]:
    """Write the agent to a temporary folder."""
    with TemporaryDirectory(prefix="rota-agent-") as folder:
        write_agent(Path(folder), weights, {})
        yield Path(folder)
