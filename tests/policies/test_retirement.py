"""Giving slots up late in a run."""

from dataclasses import replace

import numpy as np
import pytest

from rota.core.cluster import Cluster, NodeChange
from rota.core.errors import ConfigError
from rota.core.population.costs import AssignmentCosts
from rota.core.population.engine import PopulationEngine
from rota.core.population.events import Assign, Assigned, Idled, Joined, Reported, Retire, Retired
from rota.core.population.view import Terms, TrialStatus
from rota.policies.allocation.era import Era
from rota.policies.allocation.fifo import FifoAllocation
from rota.policies.allocation.finish import Finish
from rota.policies.allocation.hrfs import Hrfs
from rota.policies.population import PopulationPolicy, RetireSlowest, finish_s
from rota.simulator.landscapes import Equal
from rota.simulator.noise import TimingNoise
from rota.simulator.population import PopulationScenario, simulate_trials

SCORES = [40.0, 20.0, 10.0, 10.0, 2.0, 1.0]


def population(trials, speeds, steps=0):
    """Trials that have had so many steps of 1,000, on idle slots; a step takes 1 s on a slot of speed 1."""
    state = PopulationEngine([{}] * trials, Cluster.of_speeds(speeds), Terms(), AssignmentCosts(), Equal(1.0))
    state.apply([Joined(0.0, node) for node in range(len(speeds))])
    state.steps[:] = state.leader = steps
    return state


@pytest.mark.parametrize(
    ("most", "candidates"), [(2, [4, 5]), (3, [2, 4, 5]), (5, [1, 2, 3, 4, 5]), (6, []), (9, []), (0, [])]
)
def test_candidates_of_the_original(most, candidates):
    """The shares are 22, 12, 6, 6, 2, 2; as many as there are slots, or more, means none."""
    view = population(50, SCORES, 800)
    assert RetireSlowest(most, original=True).retire(view) == candidates


def test_the_original_waits_for_the_leading_trial_only():
    view = population(50, SCORES, 0)
    rule = RetireSlowest(2, original=True)
    view.leader = 799
    assert rule.retire(view) == []
    view.leader = 800
    assert rule.retire(view) == [4, 5]
    view.request([Retire(4)])
    assert rule.retire(view) == [5]


def test_ours_waits_for_the_mean_of_those_that_are_not_done():
    """One interval each to go for 2 of 3 trials; the third is far behind, then done."""
    view = population(3, [10.0, 1.0], 950)
    view.steps[0] = 100
    assert RetireSlowest().retire(view) == []
    view.status[0] = TrialStatus.FINISHED
    assert RetireSlowest().retire(view) == [1]


def test_a_slot_goes_only_if_the_others_are_not_done_later_without_it():
    """Four trials with 4 intervals of 50 s each to go. Alone the first needs 800 s, with the second 400 s."""
    assert finish_s(population(4, [1.0, 1.0], 800), {0}) == pytest.approx(800)
    assert finish_s(population(4, [1.0, 1.0], 800), {0, 1}) == pytest.approx(400)
    assert RetireSlowest().retire(population(4, [1.0, 1.0], 800)) == []
    assert RetireSlowest(1, original=True).retire(population(4, [1.0, 1.0], 800)) == [0]


def test_a_slot_goes_that_would_do_its_first_interval_when_the_others_have_done_all():
    """16 intervals of 5 s are 80 s; one on the slow slot takes 100 s."""
    assert RetireSlowest().retire(population(4, [10.0, 0.5], 800)) == [1]


def test_slots_are_ranked_by_what_was_measured_not_by_what_was_said():
    view = population(4, [10.0, 0.5], 800)
    for _ in range(9):
        view.step_times.observe(1, 0, 0.1)
        view.step_times.observe(0, 0, 2.0)
    assert RetireSlowest().retire(view) == [0]


def test_one_slot_always_stays_and_too_large_a_number_does_not_mean_none():
    view = population(1, [10.0, 0.1, 0.1], 950)
    assert sorted(RetireSlowest(9).retire(view)) == [1, 2]
    assert RetireSlowest(1).retire(view) == [1]
    assert RetireSlowest(9).retire(population(1, [1.0], 950)) == []


def test_no_more_go_than_may_in_all():
    view = population(1, [10.0, 0.1, 0.1, 0.1], 950)
    view.request([Retire(1)])
    assert len(RetireSlowest(2).retire(view)) == 1


def test_a_slot_that_was_given_up_gets_nothing_any_more_and_a_busy_one_does_its_list_first():
    view = population(3, [1.0, 1.0], 800)
    view.request([Assign(0, view.first(1))])
    view.request([Retire(0), Retire(1)])
    assert view.idle == []
    view.apply([Reported(60.0, 0, 0, 50, 0.0, 50.0, 0.0, 0.5), Idled(60.0, 0)])
    assert view.idle == []
    assert view.steps[0] == 850


def scenes():
    rng = np.random.default_rng(7)
    for seed in range(20):
        slots = int(rng.integers(3, 12))
        speeds = [float(speed) for speed in np.exp(rng.uniform(-2.0, 2.0, slots))]
        yield PopulationScenario(
            ({},) * int(rng.integers(slots, 30)),
            Cluster.of_speeds(speeds),
            noise=TimingNoise(noise=0.05, seed=seed),
        )


def test_nothing_is_assigned_to_a_slot_after_it_retired():
    gone = 0
    for scene in scenes():
        timeline = simulate_trials(
            scene, Equal(0.02), PopulationPolicy(FifoAllocation(), retirement=RetireSlowest())
        ).timeline
        retired = {event.slot: event.at_s for event in timeline if isinstance(event, Retired)}
        late = [e for e in timeline if isinstance(e, Assigned) and e.at_s > retired.get(e.slot, np.inf)]
        assert late == []
        gone += len(retired)
    assert gone > 20


@pytest.mark.parametrize("allocation", [FifoAllocation(), Era(fastest_first=False)], ids=["fifo", "era"])
def test_it_helps_where_slow_slots_would_hold_the_last_trials_and_hardly_ever_hurts(allocation):
    ratios = []
    for scene in scenes():
        without = simulate_trials(scene, Equal(0.02), PopulationPolicy(allocation))
        ours = simulate_trials(scene, Equal(0.02), PopulationPolicy(allocation, retirement=RetireSlowest()))
        ratios.append(ours.makespan_s / without.makespan_s)
    assert np.mean(ratios) < 0.97
    assert max(ratios) < 1.06


def test_the_original_may_hurt_much():
    """It gives eight of nine equal slots up when a fifth of the work is still to be done."""
    scene = PopulationScenario(({},) * 18, Cluster.of_speeds([1.0] * 9))
    without = simulate_trials(scene, Equal(0.02), PopulationPolicy(Era())).makespan_s
    original = RetireSlowest(8, original=True)
    assert (
        simulate_trials(scene, Equal(0.02), PopulationPolicy(Era(), retirement=original)).makespan_s
        > 1.5 * without
    )
    ours = simulate_trials(
        scene, Equal(0.02), PopulationPolicy(Era(), retirement=replace(original, original=False))
    )
    assert ours.makespan_s <= 1.01 * without


def test_options_out_of_range_are_refused():
    with pytest.raises(ConfigError, match=r"most is -1, late 0\.8; give 0 or more, and 0 to 1"):
        RetireSlowest(-1)


def test_slots_that_were_given_up_come_back_if_nobody_else_is_left():
    """Three slots; the fast one fails after the others were given up. Without them nobody could go on."""
    cluster = replace(Cluster.of_speeds([8.0, 0.3, 0.3]), changes=(NodeChange(7.0, 0, joins=False),))
    for allocation in (Hrfs(), Finish(), FifoAllocation()):
        scene = PopulationScenario(({},) * 4, cluster, Terms(interval=50, steps=1000))
        done = simulate_trials(
            scene, Equal(0.02), PopulationPolicy(allocation, retirement=RetireSlowest(late=0.5))
        )
        assert (done.state.status == TrialStatus.FINISHED).all()


def test_slots_that_were_given_up_come_back_with_their_node_if_nobody_else_is_left():
    """The slow slot is given up, and its node leaves; then the other one does, and the first is back."""
    changes = (
        NodeChange(7.0, 1, joins=False),
        NodeChange(8.0, 0, joins=False),
        NodeChange(9.0, 1, joins=True),
    )
    scene = PopulationScenario(
        ({},) * 4, replace(Cluster.of_speeds([8.0, 0.3]), changes=changes), Terms(interval=50, steps=1000)
    )
    done = simulate_trials(
        scene, Equal(0.02), PopulationPolicy(FifoAllocation(), retirement=RetireSlowest(late=0.5))
    )
    assert [event.slot for event in done.timeline if isinstance(event, Retired)] == [1]
    assert (done.state.status == TrialStatus.FINISHED).all()
