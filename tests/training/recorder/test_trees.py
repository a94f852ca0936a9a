"""Trees: every sequence is there, common beginnings are trained once, and stopping loses nothing."""

import math
import shutil
from dataclasses import replace
from threading import Thread

import pytest

from rota.core.errors import ConfigError, InputError
from rota.recordings.tree import read_tree
from rota.training.clock import Length, ProfiledClock
from rota.training.hyper import Hyperparameters
from rota.training.recorder import trees as recorder_module
from rota.training.recorder.partial import RecordingProgress
from rota.training.recorder.trees import Branch, TreesConfig, TreesRecorder, grow
from rota.training.setup import Setup

SETUP = Setup(model="convnet2", data="digits", threads=1, hyper=Hyperparameters(lr=0.003, batch_size=16))
CONFIG = TreesConfig(
    setup=SETUP,
    budget_s=1.0,
    epoch_s=0.1,
    actions=("deepen 1", "nothing"),
    decisions=2,
    scenarios={"early": 0.25, "late": 0.65},
    more_seeds={"late": (1,)},
    evaluate_every=2,
)
STEP_S = {0: 0.02, 1: 0.03, 2: 0.05}
"""By how often it was deepened."""


@pytest.fixture(autouse=True)
def _here(monkeypatch):
    """Steps take a known time, and pieces are trained in this process, one after the other."""

    def known(setup, changes, decisions):
        from rota.training.recorder.step_times import grown

        trainers = grown(setup, changes, decisions, seed=0)
        return {(t.structure.fingerprint, t.hyper.batch_size): STEP_S[len(t.history)] for t in trainers}

    def in_turn(work, ready, then, workers):
        waiting = list(ready)
        while waiting:
            piece = waiting.pop(0)
            work(piece)
            waiting += then(piece)
            yield piece

    monkeypatch.setattr(recorder_module, "measured", known)
    monkeypatch.setattr(recorder_module, "run_dag", in_turn)


def record(out, config=CONFIG):
    with RecordingProgress(quiet=True) as progress:
        return list(TreesRecorder(out, config, 1, "rota record test").record(progress))


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    return tmp_path_factory.mktemp("recorded")


def trees_in(out):
    if not (out / "trees").exists():
        record(out)
    return {folder.name: read_tree(folder) for folder in sorted((out / "trees").iterdir())}


def test_every_sequence_of_every_scenario_and_seed_is_there(recorded):
    trees = trees_in(recorded)
    assert list(trees) == [
        "convnet2-digits-early-seed0",
        "convnet2-digits-late-seed0",
        "convnet2-digits-late-seed1",
    ]
    for tree in trees.values():
        assert not tree.missing()
        assert len(tree.sequences()) == 4
        assert all(0 < tree.accuracy(each) <= 1 for each in tree.sequences())
        assert all(0 < tree.curves[each][-1].test_accuracy <= 1 for each in tree.sequences())
    assert not (recorded / "partial" / "convnet2-digits").exists()


def test_times_are_steps_times_the_seconds_per_step_of_the_structure(recorded):
    tree = trees_in(recorded)["convnet2-digits-early-seed0"]
    start = tree.curves[()][-1]
    assert (start.at_s, start.steps) == (pytest.approx(0.24), 12)  # twelve steps of 0.02 s fit into 0.25 s
    once = tree.curves[(0,)][-1]
    assert (once.at_s, once.steps) == (pytest.approx(0.24 + 3 * 0.03), 15)
    twice = tree.curves[(0, 0)][-1]
    assert twice.steps == 15 + 13  # 0.67 s are left, which is thirteen steps of 0.05 s
    assert twice.at_s == pytest.approx(0.33 + 13 * 0.05)
    assert tree.left_s((0, 0)) == pytest.approx((0.76, 0.67))
    assert tree.curves[(1, 1)][-1].at_s == pytest.approx(1.0)


def test_a_sequence_equals_the_same_training_in_one_go(recorded):
    tree = trees_in(recorded)["convnet2-digits-late-seed0"]
    seconds = tree.details["seconds_per_step"]
    clock = ProfiledClock({(name, 16): s for name, s in seconds.items()})
    one = SETUP.trainer(clock, seed=0, length=Length(seconds=0.1))
    while one.epoch(until_s=0.65, evaluate=False).ended == "whole":
        pass
    one.epoch(interrupted=lambda _: True)
    one.change(CONFIG.changes[0])
    one.epoch(until_s=1.0, evaluate=False)
    while one.epoch(until_s=1.0, evaluate=False).ended == "whole":
        pass
    assert one.progress.steps == tree.curves[(0, 1)][-1].steps
    assert one.task.evaluate(one.network)["accuracy"] == tree.accuracy((0, 1))


def test_the_end_of_a_sequence_is_measured_on_validation_and_on_test_images(recorded):
    tree = trees_in(recorded)["convnet2-digits-late-seed1"]
    clock = ProfiledClock({(name, 16): s for name, s in tree.details["seconds_per_step"].items()})
    one = SETUP.trainer(clock, seed=1, length=Length(seconds=0.1))
    while one.epoch(until_s=0.65, evaluate=False).ended == "whole":
        pass
    one.epoch(interrupted=lambda _: True)
    while one.epoch(until_s=1.0, evaluate=False).ended == "whole":
        pass
    end = tree.curves[tree.never][-1]
    assert end.accuracy == one.task.evaluate(one.network, "validation")["accuracy"]
    assert end.test_accuracy == one.task.evaluate(one.network, "test")["accuracy"]
    assert end.accuracy != end.test_accuracy
    assert len(tree.curves[tree.never]) == 2  # 0.25 s are left: after two epochs, and at the end
    assert (tree.provenance.seed, tree.provenance.command) == (1, "rota record test")
    assert tree.provenance.device.endswith("1 thread")


def test_a_training_that_fails_leaves_no_accuracy(tmp_path):
    wild = Setup(
        model="feedforward1",
        data="digits",
        threads=1,
        optimizer="sgd",
        hyper=Hyperparameters(lr=1e30, batch_size=16),
    )
    values = {name: getattr(CONFIG, name) for name in TreesConfig.__slots__}
    config = TreesConfig(**{**values, "setup": wild, "actions": ("deepen 0", "nothing"), "more_seeds": {}})
    record(tmp_path, config)
    tree = read_tree(tmp_path / "trees" / "feedforward1-digits-early-seed0")
    assert all(math.isnan(tree.accuracy(each)) for each in tree.sequences())


def test_a_second_recorder_waits_and_finds_everything_done(recorded, tmp_path):
    trees_in(recorded)
    recorder = TreesRecorder(tmp_path, CONFIG, 1, "rota record test")
    found = []

    def second():
        with RecordingProgress(quiet=True) as progress:
            found.append(list(recorder.record(progress)))

    with recorder.common.alone():
        other = Thread(target=second)
        other.start()
        other.join(0.3)
        assert other.is_alive()
        shutil.copytree(recorded / "trees", tmp_path / "trees")  # the first one is done
    other.join()
    assert found == [[]]


def test_nothing_of_other_settings_is_left_after_a_stop_and_a_resumption(recorded, tmp_path, monkeypatch):
    """Stopped while the second seed is recorded: the pieces of the first go in the end, too."""

    def stopping(branch: Branch, step_times):
        if branch.seed == 1 and branch.actions:
            raise KeyboardInterrupt
        grow(branch, step_times)

    monkeypatch.setattr(recorder_module, "grow", stopping)
    with pytest.raises(KeyboardInterrupt):
        record(tmp_path)
    monkeypatch.setattr(recorder_module, "grow", grow)
    record(tmp_path)
    assert [path for path in (tmp_path / "partial").rglob("*") if path.is_file()] == []


SMALL = replace(CONFIG, decisions=1, scenarios={"late": 0.65}, more_seeds={})


def stop_before(monkeypatch, unwanted):
    """Pieces are trained until one is unwanted; gives those that were."""
    trained = []

    def stopping(branch: Branch, step_times):
        if unwanted(branch):
            raise KeyboardInterrupt
        grow(branch, step_times)
        trained.append((branch.seed, branch.scenario, branch.actions))

    monkeypatch.setattr(recorder_module, "grow", stopping)
    return trained


@pytest.mark.parametrize("other", [{"seed": 1}, {"scenarios": {"middle": 0.5}}])
def test_recording_again_what_is_there_leaves_the_unfinished_pieces_of_others(tmp_path, monkeypatch, other):
    record(tmp_path, SMALL)
    stop_before(monkeypatch, lambda branch: branch.actions == (1,))
    with pytest.raises(KeyboardInterrupt):
        record(tmp_path, replace(SMALL, **other))
    assert record(tmp_path, SMALL) == []
    trained = stop_before(monkeypatch, lambda branch: False)
    record(tmp_path, replace(SMALL, **other))
    assert [actions for _, _, actions in trained] == [(1,)]
    assert [path for path in (tmp_path / "partial").rglob("*") if path.is_file()] == []


def test_pieces_of_a_tree_that_was_written_just_before_the_stop_go(tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(TreesRecorder, "_remove_branches", stop)
        with pytest.raises(KeyboardInterrupt):
            record(tmp_path, SMALL)
    assert record(tmp_path, SMALL) == []
    assert [path for path in (tmp_path / "partial").rglob("*") if path.is_file()] == []


def stop(*_, **__):
    raise KeyboardInterrupt


def test_a_scenario_that_is_moved_begins_anew_from_where_it_is_now(tmp_path, monkeypatch):
    stop_before(monkeypatch, lambda branch: branch.actions == (1,))
    with pytest.raises(KeyboardInterrupt):
        record(tmp_path, SMALL)
    trained = stop_before(monkeypatch, lambda branch: False)
    record(tmp_path, replace(SMALL, scenarios={"late": 0.5}))
    assert [actions for _, _, actions in trained] == [(), (0,), (1,)]
    tree = read_tree(tmp_path / "trees" / "convnet2-digits-late-seed0")
    assert {points[-1].steps for points in tree.curves.values()} == {25, 25 + 16, 50}
    assert [path for path in (tmp_path / "partial").rglob("*") if path.is_file()] == []


def test_a_scenario_added_to_something_unfinished_is_recorded(recorded, tmp_path, monkeypatch):
    def stopping(branch: Branch, step_times):
        if branch.actions:
            raise KeyboardInterrupt
        grow(branch, step_times)

    monkeypatch.setattr(recorder_module, "grow", stopping)
    with pytest.raises(KeyboardInterrupt):
        record(tmp_path)
    monkeypatch.setattr(recorder_module, "grow", grow)
    values = {name: getattr(CONFIG, name) for name in TreesConfig.__slots__}
    more = TreesConfig(**{**values, "scenarios": {**CONFIG.scenarios, "middle": 0.5}, "more_seeds": {}})
    assert len(record(tmp_path, more)) == 3
    late = read_tree(tmp_path / "trees" / "convnet2-digits-late-seed0")
    assert late.accuracies() == trees_in(recorded)["convnet2-digits-late-seed0"].accuracies()


def test_what_is_recorded_is_not_recorded_again(recorded, monkeypatch):
    trees_in(recorded)
    monkeypatch.setattr(recorder_module, "run_dag", None)  # would fail if anything were done
    assert record(recorded) == []


def test_a_scenario_added_later_keeps_the_others_and_the_seconds_per_step(recorded, tmp_path, monkeypatch):
    trees_in(recorded)
    shutil.copytree(recorded, tmp_path / "copy")
    monkeypatch.setattr(recorder_module, "measured", None)  # not measured anew
    more = TreesConfig(
        **{
            **{name: getattr(CONFIG, name) for name in TreesConfig.__slots__},
            "scenarios": {**CONFIG.scenarios, "middle": 0.5},
        }
    )
    assert [folder.name for folder in record(tmp_path / "copy", more)] == ["convnet2-digits-middle-seed0"]


@pytest.mark.parametrize("pieces", [0, 1, 4, 9])
def test_stopped_after_any_piece_it_goes_on_and_ends_the_same(recorded, tmp_path, monkeypatch, pieces):
    """Whatever was done is kept: as many pieces are trained in all as without stopping."""
    expected = trees_in(recorded)
    trained = []

    def stopping(limit):
        def counted(branch: Branch, step_times):
            if limit is not None and len(trained) == limit:
                raise KeyboardInterrupt
            grow(branch, step_times)
            trained.append((branch.seed, branch.scenario, branch.actions))

        return counted

    monkeypatch.setattr(recorder_module, "grow", stopping(pieces))
    with pytest.raises(KeyboardInterrupt):
        record(tmp_path)
    monkeypatch.setattr(recorder_module, "grow", stopping(None))
    record(tmp_path)
    assert len(trained) == len(set(trained)) == 3 * 6 + 2 + 2  # six after decisions, two of each trunk
    for name, tree in trees_in(tmp_path).items():
        assert plain(tree.curves) == plain(expected[name].curves)


def plain(curves):
    """NaN equals NaN."""
    return {
        prefix: [tuple(None if math.isnan(value) else value for value in point) for point in points]
        for prefix, points in curves.items()
    }


def test_other_settings_under_the_same_name_are_refused_and_nothing_is_lost(recorded):
    before = trees_in(recorded)
    values = {name: getattr(CONFIG, name) for name in TreesConfig.__slots__}
    with pytest.raises(InputError, match="was recorded with other settings"):
        record(recorded, TreesConfig(**{**values, "budget_s": 2.0}))
    assert {n: plain(t.curves) for n, t in trees_in(recorded).items()} == {
        n: plain(t.curves) for n, t in before.items()
    }


def test_unfinished_pieces_of_other_settings_are_refused(tmp_path):
    folder = tmp_path / "partial" / "convnet2-digits"
    folder.mkdir(parents=True)
    (folder / "asked.json").write_text("{}")
    with pytest.raises(InputError, match="unfinished with other settings"):
        record(tmp_path)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"budget_s": 0.0}, "budget_s is 0"),
        ({"epoch_s": math.inf, "decisions": 1}, "epoch_s is inf; it must be above 0 and finite"),
        ({"seed": -1}, "seed -1: give a whole number, 0 or more"),
        ({"more_seeds": {"late": (-1,)}}, "seed -1: give a whole number, 0 or more"),
        ({"actions": ("deepen 1",)}, "one of them 'nothing'"),
        ({"actions": ("deepen 1", "deepen 1", "nothing")}, "different from each other"),
        ({"actions": ("deepen x", "nothing")}, "not a change"),
        ({"scenarios": {"late": 0.95}}, "are not over before the budget"),
        ({"more_seeds": {"middle": (1,)}}, "unknown scenario 'middle'"),
    ],
)
def test_what_cannot_be_recorded_is_refused(values, message):
    given = {name: getattr(CONFIG, name) for name in TreesConfig.__slots__} | {"more_seeds": {}} | values
    with pytest.raises(ConfigError, match=message):
        TreesConfig(**given)
