"""Recorded trees as tables."""

import json
import math
import shutil
from dataclasses import replace

import numpy as np
import pytest

from rota.core.errors import InputError
from rota.learning.problem import name_of, problem_of, read_trees
from rota.recordings.folder import write_recording
from rota.recordings.tree import Prefix, Tree, beginnings, write_tree

SMALL = {"actions": ("deepen 0", "nothing"), "decisions": 2}


def without(tree: Tree, *prefixes: Prefix) -> Tree:
    return replace(
        tree, curves={made: points for made, points in tree.curves.items() if made not in prefixes}
    )


def test_the_tables_of_a_small_tree_by_hand(make_tree):
    """Two decisions at 100 and 250 s of 400 s; before the second, 0 or 1 has been done."""
    problem = problem_of(make_tree(lambda sequence: 0.1 * (1 + 2 * sequence[0] + sequence[1]), **SMALL))
    assert problem.sequences == ((0, 0), (0, 1), (1, 0), (1, 1))
    assert [observation.made for observation in problem.observations] == [(), (0,), (1,)]
    assert problem.states.tolist() == [[0, 1], [0, 1], [0, 2], [0, 2]]
    assert problem.steps.tolist() == [[0, 0], [0, 1], [1, 0], [1, 1]]
    assert problem.accuracies == pytest.approx([0.1, 0.2, 0.3, 0.4])
    assert [observation.left_s for observation in problem.observations] == [300.0, 150.0, 150.0]
    assert [observation.left for observation in problem.observations] == [0.75, 0.375, 0.375]
    assert [len(observation.structure.layers) for observation in problem.observations] == [11, 14, 11]
    assert {observation.actions for observation in problem.observations} == {problem.observations[0].actions}


def test_the_time_left_is_that_of_the_branch_and_not_of_another(make_tree):
    """A larger network may come later to its second decision."""
    tree = make_tree(**SMALL)
    late = {made: (points[-1]._replace(at_s=310.0),) for made, points in tree.curves.items() if made == (0,)}
    problem = problem_of(replace(tree, curves={**tree.curves, **late}))
    assert [observation.left_s for observation in problem.observations] == [300.0, 90.0, 150.0]


@pytest.mark.parametrize("shape", [SMALL, {}, {"decisions": 1}, {"actions": ("nothing",)}])
def test_an_episode_is_a_walk_through_its_row(make_tree, shape):
    problem = problem_of(make_tree(**shape))
    for sequence, states, steps in zip(problem.sequences, problem.states, problem.steps, strict=True):
        assert [problem.observations[at].made for at in states] == list(beginnings(sequence))[:-1]
        assert tuple(steps) == sequence
    assert problem.states.shape == problem.steps.shape == (len(problem.sequences), problem.tree.decisions)


def test_a_training_that_failed_counts_nothing(make_tree):
    problem = problem_of(make_tree(lambda sequence: math.nan if sequence == (0, 1) else 0.5, **SMALL))
    assert problem.accuracies.tolist() == [0.5, 0.0, 0.5, 0.5]


def test_an_incomplete_tree_names_the_sequences_that_are_missing(make_tree):
    tree = without(make_tree(**SMALL), (0, 1), (1, 0))
    with pytest.raises(
        InputError,
        match=r"^tree convnet2 early seed 0: 2 of 4 sequences are missing \(0-1, 1-0\); record them first",
    ):
        problem_of(tree)


def test_many_missing_sequences_are_counted(make_tree):
    tree = make_tree()
    gone = [made for made in tree.curves if len(made) == 3 and made[0] == 2]
    with pytest.raises(InputError, match=r"16 of 64 sequences are missing \(2-0-0, .*, 2-1-3 and 8 more\);"):
        problem_of(without(tree, *gone))


@pytest.mark.parametrize(("gone", "missing"), [((), "4 of 4"), ((1,), "2 of 4")])
def test_a_sequence_whose_beginning_was_lost_is_missing_too(make_tree, gone, missing):
    with pytest.raises(InputError, match=f"{missing} sequences are missing .*1-0, 1-1"):
        problem_of(without(make_tree(**SMALL), gone))


def test_names_do_not_depend_on_how_a_model_is_written(make_tree):
    problem = problem_of(make_tree(model="ConvNet2", scenario="late", seed=3, **SMALL))
    assert name_of(problem.tree) == problem.name == "convnet2/late"
    assert problem.label == "convnet2/late seed 3"


@pytest.fixture
def recorded(make_tree, tmp_path):
    """A folder of three trees, deeper than it need be."""
    for name, changes in {
        "a": {"scenario": "late", "start_s": 340.0},
        "b/c": {"seed": 1},
        "d": {"model": "aconvnet"},
    }.items():
        write_tree(tmp_path / name, make_tree(**SMALL, **changes))
    write_tree(tmp_path / "b/a", make_tree(**SMALL))
    return tmp_path


def labels(trees: list[Tree]) -> list[str]:
    return [f"{tree.model}/{tree.scenario}/{tree.seed}" for tree in trees]


ALL = ["aconvnet/early/0", "convnet2/early/0", "convnet2/early/1", "convnet2/late/0"]


def test_all_trees_of_a_folder_are_read_by_model_time_and_seed(recorded):
    assert labels(read_trees([recorded])) == ALL


def test_a_tree_can_be_named_itself(recorded):
    assert labels(read_trees([recorded / "a", recorded / "b"])) == ALL[1:]


@pytest.mark.parametrize("more", [".", "a", "b", "b/../a"])
def test_what_is_named_twice_is_read_once(recorded, more):
    assert labels(read_trees([recorded, recorded / more])) == ALL
    assert labels(read_trees([recorded / more, recorded])) == ALL


def test_trees_come_back_as_they_were_written(recorded, make_tree):
    (found,) = read_trees([recorded / "a"])
    one, other = problem_of(found), problem_of(make_tree(scenario="late", start_s=340.0, **SMALL))
    assert one.observations == other.observations
    assert np.array_equal(one.accuracies, other.accuracies)


def test_recordings_of_other_shapes_are_passed_by(recorded, origin):
    write_recording(recorded / "z", "curves", {}, origin, {})
    assert labels(read_trees([recorded])) == ALL
    with pytest.raises(InputError, match=r"z: no tree recording in it"):
        read_trees([recorded / "z"])


def test_an_edited_tree_is_an_error_that_names_its_file(recorded):
    path = recorded / "b/c/points.csv"
    path.write_text(path.read_text().replace("0.4", "0.9"))
    with pytest.raises(InputError, match=r"b/c/points.csv: not the file that recording.json describes"):
        read_trees([recorded])


def test_a_half_written_tree_is_an_error(recorded):
    (recorded / "b/c/recording.json").unlink()
    with pytest.raises(InputError, match=r"b/c: not a complete recording"):
        read_trees([recorded])
    with pytest.raises(InputError, match=r"b/c: not a complete recording"):
        read_trees([recorded / "b/c"])


def test_a_recording_too_damaged_to_tell_what_it_was_is_an_error(recorded):
    path = recorded / "b/c/recording.json"
    path.write_text(path.read_text()[:100])
    (recorded / "b/c/points.csv").unlink()
    with pytest.raises(InputError, match=r"b/c/recording.json: cannot be read"):
        read_trees([recorded])


def test_facts_that_are_not_of_a_tree_are_an_error(recorded):
    path = recorded / "a/recording.json"
    facts = json.loads(path.read_text())
    del facts["what"]["actions"]
    path.write_text(json.dumps(facts))
    with pytest.raises(InputError, match=r"a/recording.json: missing key 'actions': a list; move"):
        read_trees([recorded / "a"])


def test_a_folder_without_trees_is_an_error(recorded, tmp_path):
    shutil.rmtree(recorded / "b")
    (tmp_path / "b").mkdir()
    with pytest.raises(
        InputError, match=r"b: no tree recording in it; make some: rota record config/record/quick.toml"
    ):
        read_trees([tmp_path / "a", tmp_path / "b"])
    with pytest.raises(InputError, match=r"nowhere: not there; give a folder"):
        read_trees([tmp_path / "nowhere"])
    with pytest.raises(InputError, match=r"points.csv: a file; give a folder"):
        read_trees([tmp_path / "a/points.csv"])


def test_no_folders_have_no_trees():
    assert read_trees([]) == []


def test_part_of_a_tree_will_do_where_that_is_said(make_tree):
    """What was never trained is not a number; what failed is 0."""
    tree = make_tree(lambda sequence: math.nan if sequence == (1, 1) else 0.5, **SMALL)
    problem = problem_of(without(tree, (0, 1)), partial=True)
    assert problem.accuracies.tolist() == pytest.approx([0.5, math.nan, 0.5, 0.0], nan_ok=True)
    assert len(problem.sequences) == 4


def test_of_a_part_only_what_was_trained_is_kept(make_tree):
    problem = problem_of(without(make_tree(**SMALL), (0, 1), (1, 0)), partial=True).trained
    assert problem.sequences == ((0, 0), (1, 1))
    assert problem.states.tolist() == [[0, 1], [0, 2]]
    assert problem.steps.tolist() == [[0, 0], [1, 1]]
    assert problem.accuracies == pytest.approx([0.4, 0.2])
    assert len(problem.observations) == 3


def test_of_a_whole_tree_everything_was_trained(make_tree):
    problem = problem_of(make_tree(**SMALL))
    assert problem.trained.sequences == problem.sequences
    assert np.array_equal(problem.trained.states, problem.states)


def test_trees_from_which_the_same_is_learned_have_the_same_digest(make_tree):
    """Neither what a scenario is called nor the seed is learned from; what was reached is."""
    digest = problem_of(make_tree(**SMALL)).digest
    assert problem_of(make_tree(scenario="soon", seed=3, **SMALL)).digest == digest
    others = [
        make_tree(lambda sequence: 0.3, **SMALL),
        make_tree(start_s=120.0, **SMALL),
        make_tree(model="convnet3", **SMALL),
        make_tree(actions=("deepen 1", "nothing"), decisions=2),
        make_tree(actions=("deepen 0", "nothing"), decisions=1),
    ]
    assert len({digest, *(problem_of(tree).digest for tree in others)}) == 6
