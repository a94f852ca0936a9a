"""Simulation of a population: trials, slots and a policy in; events out."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import inf

from rota.core.cluster import Cluster
from rota.core.population.costs import AssignmentCosts
from rota.core.population.engine import Landscape, PopulationEngine
from rota.core.population.events import Event, Hyper
from rota.core.population.policies import compiled_allocation
from rota.core.population.view import Terms
from rota.policies.evolution.registry import Unchanged
from rota.policies.population import PopulationPolicy
from rota.simulator.noise import ReportOverhead, TimingNoise


@dataclass(frozen=True, slots=True)
class PopulationScenario:
    """Everything about a simulated population except the policy."""

    hypers: tuple[Hyper, ...]
    cluster: Cluster
    terms: Terms = field(default_factory=Terms)
    costs: AssignmentCosts = field(default_factory=AssignmentCosts)
    noise: TimingNoise = field(default_factory=TimingNoise)
    report_each: bool = True
    """Whether each interval reports when it is done; else all at the end of the assignment."""
    overhead: ReportOverhead = field(default_factory=ReportOverhead)
    deadline_s: float = inf
    """When the run ends, whether trials are done or not."""


@dataclass(frozen=True, slots=True)
class SimulatedPopulation:
    """The result of a simulation."""

    timeline: Sequence[Event]
    makespan_s: float
    decisions: int
    """Number of intervals assigned."""
    wall_s: float
    """Seconds that the simulation took."""
    state: PopulationEngine


def engine_for(scene: PopulationScenario, landscape: Landscape, seed: int = 0) -> PopulationEngine:
    """Return an engine at the beginning of a simulation."""
    trials, slots, overhead = len(scene.hypers), len(scene.cluster.all_slots), scene.overhead
    for trial, hyper in enumerate(scene.hypers):
        landscape.begin(trial, hyper)
    engine = PopulationEngine(scene.hypers, scene.cluster, scene.terms, scene.costs, landscape, seed)
    engine.simulate(
        landscape, scene.noise.draws(trials, slots), report_each=scene.report_each,
        deadline_s=scene.deadline_s, noise=scene.noise.noise, drift=scene.noise.drift,
        load_s=overhead.load_s, evaluate_s=overhead.evaluate_s, save_s=overhead.save_s,
    )  # fmt: skip
    return engine


def simulate_trials(
    scene: PopulationScenario, landscape: Landscape, policy: PopulationPolicy, seed: int = 0
) -> SimulatedPopulation:
    """Simulate a population until every trial is finished or stopped, or the deadline is there."""
    engine = engine_for(scene, landscape, seed)
    began = time.perf_counter()
    drive_population(engine, policy)
    wall_s = time.perf_counter() - began
    return SimulatedPopulation(engine.timeline, engine.now_s, engine.decisions, wall_s, engine)


def drive_population(engine: PopulationEngine, policy: PopulationPolicy) -> None:
    """Simulate until every trial is finished or stopped; without Python where all policies are compiled."""
    form = compiled_allocation(policy.allocation)
    if form is not None and policy.retirement is None and policy.growth is None:
        engine.use(form)
    engine.write(reviews=type(policy.evolution) is not Unchanged)
    while question := engine.advance():
        for decision in policy.answer(question, engine):
            engine.commit(decision)
