"""One rehearsal: a population, slots and a policy in; what happened out."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from rota.core.loop import drive
from rota.core.population.costs import Costs
from rota.core.population.decisions import Hyper
from rota.core.population.events import Event
from rota.core.population.fleet import Fleet
from rota.core.population.state import State
from rota.core.population.view import Terms
from rota.policies.population import Policy
from rota.replay.population.backend import Rehearsal
from rota.replay.population.besides import Besides
from rota.replay.population.landscape import Landscape
from rota.replay.population.weather import Luck, Weather


@dataclass(frozen=True, slots=True)
class Scene:
    """What is rehearsed, whatever the policy."""

    hypers: tuple[Hyper, ...]
    fleet: Fleet
    terms: Terms = field(default_factory=Terms)
    costs: Costs = field(default_factory=Costs)
    weather: Weather = field(default_factory=Weather)
    report_each: bool = True
    """Each part of a list reports when it is done; else all at the end of the list."""
    besides: Besides = field(default_factory=Besides)


@dataclass(frozen=True, slots=True)
class Rehearsed:
    """What came of it."""

    timeline: Sequence[Event]
    makespan_s: float
    decisions: int
    """Parts of lists that were handed out."""
    wall_s: float
    """How long the rehearsal itself took."""
    state: State


def rehearse(scene: Scene, landscape: Landscape, policy: Policy, seed: int = 0) -> Rehearsed:
    """Train a population on paper until every trial is done."""
    state = State(scene.hypers, scene.fleet, scene.terms, scene.costs, landscape, seed)
    luck = Luck(scene.weather, len(scene.hypers), len(scene.fleet.slots))
    backend = Rehearsal(scene.fleet, landscape, luck, report_each=scene.report_each, besides=scene.besides)
    for trial, hyper in enumerate(scene.hypers):
        landscape.begin(trial, hyper)
    began = time.perf_counter()
    for _ in drive(policy, backend, state):
        pass
    wall_s = time.perf_counter() - began
    return Rehearsed(state.timeline, state.now_s, state.decisions, wall_s, state)
