"""Which trial trains where? An agent that learned it in simulations, and rules, on slots it has not seen.

    python examples/learned_placement.py             # the agent that comes with rota
    python examples/learned_placement.py place       # yours: rota learn config/learn/place.toml --out place

Forty trials train on nine unequal slots, the fastest 24 times as fast as the slowest; an assignment costs a
tenth of what an interval takes on a slot of speed 1.
"""

import sys
from pathlib import Path

from rota.core.cluster import Cluster
from rota.core.population.costs import AssignmentCosts
from rota.core.population.events import Reported
from rota.core.population.view import Terms
from rota.policies.allocation.registry import ALLOCATIONS, allocation_class
from rota.policies.population import PopulationPolicy
from rota.simulator.bounds import lower_bound_s
from rota.simulator.landscapes import Equal
from rota.simulator.noise import TimingNoise
from rota.simulator.population import PopulationScenario, simulate_trials

SPEEDS = [1.3, 1, 0.33, 0.33, 0.33, 1.6, 1, 1, 8]
TRIALS, STEPS, INTERVAL, STEP_S = 40, 1000, 50, 0.02


def main():
    agent = {"agent": Path(sys.argv[1])} if len(sys.argv) > 1 else {}
    scene = PopulationScenario(
        hypers=({},) * TRIALS,  # all alike: only the time counts here
        cluster=Cluster.of_speeds(SPEEDS),
        terms=Terms(INTERVAL, STEPS),
        costs=AssignmentCosts(dispatch_s=0.1 * INTERVAL * STEP_S),
        noise=TimingNoise(noise=0.05, seed=0),
    )
    bound_s = lower_bound_s(TRIALS, STEPS * STEP_S, SPEEDS)
    print(f"{TRIALS} trials of {STEPS:,} steps; no rule can be done before {bound_s:.1f} s\n")
    slots = "".join(f"{speed:>7g}×" for speed in SPEEDS)
    print(f"{'':10}{'makespan [s]':>13}{'÷ lower bound':>15}   steps by slot: {slots}")
    for name in ALLOCATIONS:
        allocation = allocation_class(name)(**(agent if name == "learned" else {}))
        done = simulate_trials(scene, Equal(STEP_S), PopulationPolicy(allocation))
        steps = [0] * len(SPEEDS)
        for event in done.timeline:
            if isinstance(event, Reported):
                steps[event.slot] += event.steps
        shares = "".join(f"{each:8,}" for each in steps)
        print(f"{name:10}{done.makespan_s:13.1f}{done.makespan_s / bound_s:15.3f}{'':17}{shares}")


if __name__ == "__main__":
    main()
