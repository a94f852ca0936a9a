"""The toy problem: what exploiting and exploring do, each alone and together."""

import numpy as np
import pytest

from rota.core.cluster import Cluster
from rota.core.population.events import Cloned, Hyper
from rota.core.population.view import Terms
from rota.policies.allocation.fifo import FifoAllocation
from rota.policies.evolution.explore import Space
from rota.policies.evolution.pbt import Pbt
from rota.policies.evolution.registry import Unchanged
from rota.policies.population import EvolutionPolicy, PopulationPolicy
from rota.simulator.population import PopulationScenario, SimulatedPopulation, simulate_trials

START, TOP = (0.9, 0.9), 1.2
SPACE = {"h0": Space(0.0, 1.0), "h1": Space(0.0, 1.0)}
NONE = Unchanged()
EXPLOIT = Pbt(space=SPACE, explore=False)
EXPLORE = Pbt(space=SPACE, exploit=False)
BOTH = Pbt(space=SPACE)
PAPER = ({"h0": 1.0, "h1": 0.0}, {"h0": 0.0, "h1": 1.0})
"""Each sees one half of the real function."""


class Toy:
    """The toy problem of PBT: a trial has two weights θ, and its metric is 1.2 − θ₀² − θ₁².

    It climbs 1.2 − h₀θ₀² − h₁θ₁² instead, by gradient ascent: a step multiplies each weight by 1 − 2 · rate ·
    h. Its hyper-parameters `h0` and `h1` are what it sees of the real function: where one is 0, the weight
    does not change.
    """

    def __init__(self, rate: float = 0.02, step_s: float = 1.0) -> None:
        self._rate, self._step_s = rate, step_s
        self.theta: dict[int, tuple[float, float]] = {}
        self._sees: dict[int, tuple[float, float]] = {}

    def kind(self, hyper: Hyper, changes: tuple[str, ...]) -> str:
        return "toy"

    def step_s(self, kind: str) -> float:
        return self._step_s

    def size_mb(self, kind: str) -> float:
        return 0.0

    def begin(self, trial: int, hyper: Hyper) -> None:
        self.theta[trial] = START
        self._sees[trial] = hyper["h0"], hyper["h1"]

    def train(self, trial: int, steps: int) -> float:
        (zero, one), (sees_zero, sees_one) = self.theta[trial], self._sees[trial]
        zero *= (1.0 - 2.0 * self._rate * sees_zero) ** steps
        one *= (1.0 - 2.0 * self._rate * sees_one) ** steps
        self.theta[trial] = zero, one
        return TOP - (zero * zero + one * one)

    def clone(self, trial: int, donor: int, hyper: Hyper, changes: tuple[str, ...]) -> None:
        self.theta[trial] = self.theta[donor]
        self._sees[trial] = hyper["h0"], hyper["h1"]


def two(evolution: EvolutionPolicy, seed: int = 0, steps: int = 400) -> SimulatedPopulation:
    """The two trials of the paper, on two slots of which one is a little faster."""
    scene = PopulationScenario(PAPER, Cluster.of_speeds([1.0, 1.1]), Terms(4, steps))
    return simulate_trials(scene, Toy(), PopulationPolicy(FifoAllocation(), evolution), seed)


def mean_of_eight(evolution: EvolutionPolicy, seed: int) -> float:
    """How good eight trials are on average that see something of the real function each, after 80 steps."""
    sees = np.random.default_rng(seed).uniform(0, 1, (8, 2)).tolist()
    hypers = tuple({"h0": zero, "h1": one} for zero, one in sees)
    scene = PopulationScenario(hypers, Cluster.of_speeds([1.0, 1.1]), Terms(4, 80))
    return float(
        simulate_trials(scene, Toy(), PopulationPolicy(FifoAllocation(), evolution), seed).state.metric.mean()
    )


def test_a_step_goes_along_the_gradient_of_what_is_seen():
    toy = Toy(rate=0.1)
    toy.begin(0, {"h0": 1.0, "h1": 0.5})
    # 0.9 − 0.1 × 2 × 0.9 = 0.72 and 0.9 − 0.1 × 2 × 0.5 × 0.9 = 0.81; then 0.576 and 0.729
    assert toy.train(0, 1) == pytest.approx(1.2 - 0.72**2 - 0.81**2)
    assert toy.theta[0] == pytest.approx((0.72, 0.81))
    assert toy.train(0, 1) == pytest.approx(1.2 - 0.576**2 - 0.729**2)


def test_alone_each_is_stuck_where_it_does_not_see():
    # One weight stays at 0.9: 1.2 − 0.81 = 0.39.
    state = two(NONE).state
    assert state.metric.tolist() == pytest.approx([0.39, 0.39], abs=1e-6)
    assert state.best < 0.39


@pytest.mark.parametrize("seed", range(10))
def test_together_they_reach_the_top(seed):
    assert two(BOTH, seed).state.best > 1.19


def test_to_copy_all_of_another_is_to_see_no_more_than_it_does():
    found = two(EXPLOIT)
    assert found.state.best == pytest.approx(0.39, abs=1e-6)
    assert found.state.hyper[0] == found.state.hyper[1]


def test_to_copy_its_weights_alone_and_see_the_other_half_reaches_the_top():
    found = two(Pbt(space=SPACE, explore=False, keep=("h0", "h1")))
    assert found.state.best > 1.19
    assert found.state.hyper == list(PAPER)
    donors = [event.donor for event in found.timeline if isinstance(event, Cloned)]
    assert set(donors) == {0, 1}


def test_who_only_explores_keeps_its_weights():
    found = two(EXPLORE)
    clones = [event for event in found.timeline if isinstance(event, Cloned)]
    assert clones
    assert all(event.donor == event.trial for event in clones)
    assert found.state.best > 1.19


def test_exploiting_and_exploring_are_each_better_than_neither_and_best_together():
    means = {
        name: np.mean([mean_of_eight(evolution, seed) for seed in range(20)])
        for name, evolution in (("none", NONE), ("exploit", EXPLOIT), ("explore", EXPLORE), ("both", BOTH))
    }
    # 0.94, 1.10, 1.18 and 1.19, of 1.2
    assert means["none"] + 0.1 < means["explore"]
    assert means["none"] + 0.1 < means["exploit"]
    assert means["both"] > max(means["explore"], means["exploit"]) + 0.005
