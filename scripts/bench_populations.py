"""Placements that each allocation decides in a second, and what compiled simulations gain, on one core."""

import sys
import time
from statistics import median

import numpy as np

from rota.core.population.cluster import PopulationCluster
from rota.core.population.view import Terms
from rota.learning.placement.cases import STEP_S, CaseDistribution
from rota.learning.placement.rollout import play
from rota.policies.allocation.learned import SHIPPED, Learned, read_weights
from rota.policies.allocation.registry import ALLOCATIONS, allocation_class
from rota.policies.population import PopulationPolicy
from rota.simulator.landscapes import Equal
from rota.simulator.noise import TimingNoise
from rota.simulator.population import PopulationScenario, simulate_trials
from rota.simulator.population_config import NINE

TURNS = 9
SCENE = PopulationScenario(({},) * 20, PopulationCluster.of(NINE), Terms(50, 1000), noise=TimingNoise(0.05))
BEST = -1


def placements_per_s(name: str) -> float:
    """Of one simulation of the nine slots of the originals, set-up included."""
    done = simulate_trials(SCENE, Equal(STEP_S), PopulationPolicy(allocation_class(name)()))
    return done.decisions / done.wall_s


def gain() -> float:
    """How many times as fast compiled simulations are, of ten random cases."""
    weights, seconds = read_weights(SHIPPED), []
    cases = [CaseDistribution().draw(np.random.default_rng(seed)) for seed in range(10)]
    for simulated in (
        lambda case: simulate_trials(case.scene, case.landscape(), PopulationPolicy(Learned())),
        lambda case: play(case, weights, BEST),
    ):
        began_s = time.perf_counter()
        for case in cases:
            simulated(case)
        seconds.append(time.perf_counter() - began_s)
    return seconds[0] / seconds[1]


def main() -> int:
    for name in ALLOCATIONS:
        placements_per_s(name)  # compiles
    gain()
    turns = [{name: placements_per_s(name) for name in ALLOCATIONS} for _ in range(TURNS)]
    print(f"20 trials × 20 intervals on nine slots, medians of {TURNS} turns")
    for name in ALLOCATIONS:
        print(f"{name:10} {median(turn[name] for turn in turns):10,.0f} placements a second")
    print(
        f"simulations to learn from, compiled whole: {median(gain() for _ in range(TURNS)):.1f} times as fast"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
