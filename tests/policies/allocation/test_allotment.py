"""How trials are shared out by scores."""

import pytest

from rota.core.cluster import Cluster, Slot
from rota.policies.allocation.allotment import gpa, original_shares, shares, spa


@pytest.mark.parametrize(
    ("trials", "scores", "by_spa", "by_gpa"),
    [
        (50, [10, 20, 3, 67], [5, 10, 1, 34], [6, 10, 2, 32]),
        (50, [1, 1, 0, 200], [0, 0, 0, 50], [1, 1, 1, 47]),
        (50, [0, 0, 0], [17, 17, 16], [16, 17, 17]),
        (3, [5, 7, 7, 9], [0, 1, 1, 1], [0, 1, 1, 1]),
    ],
)
def test_the_splits_of_the_originals(trials, scores, by_spa, by_gpa):
    assert spa(scores, trials) == by_spa
    assert gpa(scores, trials) == by_gpa
    assert gpa(scores, trials, least=1.0) == by_gpa


def test_by_default_speeds_below_one_are_told_apart():
    """Six to divide after one each: 4.5 and 1.5 by their speeds, or 3 and 3 if both count as 1."""
    assert gpa([0.6, 0.2], 8) == [5, 3]
    assert gpa([0.6, 0.2], 8, least=1.0) == [4, 4]


@pytest.mark.parametrize("divide", [spa, gpa])
def test_no_trial_is_lost_and_none_is_made_up(divide):
    for trials in range(1, 40):
        for scores in ([1.0], [0.33] * 7, [8, 1, 1, 0.05], [3, 0, 2, 1, 9, 9]):
            found = divide(scores, trials)
            assert sum(found) == trials
            assert min(found) >= 0


def test_everyone_gets_one_in_gpa_if_there_are_enough():
    assert min(gpa([1000, 1, 1, 1], 4)) == 1
    assert min(gpa([1000, 1, 1, 1], 9)) == 1


def test_a_node_shares_its_trials_among_its_slots(population):
    """The original gives each of the two slots of the first node what the node should have in all."""
    cluster = Cluster.of_slots((Slot(0, 2.0), Slot(0, 2.0), Slot(1, 2.0)))
    view = population(12, cluster)
    assert shares(view, "gpa") == [4, 4, 4]
    assert original_shares(view, "gpa") == [6, 6, 6]


def test_what_is_not_there_gets_nothing(population):
    view = population(12, [1.0, 1.0, 1.0])
    view.up[1] = False
    view.retired[2] = True
    assert shares(view, "gpa") == shares(view, "spa") == [12, 0, 0]
    assert original_shares(view, "gpa") == [4, 4, 4]


def test_devices_of_a_node_are_apart_in_the_original_and_processors_come_first(population):
    """Of 2 trials for three entries of equal score, the first two entries get one: both processors."""
    cluster = Cluster.of_slots((Slot(0), Slot(0, device="gpu"), Slot(1)))
    assert original_shares(population(2, cluster), "gpa") == [1, 0, 1]
