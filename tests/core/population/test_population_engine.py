"""The engine of populations: the same by every way of driving it, and from a snapshot on."""

from dataclasses import dataclass, replace

import pytest

from rota.core.cluster import Cluster, NodeChange, Slot, Slowdown
from rota.core.errors import IllegalPlan
from rota.core.population.costs import AssignmentCosts
from rota.core.population.events import Continue
from rota.core.population.outcomes import outcomes_of
from rota.core.population.stepping import ASSIGN, REVIEW
from rota.core.population.view import Terms
from rota.policies.allocation.registry import ALLOCATIONS, allocation_class
from rota.policies.population import PopulationPolicy
from rota.simulator.landscapes import Equal
from rota.simulator.noise import ReportOverhead, TimingNoise
from rota.simulator.population import PopulationScenario, drive_population, engine_for, simulate_trials

TROUBLED = PopulationScenario(
    hypers=({},) * 9,
    cluster=Cluster.of_slots(
        tuple(Slot(node, speed) for node, speed in ((0, 1.0), (0, 0.7), (1, 2.0), (2, 0.2))),
        changes=(NodeChange(9.0, 1, joins=False), NodeChange(15.0, 1, joins=True)),
        slowdowns=(Slowdown(7.0, 0, 1.5),),
    ),
    terms=Terms(10, 95),
    costs=AssignmentCosts(dispatch_s=0.2, latency_s=0.1),
    noise=TimingNoise(0.1, 0.05, seed=3),
    overhead=ReportOverhead(0.1, 0.05, 0.1),
)
"""A node fails and comes back, another slows down, and nothing is free."""


@dataclass(frozen=True)
class InPython:
    """An allocation whose proposals go through Python one by one."""

    inner: object

    def hand_out(self, view):
        yield from self.inner.hand_out(view)


class AskedEach(Equal):
    """Equal trials whose metrics Python is asked for."""

    def train(self, trial, steps):
        return float("nan")


@pytest.mark.parametrize("name", ALLOCATIONS)
@pytest.mark.parametrize("report_each", [True, False])
def test_any_driver_gives_the_timeline_of_any_other(name, report_each):
    scene, allocation = replace(TROUBLED, report_each=report_each), allocation_class(name)()
    compiled, by_python, asked = (
        list(map(repr, simulate_trials(scene, landscape, PopulationPolicy(each)).timeline))
        for landscape, each in (
            (Equal(0.1), allocation),
            (Equal(0.1), InPython(allocation)),
            (AskedEach(0.1), allocation),
        )
    )
    assert compiled == by_python == asked


def test_a_landscape_with_arrays_is_asked_only_if_a_subclass_does_something_else():
    assert outcomes_of(Equal()) is not None
    assert outcomes_of(AskedEach()) is None


def to_the_end(engine, policy):
    drive_population(engine, policy)
    return list(map(repr, engine.timeline)), engine.now_s, engine.steps.tolist()


@pytest.mark.parametrize("name", ["fifo", "hrfs", "finish"])
def test_from_a_snapshot_on_everything_is_as_it_was(name):
    """Driven half-way by Python, then to the end: as it is, restored, and as a fork."""
    engine, policy = engine_for(TROUBLED, Equal(0.1)), PopulationPolicy(InPython(allocation_class(name)()))
    for _ in range(40):
        question = engine.advance()
        for decision in policy.answer(question, engine):
            engine.commit(decision)
    snapshot, fork = engine.snapshot(), engine.fork()
    went_on = to_the_end(engine, policy)
    assert went_on[0] == list(map(repr, simulate_trials(TROUBLED, Equal(0.1), policy).timeline))
    engine.restore(snapshot)
    assert engine.now_s < went_on[1]
    assert to_the_end(engine, policy) == to_the_end(fork, policy) == went_on


def test_it_asks_to_review_before_it_asks_to_assign():
    scene = PopulationScenario(({},) * 2, Cluster.of_speeds([1.0]), Terms(10, 20))
    engine, policy = engine_for(scene, Equal(0.1)), PopulationPolicy(allocation_class("fifo")())
    asked = []
    while question := engine.advance():
        asked.append((question, engine.now_s, engine.to_review))
        for decision in policy.answer(question, engine):
            engine.commit(decision)
    # Trial 0, 1, 0, 1, of a second each; a trial that has all 20 steps is not reviewed.
    assert asked == [
        *[(ASSIGN, 0.0, [])],
        *[(REVIEW, 1.0, [0]), (ASSIGN, 1.0, []), (REVIEW, 2.0, [1]), (ASSIGN, 2.0, [])],
        *[(ASSIGN, 3.0, []), (ASSIGN, 4.0, [])],
    ]


def test_a_trial_that_is_not_reviewed_is_an_error_and_then_can_be():
    scene = PopulationScenario(({},), Cluster.of_speeds([1.0]), Terms(10, 20))
    engine, policy = engine_for(scene, Equal(0.1)), PopulationPolicy(allocation_class("fifo")())
    assert engine.advance() == ASSIGN
    for decision in policy.answer(ASSIGN, engine):
        engine.commit(decision)
    assert engine.advance() == REVIEW
    with pytest.raises(IllegalPlan, match="trial 0 reported and was not reviewed"):
        engine.advance()
    engine.commit(Continue(0))
    assert engine.advance() == ASSIGN
