"""Invariants of every simulation: any population, slots and lists, whatever happens to the nodes."""

import re
from collections import defaultdict
from dataclasses import dataclass, replace
from itertools import pairwise
from random import Random

import numpy as np
import pytest
from hypothesis import event, example, given, settings
from hypothesis import strategies as st

from rota.core.cluster import Cluster, NodeChange, Slot, Slowdown
from rota.core.errors import Stuck
from rota.core.population.costs import AssignmentCosts
from rota.core.population.events import Assign, Clone, Continue, Interval, Reported, Stop, TrialFinished
from rota.core.population.stepping import ASSIGN
from rota.core.population.view import Terms, TrialStatus
from rota.policies.allocation.fifo import FifoAllocation
from rota.policies.population import PopulationPolicy
from rota.simulator.bounds import lower_bound_s
from rota.simulator.landscapes import Equal
from rota.simulator.noise import TimingNoise
from rota.simulator.population import PopulationScenario, engine_for, simulate_trials

# policies that do anything that is allowed


@dataclass
class AnyLists:
    """Random trials in random order, some several times, for any number of steps; slots may be left idle."""

    random: Random
    lazy: float = 0.0
    longest: int = 4

    def hand_out(self, view):
        for slot in self.random.sample(view.idle, len(view.idle)):
            if view.waiting and self.random.random() >= self.lazy:
                yield Assign(slot, self.parts(view))

    def parts(self, view):
        count = self.random.randint(1, min(self.longest, len(view.waiting)))
        parts = [part for trial in self.random.sample(view.waiting, count) for part in self.some(view, trial)]
        self.random.shuffle(parts)
        return parts

    def some(self, view, trial):
        left = view.remaining(trial)
        for _ in range(self.random.randint(1, 3)):
            if left:
                steps = self.random.randint(1, left)
                left -= steps
                yield Interval(trial, steps)


@dataclass
class AnyInterval(AnyLists):
    """One interval of one trial at a time, but any trial on any slot."""

    def parts(self, view):
        return [view.part(self.random.choice(view.waiting))]


@dataclass
class AnyVerdict:
    """Trials go on, are cloned with other hyper-parameters, or are stopped."""

    random: Random

    def decide(self, view, trial):
        donors = np.flatnonzero(view.checkpoint_node >= 0).tolist()
        dice = self.random.random()
        if dice < 0.05:
            return Stop(trial)
        if dice < 0.3:
            hyper = {
                "step_s": self.random.choice([0.5, 1.0, 2.0]),
                "size_mb": 8.0,
                "gain": self.random.random(),
            }
            return Clone(trial, self.random.choice(donors), hyper, ("widen 1",))
        return Continue(trial, reviewed=dice < 0.6)


@dataclass
class AnyRetirement:
    """A slot is given up every now and then."""

    random: Random
    share: float

    def retire(self, view):
        slots = np.flatnonzero(~view.retired).tolist()
        return [self.random.choice(slots)] if slots and self.random.random() < self.share else []


# any scene


SPEEDS = st.sampled_from([0.05, 0.33, 1.0, 1.3, 2.0, 8.0])
TIMES = st.one_of(st.sampled_from([0.0, 5.0, 10.0, 20.0, 40.0]), st.floats(0.0, 300.0))


@st.composite
def clusters(draw):
    """Up to six slots on up to four nodes that slow down, fail and join, often at the same time."""
    nodes = draw(st.integers(1, 4))
    node = st.integers(0, nodes - 1)
    slots = [Slot(n, draw(SPEEDS)) for n in [*range(nodes), *draw(st.lists(node, max_size=2))]]
    changes = draw(st.lists(st.builds(NodeChange, TIMES, node, st.booleans()), max_size=6))
    slow = st.builds(Slowdown, TIMES, node, st.sampled_from([0.5, 1.0, 3.0, 10.0]))
    switches = draw(st.lists(st.integers(0, 1), min_size=nodes, max_size=nodes))
    slowdowns = draw(st.lists(slow, max_size=4))
    return Cluster.of_slots(tuple(slots), (), tuple(switches), tuple(changes), tuple(slowdowns))


@st.composite
def scenes(draw):
    hyper = st.fixed_dictionaries(
        {
            "step_s": st.sampled_from([0.5, 1.0, 3.0]),
            "size_mb": st.sampled_from([0.0, 20.0]),
            "gain": st.sampled_from([0.0, 0.01, 0.1]),
        }
    )
    return PopulationScenario(
        hypers=tuple(draw(st.lists(hyper, min_size=1, max_size=8))),
        cluster=draw(clusters()),
        terms=Terms(10, draw(st.integers(1, 45)), draw(st.sampled_from([1.0, 1e9])), draw(st.booleans())),
        costs=AssignmentCosts(
            *draw(st.sampled_from([(0.0, 0.0), (2.5, 0.0), (1.0, 0.5, 10.0), (0.0, 1.0, 10.0, 2.0)]))
        ),
        noise=TimingNoise(*draw(st.sampled_from([(0.0, 0.0), (0.1, 0.0), (0.3, 0.1)]))),
        report_each=draw(st.booleans()),
    )


def check(state):
    """What must be so between any two instants."""
    trials = range(len(state.status))
    assert sorted(state.waiting) == [trial for trial in trials if state.status[trial] == TrialStatus.WAITING]
    assert state.left == int((state.status < TrialStatus.FINISHED).sum())
    for trial in trials:
        assert (state.assigned[trial] > 0) == (state.status[trial] == TrialStatus.ASSIGNED)
        assert 0 <= state.steps[trial] + state.assigned[trial] <= state.terms.steps
    if state.terms.least_advanced_first:
        assert all(state.steps[first] <= state.steps[then] for first, then in pairwise(state.waiting))
    assert len(set(state.idle)) == len(state.idle)
    assert all(state.up[slot] and not state.retired[slot] for slot in state.idle)
    assert state.to_review == []


def drive_checked(policy, engine):
    """What is wrong if it got stuck, else nothing."""
    try:
        while question := engine.advance():
            for decision in policy.answer(question, engine):
                engine.commit(decision)
            if question == ASSIGN:
                check(engine)
    except Stuck as error:
        return str(error)
    return ""


@settings(max_examples=300)
@given(
    scene=scenes(),
    seed=st.integers(0, 2**32),
    lazy=st.sampled_from([0.0, 0.3]),
    retiring=st.sampled_from([0.0, 0.02]),
)
def test_whatever_happens_a_simulation_ends_or_says_why_it_cannot(
    telling, referee, scene, seed, lazy, retiring
):
    random, landscape = Random(seed), telling()
    policy = PopulationPolicy(AnyLists(random, lazy), AnyVerdict(random), AnyRetirement(random, retiring))
    state = engine_for(scene, landscape)
    complaint = drive_checked(policy, state)
    watching = referee(scene)
    watching.watch(state.timeline)
    left, idle = len(scene.hypers) - len(watching.done), int(state.usable.sum())
    if complaint:
        event("stuck")
        said = re.search(r"nothing runs .* but (\d+) trials are not done and (\d+) slots are idle", complaint)
        assert said, f"an error that does not say why: {complaint}"
        assert tuple(map(int, said.groups())) == (left, idle)
        assert not watching.busy, "something runs"
        assert idle == 0 or lazy, "a slot was left idle for no reason"
    assert bool(left) == bool(complaint)


# who is done


@settings(max_examples=60)
@given(cluster=clusters(), trials=st.integers(1, 8), steps=st.integers(1, 45), seed=st.integers(0, 2**32))
def test_a_finished_trial_has_reported_its_budget_to_the_step(referee, cluster, trials, steps, seed):
    there = replace(cluster, changes=())
    scene = PopulationScenario(
        ({},) * trials, there, Terms(10, steps), AssignmentCosts(1.0), TimingNoise(0.2)
    )
    done = simulate_trials(scene, Equal(), PopulationPolicy(AnyLists(Random(seed))))
    watching = referee(scene)
    watching.watch(done.timeline)
    assert watching.steps == dict.fromkeys(range(trials), steps)
    assert [type(end) for end in watching.done.values()] == [TrialFinished] * trials
    assert done.makespan_s == max(end.at_s for end in watching.done.values())


# how long it takes


SPEED_LISTS = st.lists(SPEEDS, min_size=1, max_size=9)


@settings(max_examples=60)
@given(speeds=SPEED_LISTS, trials=st.integers(1, 25), steps=st.integers(1, 60), seed=st.integers(0, 2**32))
@example(speeds=[8.0, 0.05], trials=1, steps=1, seed=0)
def test_without_noise_and_costs_nothing_beats_the_lower_bound(speeds, trials, steps, seed):
    scene = PopulationScenario(({},) * trials, Cluster.of_speeds(speeds), Terms(10, steps))
    bound_s = lower_bound_s(trials, steps * 0.02, speeds)
    for allocation in (FifoAllocation(), AnyLists(Random(seed)), AnyInterval(Random(seed))):
        done = simulate_trials(scene, Equal(0.02), PopulationPolicy(allocation))
        assert done.makespan_s >= bound_s * (1 - 1e-9)
        # Somebody always trains, so it takes no longer than all the work on the slowest slot.
        assert done.makespan_s <= trials * steps * 0.02 / min(speeds) * (1 + 1e-9)


def test_equal_slots_that_each_get_as_many_trials_reach_the_lower_bound():
    scene = PopulationScenario(({},) * 8, Cluster.of_speeds([2.0] * 4), Terms(10, 30))
    # Two trials of 30 s on each slot of speed 2.
    assert (
        simulate_trials(scene, Equal(), PopulationPolicy(FifoAllocation())).makespan_s
        == lower_bound_s(8, 30.0, [2.0] * 4)
        == 30.0
    )


@settings(max_examples=30)
@given(scene=scenes(), seed=st.integers(0, 2**32))
def test_on_slots_that_are_all_twice_as_fast_everything_takes_half_the_time(scene, seed):
    cluster = replace(scene.cluster, changes=(), slowdowns=())
    faster = replace(
        cluster, each_slot=tuple(replace(slot, speed=2 * slot.speed) for slot in cluster.all_slots)
    )
    runs = []
    for slots in (cluster, faster):
        alike = replace(scene, cluster=slots, hypers=({},) * len(scene.hypers), costs=AssignmentCosts())
        runs.append(simulate_trials(alike, Equal(), PopulationPolicy(AnyLists(Random(seed)))).timeline)
    # To the last bit, for halves are exact.
    assert [(type(one), one.at_s) for one in runs[0]] == [(type(other), 2 * other.at_s) for other in runs[1]]


# the same again


@settings(max_examples=30)
@given(scene=scenes(), seed=st.integers(0, 2**32))
def test_the_same_seeds_give_the_same_timeline(telling, scene, seed):
    there = replace(scene, cluster=replace(scene.cluster, changes=()))
    runs = [
        simulate_trials(
            there, telling(), PopulationPolicy(AnyLists(Random(seed)), AnyVerdict(Random(seed))), seed
        ).timeline
        for _ in range(2)
    ]
    assert list(map(repr, runs[0])) == list(map(repr, runs[1]))


def factors(timeline, speeds, step_s):
    """Trial → by how much each of its parts was off, in their order."""
    found = defaultdict(list)
    for report in timeline:
        if isinstance(report, Reported):
            training_s = report.ended_s - report.began_s - report.moved_s
            found[report.trial].append(training_s * speeds[report.slot] / (report.steps * step_s))
    return found


@settings(max_examples=30)
@given(speeds=SPEED_LISTS, trials=st.integers(1, 10), seed=st.integers(0, 2**32))
def test_a_trial_has_the_same_luck_under_every_allocation(speeds, trials, seed):
    scene = PopulationScenario(
        ({},) * trials,
        Cluster.of_speeds(speeds),
        Terms(10, 50),
        AssignmentCosts(3.0),
        TimingNoise(0.2, seed=seed),
    )
    first, second = (
        factors(simulate_trials(scene, Equal(0.5), PopulationPolicy(allocation)).timeline, speeds, 0.5)
        for allocation in (FifoAllocation(), AnyInterval(Random(seed)))
    )
    for trial in range(trials):
        assert first[trial] == pytest.approx(second[trial], rel=1e-6)
        assert len(first[trial]) == 5


def test_lists_of_one_part_report_alike_at_once_and_at_their_end():
    scene = PopulationScenario(
        ({},) * 5,
        Cluster.of_speeds([1.0, 2.0, 0.33]),
        Terms(10, 35),
        AssignmentCosts(1.0),
        TimingNoise(0.1),
    )
    runs = [
        simulate_trials(
            replace(scene, report_each=each), Equal(), PopulationPolicy(FifoAllocation())
        ).timeline
        for each in (True, False)
    ]
    assert list(map(repr, runs[0])) == list(map(repr, runs[1]))


def test_a_simulation_says_how_often_trials_were_placed_and_how_long_that_took():
    done = simulate_trials(
        PopulationScenario(({},) * 3, Cluster.of_speeds([1.0]), Terms(10, 25)),
        Equal(),
        PopulationPolicy(FifoAllocation()),
    )
    # Intervals of 10, 10 and 5 steps for each of three trials.
    assert (done.decisions, done.makespan_s, done.state.left) == (9, 75.0, 0)
    assert done.wall_s > 0.0


def test_a_landscape_begins_anew_with_every_simulation(telling):
    landscape = telling()
    scene = PopulationScenario(({"gain": 1.0},), Cluster.of_speeds([1.0]), Terms(10, 20))
    runs = [simulate_trials(scene, landscape, PopulationPolicy(FifoAllocation())) for _ in range(2)]
    assert [run.state.metric[0] for run in runs] == [20.0, 20.0]
