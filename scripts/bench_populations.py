"""Placements that each allocation decides in a second of CPU time, and decisions of roll-outs."""

import sys
import time
from collections.abc import Callable
from statistics import median

import numpy as np

from rota.core.cluster import Cluster
from rota.core.population.view import Terms
from rota.learning.placement.cases import STEP_S, CaseDistribution
from rota.learning.placement.rollout import play
from rota.policies.allocation.learned import SHIPPED, read_weights
from rota.policies.allocation.registry import ALLOCATIONS, allocation_class
from rota.policies.population import PopulationPolicy
from rota.simulator.landscapes import Equal
from rota.simulator.noise import TimingNoise
from rota.simulator.population import PopulationScenario, drive_population, engine_for
from rota.simulator.population_config import NINE

TURNS = 9
SCENE = PopulationScenario(({},) * 20, Cluster.of_speeds(NINE), Terms(50, 1000), noise=TimingNoise(0.05))


def simulated(name: str) -> int:
    """Number of intervals assigned in simulations of the nine slots of the originals, set-up included."""
    decisions = 0
    for _ in range(5):
        engine = engine_for(SCENE, Equal(STEP_S))
        drive_population(engine, PopulationPolicy(allocation_class(name)()))
        decisions += engine.decisions
    return decisions


def rolled_out() -> int:
    """Number of decisions of roll-outs of ten random cases."""
    weights = read_weights(SHIPPED)
    cases = [CaseDistribution().draw(np.random.default_rng(seed)) for seed in range(10)]
    return sum(play(case, weights).decisions for case in cases)


def per_s(function: Callable[[], int]) -> float:
    began_s = time.process_time()
    return function() / (time.process_time() - began_s)


def main() -> int:
    subjects: dict[str, Callable[[], int]] = {name: lambda name=name: simulated(name) for name in ALLOCATIONS}
    subjects["roll-outs"] = rolled_out
    for function in subjects.values():
        function()  # compiles
    turns = [{name: per_s(function) for name, function in subjects.items()} for _ in range(TURNS)]
    print(f"20 trials × 20 intervals on nine slots, a second of CPU time, medians of {TURNS} turns")
    for name in subjects:
        print(f"{name:10} {median(turn[name] for turn in turns):10,.0f} placements a second")
    return 0


if __name__ == "__main__":
    sys.exit(main())
