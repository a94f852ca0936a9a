"""Try a placement agent beside the rules, on slots and populations that nobody has learned from."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import numpy as np

from rota.core.population.cluster import AssignmentCosts
from rota.core.population.view import Terms
from rota.core.processes import process_map
from rota.learning.placement.cases import STEP_S, CaseDistribution, Goal, PlacementCase
from rota.learning.placement.outcome import AGENT, ComparedRow, PlacementComparison
from rota.learning.placement.rollout import play
from rota.policies.allocation.learned import Learned, Weights, read_weights, write_agent
from rota.policies.allocation.registry import ALLOCATIONS, allocation_class
from rota.policies.population import AllocationPolicy, PopulationPolicy
from rota.simulator.noise import TimingNoise
from rota.simulator.population import simulate_trials

CASES = CaseDistribution()
"""4 to 16 slots whose speeds spread up to 160 times, 10 to 60 trials: whatever was learned from."""
TERMS = Terms(interval=50, steps=1000)
DISPATCHES = (0.0, 0.1, 0.25, 0.5)
"""Costs, in intervals of a slot of speed 1."""
NOISE = 0.05
LUCKS = 3
"""So often each is tried, with other noise."""
UNSEEN = (0, 0, 0, 1)
"""Follows the number of a case in its seed. Seeds of learning are shorter: they are filled up with 0."""


class ComparedCase(NamedTuple):
    """One case at one dispatch cost, and where the agents are."""

    number: int
    dispatch: float
    goal: Goal
    agents: Path


def compare(
    weights: Weights,
    tests: int,
    workers: int,
    goal: Goal = "makespan",
    on_tried: Callable[[int], object] = lambda count: None,
) -> PlacementComparison:
    """The agent of these weights and all rules, on so many cases at each dispatch cost."""
    found: list[ComparedRow] = []
    with _kept(weights) as agents, process_map(workers) as try_all:
        asked = [
            ComparedCase(number, cost, goal, agents) for number, cost in product(range(tests), DISPATCHES)
        ]
        for some in (asked[at : at + 4 * workers] for at in range(0, len(asked), 4 * workers)):
            found += try_all(try_out, some)
            on_tried(len(some))
    return PlacementComparison(tuple(found), goal)


def try_out(asked: ComparedCase) -> ComparedRow:
    """All allocations in turn, each with the same luck."""
    cases = [case_of(asked.number, asked.dispatch, luck, asked.goal) for luck in range(LUCKS)]
    shuffles = [read_weights(asked.agents / f"shuffled{luck}") for luck in range(LUCKS)]
    ratios = {name: _mean_ratio(cases, _allocation(name, asked.agents)) for name in ALLOCATIONS}
    speeds = [slot.speed for slot in cases[0].scene.fleet.slots]
    return ComparedRow(
        number=asked.number,
        slots=len(speeds),
        trials=len(cases[0].scene.hypers),
        spread=float(f"{max(speeds) / min(speeds):.4g}"),
        dispatch=asked.dispatch,
        ratios=ratios,
        # which takes many times as many decisions: the compiled loop, which is the same
        shuffled=float(np.mean([play(*each).ratio for each in zip(cases, shuffles, strict=True)])),
    )


def case_of(number: int, dispatch: float, luck: int, goal: Goal = "makespan") -> PlacementCase:
    """The slots and the population of a number, which are the same at each dispatch cost."""
    cases = replace(CASES, goal=goal, intervals=(TERMS.steps // TERMS.interval,) * 2)
    drawn = cases.draw(np.random.default_rng((number, *UNSEEN)))
    costs = AssignmentCosts(dispatch_s=dispatch * TERMS.interval * STEP_S)
    weather = TimingNoise(NOISE, seed=LUCKS * number + luck)
    return replace(drawn, scene=replace(drawn.scene, costs=costs, weather=weather))


def shuffled(weights: Weights, seed: int) -> Weights:
    """The same numbers in each array, each in another place."""
    random = np.random.default_rng(seed)
    return Weights(*(random.permutation(values.ravel()).reshape(values.shape) for values in weights))


def _allocation(name: str, agents: Path) -> AllocationPolicy:
    found: AllocationPolicy = Learned(agents / AGENT) if name == AGENT else allocation_class(name)()
    return found


def _mean_ratio(cases: list[PlacementCase], allocation: AllocationPolicy) -> float:
    return float(np.mean([_ratio(case, allocation) for case in cases]))


def _ratio(case: PlacementCase, allocation: AllocationPolicy) -> float:
    done = simulate_trials(case.scene, case.landscape(), PopulationPolicy(allocation))
    return case.ratio(done.timeline, done.makespan_s)


@contextmanager
def _kept(weights: Weights) -> Iterator[Path]:
    """A folder of agents for whoever tries them: the one of these weights, and with its weights shuffled."""
    with TemporaryDirectory(prefix="rota-agents-") as folder:
        write_agent(Path(folder) / AGENT, weights, {})
        for luck in range(LUCKS):
            write_agent(Path(folder) / f"shuffled{luck}", shuffled(weights, luck), {})
        yield Path(folder)
