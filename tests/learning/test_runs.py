"""From a configuration to agents."""

from dataclasses import replace
from pathlib import Path

import pytest

from rota.core.errors import ConfigError, InputError
from rota.learning.agent import read_agent
from rota.learning.config import LearnConfig, Method
from rota.learning.files import HistoryRow, read_history
from rota.learning.runs import AgentRun, folds, learn, matching, plan

CONFIG = LearnConfig(recordings=(Path("x"),), episodes=8, method=Method(episodes_per_update=4))


@pytest.fixture
def trees(make_tree):
    early, late = (make_tree(scenario=name, start_s=at) for name, at in (("early", 70.0), ("late", 340.0)))
    return [early, late, make_tree(scenario="late", seed=1), make_tree(model="ConvNet3", start_s=80.0)]


def names(trees):
    return [(tree.model, tree.scenario, tree.seed) for tree in trees]


@pytest.mark.parametrize(
    ("stage", "expected"),
    [
        ("*", [0, 1, 2, 3]),
        ("early", [0, 3]),
        ("convnet2/early", [0]),
        ("ConvNet3/early + late", [1, 2, 3]),
    ],
)
@pytest.mark.parametrize("written", [str, str.title])
def test_a_stage_names_its_trees_however_they_are_written(trees, stage, expected, written):
    trees = [replace(tree, scenario=written(tree.scenario)) for tree in trees]
    assert matching(trees, stage) == tuple(trees[at] for at in expected)


def test_a_stage_that_names_none_is_told_what_there_is(trees):
    with pytest.raises(
        ConfigError, match=r"no tree for 'noon'; there are: convnet2/early, early, convnet2/late"
    ):
        matching(trees, "early+noon")


def test_trees_of_other_data_can_be_named_and_are_left_out_by_themselves(trees, make_tree, tmp_path):
    trees.append(make_tree(lambda sequence: 0.5, data="digits"))
    assert matching(trees, "convnet2-digits/early") == (trees[4],)
    assert matching(trees, "convnet2-cifar10/early") == (trees[0],)
    assert matching(trees, "convnet2/early") == (trees[0], trees[4])
    by_tree = [fold.name for fold in folds(CONFIG, trees, "tree", tmp_path)]
    assert by_tree == [
        "convnet2-cifar10/early", "convnet2-cifar10/late", "convnet3/early", "convnet2-digits/early"
    ]  # fmt: skip


def test_models_and_recorded_seeds_narrow_it_down(trees, tmp_path):
    config = replace(CONFIG, models=("ConvNet2",), recorded_seeds=(0,))
    (run,) = plan(config, trees, tmp_path, tmp_path)
    assert names(run.last.trees) == [("convnet2", "early", 0), ("convnet2", "late", 0)]
    with pytest.raises(ConfigError, match="no tree of 'resnet18'; there are: convnet2, convnet3"):
        plan(replace(CONFIG, models=("resnet18",)), trees, tmp_path, tmp_path)


@pytest.mark.parametrize(
    ("models", "seeds", "message"),
    [
        ((), (7,), "recorded_seeds: no tree from 7; there are only trees from 0, 1"),
        ((), (0, 7), "recorded_seeds: no tree from 7"),
        (("convnet3",), (1,), "recorded_seeds: no tree of convnet3 from 1; there are only trees from 0"),
        (("convnet2", "convnet3"), (1,), "models: no tree of 'convnet3' from 1"),
    ],
)
@pytest.mark.parametrize("left_out", [False, True])
def test_whatever_is_named_must_choose_some_tree(trees, tmp_path, models, seeds, message, left_out):
    config = replace(CONFIG, models=models, recorded_seeds=seeds)
    with pytest.raises(ConfigError, match=message):
        folds(config, trees, "scenario", tmp_path) if left_out else plan(config, trees, tmp_path, tmp_path)


def test_a_curriculum_is_a_chain_and_temperature_is_for_what_is_learned_anew(trees, tmp_path):
    config = replace(CONFIG, stages=("early", "late"), temperature=10.0, transfer_episodes=4)
    (run,) = plan(config, trees, tmp_path, tmp_path)
    first, second = run.last.chain
    assert (first.episodes, first.temperature, second.episodes, second.temperature) == (8, 1.0, 4, 10.0)
    assert (first.number, second.number) == (0, 1)


def test_runs_that_begin_alike_share_their_beginning(trees, tmp_path):
    runs: list[AgentRun] = []
    for temperature in (1.0, 10.0):
        config = replace(CONFIG, stages=("early", "late"), temperature=temperature)
        runs += plan(config, trees, tmp_path, tmp_path / f"{temperature:g}")
    drawn = []
    assert list(learn(runs, tmp_path, 1, "rota learn", drawn.append)) == runs
    early, late = 8 * 2, 8 * 2  # episodes of each of two trees
    assert sum(drawn) == early + 2 * late
    assert not (tmp_path / ".stages").exists()
    rows = read_history(tmp_path / "10", HistoryRow)
    assert [(row.stage, row.episodes) for row in rows] == [(0, 8), (0, 16), (1, 8), (1, 16)]


def test_what_is_there_is_not_learned_again_and_another_agent_is_not_written_over(trees, tmp_path):
    runs = plan(CONFIG, trees, tmp_path, tmp_path)
    list(learn(runs, tmp_path, 1, "rota learn"))
    drawn = []
    assert list(learn(runs, tmp_path, 1, "rota learn", drawn.append)) == runs
    assert drawn == []
    others = plan(replace(CONFIG, episodes=4), trees, tmp_path, tmp_path)
    with pytest.raises(InputError, match="another agent is there"):
        others[0].refuse_another()
    assert runs[0].refuse_another() is None
    assert list(learn(others, tmp_path, 2, "rota learn")) == others
    assert others[0].done
    assert not runs[0].done
    assert list(learn(others, tmp_path, 2, "rota learn", drawn.append, again=True)) == others
    assert sum(drawn) == 4 * 4  # all of it, from the beginning


def test_to_learn_again_goes_on_where_that_was_stopped(trees, tmp_path):
    runs = plan(replace(CONFIG, stages=("early", "late")), trees, tmp_path, tmp_path)
    list(learn(runs, tmp_path, 1, "rota learn"))
    drawn = []

    def stop(episodes):
        drawn.append(episodes)
        if len(drawn) == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        list(learn(runs, tmp_path, 1, "rota learn", stop, again=True))
    assert runs[0].last.before.done
    assert not runs[0].last.done
    drawn.clear()
    assert list(learn(runs, tmp_path, 1, "rota learn", drawn.append, again=True)) == runs
    assert sum(drawn) == 8 * 2  # the second stage only
    assert list(learn(runs, tmp_path, 1, "rota learn", drawn.append, again=True)) == runs
    assert sum(drawn) == 8 * 2 + 2 * 8 * 2  # and then all of it
    assert not (tmp_path / ".stages").exists()


def test_nothing_of_the_users_is_deleted(trees, tmp_path):
    (tmp_path / "stages").mkdir()
    (tmp_path / ".stages").mkdir()
    (tmp_path / ".stages" / "mine").touch()
    list(learn(plan(CONFIG, trees, tmp_path, tmp_path), tmp_path, 1, "rota learn"))
    assert (tmp_path / "stages").exists()
    assert [path.name for path in (tmp_path / ".stages").iterdir()] == ["mine"]


def test_side_by_side_comes_to_the_same_as_one_after_the_other(trees, tmp_path):
    config = replace(CONFIG, seeds=(0, 1), stages=("convnet2/early", "late"))
    for workers in (1, 2):
        out = tmp_path / str(workers)
        list(learn(plan(config, trees, out, out), out, workers, "rota learn"))
    for seed in (0, 1):
        one, two = ((tmp_path / w / f"seed{seed}" / "weights.npz").read_bytes() for w in "12")
        assert one == two


def test_an_agent_can_start_from_another(trees, tmp_path):
    (first,) = plan(CONFIG, trees, tmp_path / "a", tmp_path / "a")
    list(learn([first], tmp_path / "a", 1, "rota learn"))
    config = replace(CONFIG, start=tmp_path / "a", temperature=3.0, stages=("late",))
    (second,) = plan(config, trees, tmp_path / "b", tmp_path / "b")
    assert second.last.temperature == 3.0
    list(learn([second], tmp_path / "b", 1, "rota learn"))
    assert read_agent(tmp_path / "b").about["started_from"] == str(tmp_path / "a")
    wrong = replace(config, method=replace(CONFIG.method, network="original"))
    with pytest.raises(ConfigError, match=r"has the structural network, method\.network is original"):
        list(learn(plan(wrong, trees, tmp_path / "c", tmp_path / "c"), tmp_path / "c", 1, "rota learn"))


def test_the_original_network_wants_one_number_of_actions(make_tree, tmp_path):
    trees = [make_tree(), make_tree(scenario="other", actions=("deepen 0", "nothing"))]
    config = replace(CONFIG, method=replace(CONFIG.method, network="original"))
    with pytest.raises(
        ConfigError, match="convnet2/other has 2 actions, the original network was built for 4"
    ):
        list(learn(plan(config, trees, tmp_path, tmp_path), tmp_path, 1, "rota learn"))


def without_one_sequence(tree):
    return replace(tree, curves={made: points for made, points in tree.curves.items() if made != (0, 1, 2)})


def test_a_tree_of_a_later_stage_that_is_not_whole_is_found_before_anything_is_learned(trees, tmp_path):
    trees[1] = without_one_sequence(trees[1])
    drawn = []
    runs = plan(replace(CONFIG, stages=("early", "late")), trees, tmp_path, tmp_path)
    with pytest.raises(InputError, match=r"1 of 64 sequences are missing \(0-1-2\)"):
        list(learn(runs, tmp_path, 1, "rota learn", drawn.append))
    assert drawn == []


def test_what_is_left_out_must_be_such_that_it_can_be_evaluated_on(trees, make_tree, tmp_path):
    with pytest.raises(InputError, match="1 of 64 sequences are missing"):
        folds(CONFIG, [*trees, without_one_sequence(make_tree(scenario="noon"))], "scenario", tmp_path)
    original = replace(CONFIG, method=replace(CONFIG.method, network="original"))
    other = make_tree(scenario="noon", actions=("deepen 0", "nothing"))
    with pytest.raises(ConfigError, match="convnet2/noon has 2 actions, the original network was built for"):
        folds(original, [*trees, other], "scenario", tmp_path)
    assert len(folds(CONFIG, [*trees, other], "scenario", tmp_path)) == 3


def test_what_an_agent_started_from_must_not_have_learned_from_what_is_left_out(trees, make_tree, tmp_path):
    known = make_tree(lambda sequence: 0.1 * sequence[0], scenario="noon")
    for name, tree in (("knows", trees[1]), ("other", known)):
        list(learn(plan(CONFIG, [tree], tmp_path, tmp_path / name), tmp_path, 1, "rota learn"))
    with pytest.raises(
        ConfigError, match=r"start: .*knows has learned from convnet2/late, which is left out"
    ):
        folds(replace(CONFIG, start=tmp_path / "knows"), trees, "scenario", tmp_path / "folds")
    found = folds(replace(CONFIG, start=tmp_path / "other"), trees, "scenario", tmp_path / "folds")
    assert [fold.runs[0].last.start for fold in found] == [tmp_path / "other"] * 2
    with pytest.raises(ConfigError, match=r"stages: .* learns from all others at once; leave stages out"):
        folds(replace(CONFIG, stages=("early", "late")), trees, "scenario", tmp_path)


def test_each_is_left_out_once(trees, tmp_path):
    found = folds(CONFIG, trees, "scenario", tmp_path)
    assert [(fold.name, names(fold.left_out)) for fold in found] == [
        ("early", [("convnet2", "early", 0), ("ConvNet3", "early", 0)]),
        ("late", [("convnet2", "late", 0), ("convnet2", "late", 1)]),
    ]
    assert names(found[0].runs[0].last.trees) == names(trees[1:3])
    assert [fold.name for fold in folds(CONFIG, trees, "model", tmp_path)] == ["convnet2", "convnet3"]
    by_tree = folds(CONFIG, trees, "tree", tmp_path)
    assert [fold.name for fold in by_tree] == ["convnet2/early", "convnet2/late", "convnet3/early"]
    with pytest.raises(ConfigError, match="there is only convnet2"):
        folds(CONFIG, trees[:2], "model", tmp_path)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"recordings": ()}, "recordings: which"),
        ({"stages": ()}, "stages: none"),
        ({"seeds": (1, 1)}, "seeds: some are there twice"),
        ({"episodes": 0}, "episodes is 0"),
        ({"temperature": 0.5}, "temperature is 0.5; it must be at least 1"),
    ],
)
def test_a_mistake_in_a_configuration_is_named(changes, message):
    with pytest.raises(ConfigError, match=message):
        replace(CONFIG, **changes)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"episodes_per_update": 1}, "a baseline needs other episodes"),
        ({"lr": 0.0}, "lr is 0"),
        ({"lr_decay": 1.5}, "must be at most 1"),
    ],
)
def test_a_mistake_in_a_method_is_named(changes, message):
    with pytest.raises(ConfigError, match=message):
        Method(**changes)
