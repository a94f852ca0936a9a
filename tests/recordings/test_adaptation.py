"""Tables of adaptation become trees."""

import math

import pytest

from rota.core.errors import TraceError
from rota.recordings.adaptation import read_adaptation
from rota.recordings.tree import read_tree, write_tree

TABLE = """\
scenario,action_1,action_2,left_1_s,left_2_s,total_s,accuracy
early_middle,0,0,30,20,40,0.5
early_middle,0,1,32,22,40,0.25
early_middle,1,0,31,18,40,0.75
late,0,0,10,5,40,0.125
"""


@pytest.fixture
def table(tmp_path):
    """Gives a function that writes the table, with something in it replaced, and reads it."""

    def read(old="", new="", origin=None):
        path = tmp_path / "table.csv"
        path.write_text(TABLE.replace(old, new, 1) if old else TABLE)
        return read_adaptation(path, "ConvNet2", "cifar10", origin)

    return read


def test_a_tree_per_scenario_with_the_mean_of_times_inside_a_prefix(table, origin):
    tree, late = table(origin=origin)
    assert (tree.model, tree.data, tree.scenario, tree.seed) == ("ConvNet2", "cifar10", "early-middle", 0)
    assert (tree.budget_s, tree.start_s, tree.decisions) == (40.0, 9.0, 2)
    assert tree.actions == ("deepen 0", "nothing")
    assert tree.left_s((0, 1)) == (31.0, 21.0)  # (30 + 32 + 31) / 3, (20 + 22) / 2
    assert tree.left_s((1, 0)) == (31.0, 18.0)
    assert tree.accuracies() == {(0, 0): 0.5, (0, 1): 0.25, (1, 0): 0.75}
    assert tree.missing() == ((1, 1),)
    assert math.isnan(tree.accuracy((0,)))
    assert late.accuracies() == {(0, 0): 0.125}
    assert late.actions == tree.actions


def test_how_many_actions_there_are_may_be_said(tmp_path, origin):
    """Else the largest that was tried would be taken for doing nothing."""
    path = tmp_path / "table.csv"
    path.write_text(TABLE)
    tree, _ = read_adaptation(path, "ConvNet2", "cifar10", origin, actions=4)
    assert tree.actions == ("deepen 0", "deepen 1", "deepen 2", "nothing")
    with pytest.raises(TraceError, match="has actions 0 to 1; give 2 of them or more, not 1"):
        read_adaptation(path, "ConvNet2", "cifar10", origin, actions=1)


def test_a_mean_of_times_left_is_not_more_than_there_is(table, origin):
    """Of three times 0.05 s it is rounded up."""
    rows = "".join(f"early,{action},0.05,0.05,0.5\n" for action in range(3))
    (tree,) = table(TABLE, f"scenario,action_1,left_1_s,total_s,accuracy\n{rows}", origin)
    assert tree.start_s == 0.0


def test_the_trees_survive_the_disk(table, origin, tmp_path):
    for tree in table(origin=origin):
        write_tree(tmp_path / tree.scenario, tree)
        assert repr(read_tree(tmp_path / tree.scenario)) == repr(tree)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("0,1,32", "0,x,32", "line 3: action_2: 'x' is not a number"),
        ("0,1,32", "0,1.5,32", "line 3: action_2: '1.5' is not a whole number"),
        ("32,22", "32,33", "line 3: left_2_s: '33' is not at most left_1_s, which is 32"),
        ("32,22", "41,22", "line 3: left_1_s: '41' is not at most total_s, which is 40"),
        ("0.25", "25", "line 3: accuracy: '25' is not a share from 0 to 1"),
        ("22,40", "22,50", "line 3: total_s: '50' is not 40, the budget of the scenario so far"),
        ("0,1,32", "0,0,32", "line 3: action_1: '0' is not the start of a new sequence: line 2 has the same"),
        ("late", "", "line 5: scenario: '' is not there: the field is empty"),
        ("left_2_s", "left", "line 1: no column 'left_2_s', though there is 'action_2'"),
        ("action_2", "action_3", "line 1: no column 'action_2', though there is 'action_3'"),
        (",accuracy", ",acc", "line 1: no column 'accuracy'"),
        (",0.5", "", "line 2: 6 fields; expected 7"),
        (TABLE[TABLE.index("\n") + 1 :], "", "no rows after the header"),
    ],
)
def test_a_mistake_is_reported_with_file_line_and_field(table, old, new, message):
    with pytest.raises(TraceError, match=message):
        table(old, new)


def test_the_published_table(reference, origin):
    """Its five scenarios are whole; never to adapt ranks 50th to 62nd in them, as its report says."""
    path = reference("adaptation", "convnet2.csv")
    trees = read_adaptation(path, "ConvNet2", "cifar10", origin)
    assert [tree.scenario for tree in trees] == ["early", "early-middle", "middle", "middle-late", "late"]
    assert all(len(tree.sequences()) == 64 and tree.missing() == () for tree in trees)
    assert [tree.ranks[tree.never] for tree in trees] == [60, 62, 60, 62, 50]
    assert [round(tree.start_s) for tree in trees] == [70, 140, 200, 270, 330]
    best = [max(tree.accuracies(), key=tree.accuracy) for tree in trees]
    assert best == [(1, 1, 0), (1, 1, 1), (0, 1, 0), (0, 1, 1), (0, 1, 1)]
    lines = [line.split(",") for line in path.read_text().splitlines()]
    left_s = [float(line[6]) for line in lines if line[:3] == ["early", "0", "0"]]
    assert len(left_s) == 4
    assert trees[0].left_s((0, 0, 0))[2] == pytest.approx(sum(left_s) / 4)
