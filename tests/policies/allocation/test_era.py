"""ERA: lists that become shorter."""

from dataclasses import replace

import pytest

from rota.core.cluster import Cluster, NodeChange, Slot
from rota.core.errors import ConfigError, Stuck
from rota.policies.allocation.era import Era
from rota.policies.population import PopulationPolicy
from rota.simulator.landscapes import Equal
from rota.simulator.population import PopulationScenario, simulate_trials


def assigned(population, lists, share, leader):
    """How long the list of a slot is that should have `share` trials, when the leading one is so far."""
    view = population(share, [1.0])
    view.leader = leader
    return len(lists(view, Era())[0])


@pytest.mark.parametrize(
    ("share", "lengths"),
    [
        (10, [10, 9, 9, 8, 7, 6, 6, 5, 5, 4, 4]),
        (5, [5, 5, 5, 4, 4, 3, 3, 3, 3, 2, 2]),
        (3, [3, 3, 3, 3, 2, 2, 2, 2, 2, 2, 2]),
        (25, [25, 23, 21, 19, 17, 15, 14, 12, 11, 10, 9]),
    ],
)
def test_lists_become_shorter_stage_by_stage(population, lists, share, lengths):
    assert [assigned(population, lists, share, 100 * stage) for stage in range(11)] == lengths
    assert [assigned(population, lists, share, 100 * stage + 99) for stage in range(10)] == lengths[:10]


def test_a_whole_number_is_not_rounded_up(population, lists):
    """300 × 0.9² is 243, and 243.00000000000003 in binary."""
    assert assigned(population, lists, 300, 200) == 243


def test_a_slot_gets_at_least_one_and_at_most_what_waits(population, lists):
    assert lists(population(1, [1.0, 1.0]), Era()) == {0: [0]}
    view = population(6, [1.0, 1.0])
    view.leader = 100_000
    assert lists(view, Era()) == {0: [0], 1: [1]}


def test_trials_come_from_the_head_of_the_queue_in_its_order(population, lists):
    """One each, then 4 more in proportion 3 : 1."""
    assert lists(population(6, [3.0, 1.0]), Era()) == {0: [0, 1, 2, 3], 1: [4, 5]}


@pytest.mark.parametrize(
    ("trials", "interval", "leader", "original", "ours"),
    [
        (50, 50, 0, 0, 0),
        (50, 50, 50, 0, 0),
        (50, 50, 450, 4, 4),
        (50, 50, 1000, 10, 10),
        (20, 50, 50, 6, 0),  # 380 intervals left, of 1,000 steps
        (100, 50, 500, 0, 5),  # 1,000 left
        (50, 25, 500, 0, 5),
    ],
)
def test_the_stage_does_not_depend_on_the_population_or_the_interval(
    population, trials, interval, leader, original, ours
):
    """The original's stage fits populations of 50 trials with intervals of 50 steps only."""
    view = population(trials, [1.0], interval=interval)
    view.leader = leader
    assert Era(original=True).reached(view) == original
    assert Era().reached(view) == ours


def test_the_slots_of_a_node_do_not_take_everything(population, lists):
    """Two slots on the first node and one on the second: in the original the third is left with nothing."""
    cluster = Cluster.of_slots((Slot(0, 10.0), Slot(0, 10.0), Slot(1, 10.0)))
    assert lists(population(20, cluster), Era(original=True)) == {0: [*range(10)], 1: [*range(10, 20)]}
    ours = lists(population(20, cluster), Era())
    assert [len(ours[slot]) for slot in range(3)] == [6, 7, 7]


def test_slots_without_a_share_do_not_stop_a_run():
    """Three trials for four slots; then the three with shares are lost. In the original nobody is left."""
    lost = tuple(NodeChange(0.5, node, joins=False) for node in (1, 2, 3))
    scene = PopulationScenario(({},) * 3, replace(Cluster.of_speeds([1.0, 2.0, 2.0, 4.0]), changes=lost))
    with pytest.raises(Stuck, match="3 trials are not done and 1 slots are idle"):
        simulate_trials(scene, Equal(0.01), PopulationPolicy(Era(original=True)))
    assert simulate_trials(scene, Equal(0.01), PopulationPolicy(Era())).state.left == 0


def test_the_fastest_idle_slot_is_served_first(population, lists):
    """Else a slow one may take the last trials though a fast one is idle."""
    assert lists(population(4, [1.0, 2.0]), Era()) == {1: [0, 1], 0: [2, 3]}
    assert lists(population(4, [1.0, 2.0]), Era(fastest_first=False)) == {0: [0, 1], 1: [2, 3]}


def test_options_out_of_range_are_refused():
    with pytest.raises(ConfigError, match=r"stage is 0, slope 0\.9; give"):
        Era(stage=0)
    with pytest.raises(ConfigError, match=r"slope 1\.5"):
        Era(slope=1.5)
