"""What growing gains in growth trees, against numbers worked out by hand."""

import math
from dataclasses import replace

import pytest

from rota.recordings.gains import first_change, gains, rows, seed_deviation
from rota.recordings.growth import GrowthChoices, GrowthNode, GrowthTree

CHOICES = GrowthChoices(2, ("deepen 0", "nothing"), 2)
ENDS = {(0, 0): 0.5, (0, 1): 0.75, (1, 0): math.nan, (1, 1): 0.25}


@pytest.fixture
def tree(origin):
    """Growing at once is best; growing twice gains half of that; growing late fails."""
    nodes = {prefix: GrowthNode(10 * len(prefix), -1, 1.0, 0.125) for prefix in [(), (0,), (1,)]}
    nodes |= {prefix: GrowthNode(20, -1, 1.0, accuracy) for prefix, accuracy in ENDS.items()}
    return GrowthTree("net", "digits", 0, {"lr": 0.1}, CHOICES, nodes, (), origin)


def other(tree, never, **changes):
    nodes = {**tree.nodes, (1, 1): GrowthNode(20, -1, 1.0, never)}
    return replace(tree, nodes=nodes, **changes)


def test_when_a_path_first_changes():
    assert [first_change(CHOICES, path) for path in ENDS] == [0, 0, 1, None]


def test_gains_are_over_the_same_training_without_growth(tree):
    found = {(gain.changes, gain.first): gain.gains.tolist() for gain in gains([tree, other(tree, 0.5)])}
    assert found == {(1, 0): [0.5, 0.25], (1, 1): [-0.25, -0.5], (2, 0): [0.25, 0.0]}


def test_the_deviation_between_seeds_is_that_of_equal_settings(tree):
    assert math.isnan(seed_deviation([tree, other(tree, 0.5, hyper={"lr": 0.2})]))
    same = [tree, other(tree, 0.5, seed=1), other(tree, 0.0, hyper={"lr": 0.2})]
    assert seed_deviation(same) == pytest.approx(0.25 / math.sqrt(2))


def test_a_row_per_network_of_complete_trees(tree):
    partial = replace(tree, nodes={(): tree.nodes[()]}, model="begun")
    found = rows([tree, other(tree, 0.75, seed=1), partial])
    assert len(found) == 2
    row = dict(zip(*found, strict=True))
    assert row == {
        "model": "net",
        "data": "digits",
        "trees": "2",
        "nodes": "7",
        "settings": "1",
        "seeds": "2",
        "steps": "20",
        "never": "50.0%",  # 0.25 and 0.75
        "best": "75.0%",
        "rank of never": "2.0/4",  # 3 and 1
        "another seed": "±35.4%",
        "failed": "2",
    }
