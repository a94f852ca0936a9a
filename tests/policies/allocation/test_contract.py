"""What holds for every allocation by name, on random small scenes with everything that may go wrong."""

import os
import subprocess
import sys

import numpy as np
import pytest

from rota.core.cluster import Cluster, NodeChange, Slot, Slowdown
from rota.core.errors import ConfigError
from rota.core.population.costs import AssignmentCosts
from rota.core.population.events import Reported
from rota.core.population.stepping import ASSIGN
from rota.core.population.view import Terms
from rota.policies.allocation.era import Era
from rota.policies.allocation.eta import Eta
from rota.policies.allocation.hrfs import Hrfs
from rota.policies.allocation.registry import ALLOCATIONS, allocation_class
from rota.policies.population import PopulationPolicy
from rota.simulator.noise import TimingNoise
from rota.simulator.population import PopulationScenario, engine_for, simulate_trials

SEEDS = range(40)
VARIANTS = [
    Era(split="spa"),
    Era(fastest_first=False),
    Eta("ceil"),
    Eta("floor", fastest_first=False),
    Hrfs(tiers=4, caution=1.0, again=2.0, predict_stops=True),
    Hrfs(near=False, fastest_first=False),
]


def scene_of(seed):
    """Up to 12 trials of two kinds on up to 8 slots of up to 4 nodes, most of which fail or slow down."""
    rng = np.random.default_rng(seed)
    nodes = int(rng.integers(1, 5))
    slots = tuple(
        Slot(node, float(speed), {"large": float(speed * rng.uniform(0.3, 1.0))})
        for node in range(nodes)
        for speed in np.exp(rng.uniform(-2.0, 2.0, int(rng.integers(1, 3))))
    )
    cluster = Cluster.of_slots(
        slots,
        switches=tuple(int(switch) for switch in rng.integers(0, 2, nodes)),
        changes=tuple(changes_of(rng, nodes)),
        slowdowns=tuple(
            Slowdown(float(rng.uniform(0.0, 5.0)), node, float(rng.uniform(0.2, 8.0)))
            for node in range(nodes)
        ),
    )
    hypers = tuple(
        {"rate": float(rng.uniform(0.001, 0.02)), "kind": str(rng.choice(["small", "large"]))}
        for _ in range(int(rng.integers(1, 13)))
    )
    terms = Terms(int(rng.integers(1, 60)), int(rng.integers(1, 300)), float(rng.choice([0.7, np.inf])))
    costs = AssignmentCosts(
        float(rng.uniform(0.0, 0.5)), float(rng.uniform(0.0, 0.2)), 100.0, float(rng.choice([0, 20]))
    )
    noise = TimingNoise(noise=0.1, drift=0.05, seed=seed)
    return PopulationScenario(hypers, cluster, terms, costs, noise, bool(rng.integers(0, 2)))


def changes_of(rng, nodes):
    """Each node may be lost; the first comes back for certain, the others perhaps."""
    for node in range(nodes):
        lost_s = float(rng.uniform(0.1, 4.0))
        if rng.random() < 0.5:
            yield NodeChange(lost_s, node, joins=False)
            if node == 0 or rng.random() < 0.5:
                yield NodeChange(lost_s + float(rng.uniform(0.1, 2.0)), node, joins=True)


def simulated_with_care(scene, landscape, allocation):
    """As a simulation; fails if trials wait while all slots that are there are idle."""
    state, policy = engine_for(scene, landscape), PopulationPolicy(allocation)
    while question := state.advance():
        for decision in policy.answer(question, state):
            state.commit(decision)
        there = int(state.usable.sum())
        if question == ASSIGN:
            assert not (state.waiting and there and len(state.idle) == there), (
                f"nobody works at {state.now_s} s"
            )
    return state


def check_that_all_is_done(rising, allocation):
    for seed in SEEDS:
        scene = scene_of(seed)
        state = simulated_with_care(scene, rising(size_mb=10.0), allocation)
        assert state.left == 0
        reported = np.zeros(len(scene.hypers), int)
        for event in state.timeline:
            if isinstance(event, Reported):
                reported[event.trial] += event.steps
        assert reported.tolist() == state.steps.tolist()
        assert reported.max() <= scene.terms.steps
        done = (state.steps == scene.terms.steps) | (state.metric >= scene.terms.target)
        assert done.all()


@pytest.mark.parametrize("name", ALLOCATIONS)
class TestEveryAllocation:
    def test_is_done_with_every_population_and_lets_nobody_wait_for_nothing(self, name, rising):
        check_that_all_is_done(rising, allocation_class(name)())

    def test_does_the_same_with_the_same_seeds(self, name, rising):
        for seed in SEEDS[:10]:
            runs = [
                simulate_trials(
                    scene_of(seed), rising(size_mb=10.0), PopulationPolicy(allocation_class(name)())
                )
                for _ in range(2)
            ]
            assert runs[0].timeline == runs[1].timeline


@pytest.mark.parametrize("allocation", VARIANTS, ids=str)
def test_with_other_options_everything_is_done_too(allocation, rising):
    check_that_all_is_done(rising, allocation)


# Whatever is imported from here is there to be imported, so that it would be seen.
FAKES = ("torch", "ray", "tensorflow", "gymnasium")

ASK = """
import sys
from rota.core.cluster import Cluster
from rota.policies.allocation.registry import allocation_class
from rota.policies.population import PopulationPolicy
from rota.simulator.landscapes import Equal
from rota.simulator.population import PopulationScenario, simulate_trials
scene = PopulationScenario(({},) * 4, Cluster.of_speeds([1.0, 3.0]))
for name in sys.argv[1:]:
    simulate_trials(scene, Equal(0.01), PopulationPolicy(allocation_class(name)()))
    print(name, *sys.modules)
"""


def test_all_run_without_importing_what_only_training_needs(tmp_path):
    for fake in FAKES:
        (tmp_path / f"{fake}.py").write_text("")
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    said = subprocess.check_output(
        [sys.executable, "-c", ASK, *ALLOCATIONS], env={**os.environ, "PYTHONPATH": path}, text=True
    )
    heavy = {*FAKES, "matplotlib"}
    found = {name: heavy & set(modules) for name, *modules in map(str.split, said.splitlines())}
    assert found == {name: set() for name in ALLOCATIONS}


def test_an_unknown_name_suggests_what_was_probably_meant():
    with pytest.raises(ConfigError, match=r"^unknown allocation 'hrsf'\. Did you mean 'hrfs'"):
        allocation_class("hrsf")
