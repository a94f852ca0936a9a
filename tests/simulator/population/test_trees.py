"""Populations that walk along growth trees: exactly what was recorded, to the last digit."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rota.core.cluster import Cluster
from rota.core.errors import IllegalPlan, InputError
from rota.core.network import Layer, Structure
from rota.core.population.engine import PopulationEngine
from rota.core.population.events import (
    Assign,
    Assigned,
    Clone,
    Continue,
    Grow,
    Grown,
    Idled,
    Interval,
    Joined,
    Reported,
    TrialFinished,
)
from rota.core.population.stepping import REVIEW
from rota.policies.allocation.fifo import FifoAllocation
from rota.policies.allocation.promote import Promote
from rota.policies.growth.rules import AtStart, FixedSchedule, RandomGrowth, Stump
from rota.policies.population import PopulationPolicy
from rota.recordings.folder import Provenance
from rota.recordings.growth import GrowthChoices, GrowthNode, GrowthTree, RecordedStructure
from rota.simulator.population import PopulationScenario, engine_for, simulate_trials
from rota.simulator.trees import TreeSet

CHOICES = GrowthChoices(2, ("deepen 1", "deepen 0", "nothing"), 1, ("deepen 0",))
"""One change at one of two boundaries: (), (1), (2), (1, 2), (2, 1), (2, 2)."""
CHAIN = Structure((Layer("linear", (("in", 4), ("out", 2))), Layer("relu")), ((0, 1),))
LONGER = Structure((*CHAIN.layers, Layer("linear", (("in", 2), ("out", 2)))), ((0, 1), (0, 2), (1, 2)))
STRUCTURES = (RecordedStructure(CHAIN, ((0, 1),), 0.5), RecordedStructure(LONGER, ((0, 1, 2),), 0.75))
NODES = {
    (): GrowthNode(10, 0, 2.0, 0.1, 0.15),
    (1,): GrowthNode(20, 1, 1.0, 0.3, 0.25),
    (2,): GrowthNode(20, 0, 1.5, 0.2, 0.2),
    (1, 2): GrowthNode(30, 1, 0.5, 0.6, 0.55),
    (2, 1): GrowthNode(30, 1, math.nan, math.nan),
    (2, 2): GrowthNode(30, 0, 0.75, 0.4, 0.45),
}
ORIGIN = Provenance("a CPU", {}, "", 0, "", "2026-01-01T00:00:00+00:00", "0.1.0", "")


def tree(seed: int = 0, **other) -> GrowthTree:
    made = GrowthTree(
        "net", "digits", seed, {"lr": 0.01, "batch_size": 32.0}, CHOICES, NODES, STRUCTURES, ORIGIN
    )
    return replace(made, **other)


def begun(*trees: GrowthTree, speeds=(2.0,), **scenario) -> PopulationEngine:
    """Return an engine at its first question, a trial on each tree."""
    found = TreeSet(trees)
    scene = PopulationScenario(found.hypers, Cluster.of_speeds(speeds), found.terms(), **scenario)
    engine = engine_for(scene, found.landscape())
    engine.advance()
    return engine


def to_assign(engine: PopulationEngine) -> bool:
    """Go on until something can be assigned, with all trials continued; return whether that happens."""
    while question := engine.advance():
        if question == REVIEW:
            for trial in engine.to_review:
                engine.commit(Continue(trial))
        elif engine.idle and engine.waiting:
            return True
    return False


def test_a_walk_by_hand_gives_what_was_recorded():
    engine = begun(tree())
    engine.commit(Assign(0, [Interval(0, 10)]))  # 10 × 0.5 s ÷ 2
    to_assign(engine)
    assert engine.changes_allowed(0) == ("deepen 0",)
    assert engine.change_mask(0).tolist() == [False, True]  # the tree also names deepen 1, which comes never
    assert engine.kinds[engine.kind_with(0, "deepen 0")] == "net 32 +deepen 0"
    engine.commit(Grow(0, "deepen 0"))
    assert engine.step_times.step_s[0, engine.kind[0]] == 0.375
    engine.commit(Assign(0, [Interval(0, 10)] * 2))  # each 10 × 0.75 s ÷ 2
    assert not to_assign(engine)
    assert engine.timeline == [
        Joined(0.0, 0),
        Assigned(0.0, 0, 1, 10),
        Reported(2.5, 0, 0, 10, 0.0, 2.5, 0.0, 0.1),
        Idled(2.5, 0),
        Grown(2.5, 0, "deepen 0"),
        Assigned(2.5, 0, 1, 20),
        Reported(6.25, 0, 0, 10, 2.5, 6.25, 0.0, 0.3),
        Reported(10.0, 0, 0, 10, 6.25, 10.0, 0.0, 0.6),
        TrialFinished(10.0, 0),
        Idled(10.0, 0),
    ]
    assert engine.changes == [("deepen 0",)]


def test_changes_that_the_tree_has_not_are_refused_and_change_nothing():
    engine = begun(tree())
    with pytest.raises(IllegalPlan, match="cannot deepen 0 after nothing: it may not change"):
        engine.commit(Grow(0, "deepen 0"))  # there is nothing before the root
    engine.commit(Assign(0, [Interval(0, 10)]))
    with pytest.raises(IllegalPlan, match="trial 0 is not waiting"):
        engine.commit(Grow(0, "deepen 0"))
    to_assign(engine)
    with pytest.raises(IllegalPlan, match="cannot deepen 1 after nothing: it may deepen 0"):
        engine.commit(Grow(0, "deepen 1"))
    before = engine.snapshot()
    engine.commit(Grow(0, "deepen 0"))
    with pytest.raises(IllegalPlan, match="it has changed since its last report"):
        engine.commit(Grow(0, "deepen 0"))
    engine.restore(before)
    assert engine.changes_allowed(0) == ("deepen 0",)
    assert engine.changes == [()]
    with pytest.raises(IllegalPlan, match="has intervals of 10, none is cut"):
        engine.commit(Assign(0, [Interval(0, 5)]))


def test_the_run_ends_at_its_deadline():
    engine = begun(tree(), tree(1), speeds=(2.0, 1.0), deadline_s=5.0)
    engine.commit(Assign(0, [Interval(0, 10)] * 3))  # reports at 2.5, 5, 7.5
    engine.commit(Assign(1, [Interval(1, 10)] * 3))  # at 5, 10, 15
    assert to_assign(engine) is False
    reports = [(event.at_s, event.trial) for event in engine.timeline if isinstance(event, Reported)]
    assert reports == [(2.5, 0), (5.0, 1), (5.0, 0)]  # who began first
    assert (engine.now_s, engine.left) == (5.0, 2)


def test_a_clone_is_where_its_donor_is_and_has_what_follows_there():
    engine = begun(tree(), tree(1))
    engine.commit(Assign(0, [Interval(0, 10)]))
    to_assign(engine)
    engine.commit(Grow(0, "deepen 0"))
    engine.commit(Assign(0, [Interval(0, 10)]))
    to_assign(engine)
    engine.commit(Assign(0, [Interval(1, 10)]))
    assert engine.advance() == REVIEW
    hyper = dict(engine.hyper[0])
    with pytest.raises(IllegalPlan, match="use an evolution that does not explore"):
        engine.commit(Clone(1, 0, {**hyper, "lr": 0.1}, engine.changes[0]))
    engine.commit(Clone(1, 0, hyper, engine.changes[0]))
    assert engine.advance() == 2
    assert engine.changes == [("deepen 0",)] * 2
    assert engine.remaining(1) == 10  # it has trained 10 steps, and is at the second of three intervals
    engine.commit(Assign(0, engine.first(2)))
    to_assign(engine)
    assert engine.metric.tolist() == [0.6, 0.6]


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_any_sequence_of_decisions_gives_the_recorded_numbers(data):
    count = data.draw(st.integers(1, 3))
    engine = begun(*(tree(seed) for seed in range(count)), speeds=(2.0, 1.0))
    paths = [[] for _ in range(count)]
    while True:
        for slot in engine.idle:
            if not engine.waiting:
                break
            trial = data.draw(st.sampled_from(engine.waiting))
            change = data.draw(st.sampled_from(["nothing", *engine.changes_allowed(trial)]))
            if change != "nothing":
                engine.commit(Grow(trial, change))
            intervals = data.draw(st.integers(1, engine.remaining(trial) // 10))
            paths[trial] += [CHOICES.actions.index(change), *[2] * (intervals - 1)]
            engine.commit(Assign(slot, [Interval(trial, 10)] * intervals))
        if not to_assign(engine):
            break
    for trial in range(count):
        path = paths[trial][1:]  # the first interval is the root
        reports = [event for event in engine.timeline if isinstance(event, Reported) and event.trial == trial]
        for depth, event in enumerate(reports):
            node = tuple(path[:depth])
            speed = (2.0, 1.0)[event.slot]
            assert np.array_equal(event.metric, NODES[node].accuracy, equal_nan=True)
            assert event.ended_s == event.began_s + tree().seconds(node) / speed
        assert len(reports) == 3


def test_trees_that_cannot_be_walked_along_are_named():
    lost = {prefix: node for prefix, node in NODES.items() if prefix != (2, 1)}
    with pytest.raises(InputError, match=r"net on digits.*1 of 6 nodes are missing \(2-1\)"):
        TreeSet((tree(nodes=lost),))
    with pytest.raises(InputError, match="digits and letters: a population has one data set"):
        TreeSet((tree(), tree(data="letters")))
    unequal = {**NODES, (1, 2): NODES[1, 2]._replace(steps=35)}
    with pytest.raises(InputError, match="its intervals have 10, 15 steps"):
        TreeSet((tree(nodes=unequal),))
    timeless = tuple(replace(each, step_s=0.0) for each in STRUCTURES)
    with pytest.raises(InputError, match="the seconds of 6 of 6 nodes are not known"):
        TreeSet((tree(structures=timeless),))


def test_a_policy_without_growth_never_changes_a_network():
    found = TreeSet((tree(),))
    scene = PopulationScenario(found.hypers, Cluster.of_speeds([1.0]), found.terms())
    done = simulate_trials(scene, found.landscape(), PopulationPolicy(FifoAllocation()))
    assert [event.metric for event in done.timeline if isinstance(event, Reported)] == [0.1, 0.2, 0.4]
    assert done.makespan_s == 15.0


def simulated(*trees: GrowthTree, allocation=None, growth=None, **scenario):
    """Return the timeline of a population on one slot."""
    found = TreeSet(trees)
    scene = PopulationScenario(found.hypers, Cluster.of_speeds([1.0]), found.terms(), **scenario)
    policy = PopulationPolicy(allocation or FifoAllocation(), growth=growth)
    return simulate_trials(scene, found.landscape(), policy).timeline


@pytest.mark.parametrize(
    ("growth", "metrics"),
    [
        (None, [0.1, 0.2, 0.4]),
        (AtStart(), [0.1, 0.3, 0.6]),
        (AtStart(changes=0), [0.1, 0.2, 0.4]),
        (FixedSchedule((0,)), [0.1, 0.3, 0.6]),
        (FixedSchedule((1,)), [0.1, 0.2, math.nan]),
        (Stump(0.6), [0.1, 0.3, 0.6]),  # after a third of its steps, two thirds are left
        (Stump(0.7), [0.1, 0.2, 0.4]),
    ],
)
def test_a_growth_policy_is_asked_at_each_boundary(growth, metrics):
    found = [event.metric for event in simulated(tree(), growth=growth) if isinstance(event, Reported)]
    assert np.array_equal(found, metrics, equal_nan=True)


def test_a_stump_looks_at_the_deadline_if_there_is_one():
    """The first interval takes 5 s: 3 of 8 s are left then, which is less than half."""
    for deadline_s, metric in ((8.0, []), (12.5, [0.3])):
        found = simulated(tree(), growth=Stump(0.5), deadline_s=deadline_s)
        assert [event.metric for event in found if isinstance(event, Reported)] == [0.1, *metric]


def test_random_growth_is_drawn_with_the_seed_of_the_run():
    found = TreeSet(tuple(tree(seed) for seed in range(12)))
    scene = PopulationScenario(found.hypers, Cluster.of_speeds([1.0, 1.0]), found.terms())
    policy = PopulationPolicy(FifoAllocation(), growth=RandomGrowth())
    ends = [
        tuple(simulate_trials(scene, found.landscape(), policy, seed).state.changes) for seed in (0, 0, 1)
    ]
    assert ends[0] == ends[1] != ends[2]
    assert {(), ("deepen 0",)} == set(ends[0])


def test_promotion_by_hand():
    """A factor of 2: 1 beats 0 and is promoted; 3 is among the best two of four, and is promoted, too."""
    first = (0.1, 0.4, 0.2, 0.3)
    trees = [tree(seed, nodes={**NODES, (): NODES[()]._replace(accuracy=first[seed])}) for seed in range(4)]
    found = [
        event.trial for event in simulated(*trees, allocation=Promote(2.0)) if isinstance(event, Reported)
    ]
    assert found[:6] == [0, 1, 1, 2, 3, 3]
    assert sorted(found) == sorted([0, 1, 2, 3] * 3)  # nobody is stopped


def test_the_drivers_agree():
    """A compiled allocation, and the same one asked decision by decision."""
    found = TreeSet(tuple(tree(seed) for seed in range(5)))
    scene = PopulationScenario(found.hypers, Cluster.of_speeds([1.0, 3.0]), found.terms(), deadline_s=40.0)
    policy = PopulationPolicy(FifoAllocation())
    engine = engine_for(scene, found.landscape())
    while question := engine.advance():
        for decision in policy.answer(question, engine):
            engine.commit(decision)
    assert engine.timeline == simulate_trials(scene, found.landscape(), policy).timeline
