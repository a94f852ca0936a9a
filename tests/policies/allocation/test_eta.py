"""ETA: lists as long as the slowest slot needs for one trial."""

import pytest

from rota.core.cluster import Cluster
from rota.core.errors import Stuck
from rota.core.population.events import NodeFailed, Retire
from rota.core.population.view import Terms
from rota.policies.allocation.eta import Eta
from rota.policies.population import PopulationPolicy, RetireSlowest
from rota.simulator.landscapes import Equal
from rota.simulator.population import PopulationScenario, simulate_trials


@pytest.fixture
def measured(population, lists, done):
    """Twenty trials, and slots that have each done an interval of one of them: so many seconds per step."""

    def build(*step_s, trials=20):
        view = population(trials, [1.0] * len(step_s))
        found = lists(view, Eta())
        for slot, seconds in enumerate(step_s):
            done(view, slot, found[slot], seconds)
        return view

    return build


def lengths(found):
    return {slot: len(trials) for slot, trials in found.items()}


def test_slots_that_were_never_used_get_one_trial(population, lists):
    assert lists(population(9, [1.0, 5.0]), Eta()) == {1: [0], 0: [1]}


@pytest.mark.parametrize(
    ("rounding", "expected"),
    [
        ("round", {0: 4, 1: 1, 2: 2, 3: 1}),
        ("ceil", {0: 4, 1: 2, 2: 3, 3: 1}),
        ("floor", {0: 4, 1: 1, 2: 2, 3: 1}),
    ],
)
def test_who_is_k_times_as_fast_as_the_slowest_gets_k_trials(measured, lists, rounding, expected):
    """Four, 1.01 and 2.4 times as fast as the slowest."""
    view = measured(0.25, 1 / 1.01, 1 / 2.4, 1.0)
    assert lengths(lists(view, Eta(rounding))) == expected


def test_what_is_a_hair_more_than_a_whole_number_is_that_number(measured, lists):
    """3 × 0.1 is 0.30000000000000004, so it is not 3 times 0.1; nor is 0.3, which is less."""
    assert lengths(lists(measured(0.1, 3 * 0.1), Eta("ceil"))) == {0: 3, 1: 1}
    assert lengths(lists(measured(0.1, 0.3), Eta("floor"))) == {0: 3, 1: 1}


def test_the_original_rounds_up_and_so_a_slot_that_is_hardly_faster_takes_twice_as_long(measured, lists):
    view = measured(0.25, 1 / 1.01, 1 / 2.4, 1.0)
    view.freed = 4
    assert lengths(lists(view, Eta(original=True))) == {0: 4, 1: 2, 2: 3, 3: 1}


def test_no_list_is_longer_than_the_queue(measured, lists):
    assert lengths(lists(measured(0.01, 1.0, trials=5), Eta())) == {0: 5}


def test_all_idle_slots_are_served_not_one_for_each_report(measured, lists):
    """One slot has just become idle and three were so before; the original serves one of the four."""
    view = measured(1.0, 1.0, 1.0, 1.0)
    view.freed = 1
    assert lengths(lists(view, Eta(original=True))) == {0: 1}
    assert lengths(lists(view, Eta())) == {1: 1, 2: 1, 3: 1}


@pytest.fixture(params=["retired", "lost"])
def without_the_slowest(request, measured):
    """Slots of 0.5 and 1 s per step; one of 5 s is gone."""
    view = measured(0.5, 1.0, 5.0)
    if request.param == "lost":
        view.apply([NodeFailed(0.0, 2)])
    else:
        view.request([Retire(2)])
    return view


def test_slots_that_are_gone_do_not_make_lists_long(without_the_slowest, lists):
    """Twice as fast as the slowest that is left."""
    assert lengths(lists(without_the_slowest, Eta())) == {0: 2, 1: 1}


def test_the_original_goes_on_to_compare_with_slots_that_are_gone(without_the_slowest, lists):
    without_the_slowest.freed = 2
    assert lengths(lists(without_the_slowest, Eta(original=True))) == {0: 10, 1: 5}


def test_times_are_smoothed(measured, lists, done):
    """The first slot had 1 s, then 5 s once: 1 + 0.5 × 4 = 3, so the other gets three trials, not five."""
    view = measured(1.0, 1.0)
    found = lists(view, Eta())
    assert lengths(found) == {0: 1, 1: 1}
    done(view, 0, found[0], 5.0)
    done(view, 1, found[1], 1.0)
    assert lengths(lists(view, Eta())) == {1: 3, 0: 1}


def test_the_original_goes_by_the_last_list_alone(measured, lists, done):
    view = measured(1.0, 1.0)
    found = lists(view, Eta())
    done(view, 0, found[0], 5.0)
    done(view, 1, found[1], 1.0)
    view.freed = 2
    assert lengths(lists(view, Eta(original=True))) == {0: 1, 1: 5}


def test_slots_without_a_share_do_not_stop_a_run():
    """Three trials, four slots: the first has no share, and the original's round ends with it."""
    scene = PopulationScenario(({},) * 3, Cluster.of_speeds([1.0, 2.0, 2.0, 4.0]))
    with pytest.raises(Stuck, match="3 trials are not done and 4 slots are idle"):
        simulate_trials(scene, Equal(0.01), PopulationPolicy(Eta(original=True)))
    assert simulate_trials(scene, Equal(0.01), PopulationPolicy(Eta())).state.left == 0


def test_a_report_of_a_slot_that_is_given_up_starts_a_list_elsewhere():
    """Three trials of two intervals. The slow slot is given up, reports at 50 s, and its trial goes on."""
    policy = PopulationPolicy(Eta(original=True), retirement=RetireSlowest(1, original=True))
    done = simulate_trials(
        PopulationScenario(({},) * 3, Cluster.of_speeds([10.0, 1.0]), Terms(50, 100)), Equal(1.0), policy
    )
    assert (done.state.left, done.makespan_s) == (0, pytest.approx(55.0))


def test_spa_leaves_slots_without_a_share_out(population, lists):
    """The shares are 0, 1, 0 and 2."""
    view = population(3, [1.0, 2.0, 2.0, 4.0])
    assert lists(view, Eta(split="spa", original=True)) == {1: [0], 3: [1]}
