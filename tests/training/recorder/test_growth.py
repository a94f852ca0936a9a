"""Growth trees: every path is there, common beginnings are trained once, and stopping loses nothing."""

import math
from dataclasses import replace
from pathlib import Path

import pytest

from rota.config.bind import bind
from rota.config.load import read
from rota.core.errors import ConfigError, InputError
from rota.core.network import Change
from rota.recordings.growth import read_growth_tree
from rota.recordings.library import unfinished
from rota.training.clock import Length, StoppedClock
from rota.training.hyper import Hyperparameters
from rota.training.recorder import growth as recorder_module
from rota.training.recorder.growth import GrowthConfig, GrowthRecorder, TreeTraining
from rota.training.recorder.partial import RecordingProgress
from rota.training.recorder.record import RecordConfig
from rota.training.setup import Setup

SETUP = Setup(
    model="convnet2", data="digits", threads=1, validation=100, test=50, hyper=Hyperparameters(batch_size=16)
)
CONFIG = GrowthConfig(
    setup=SETUP,
    steps=3,
    decisions=2,
    most_changes=1,
    order=("deepen 1",),
    grid={"lr": (0.01, 0.003)},
    more_seeds={"lr=0.003": (1,)},
)
STEP_S = (0.5, 0.75)
"""By how often it was deepened."""


@pytest.fixture(autouse=True)
def _known_step_times(monkeypatch):
    """Steps take a known time; no seconds are measured."""

    def known(trainers, where, clock):
        return {(t.structure.fingerprint, t.hyper.batch_size): STEP_S[len(t.history)] for t in trainers}

    monkeypatch.setattr(recorder_module, "measure", known)


def record(out, *configs, workers=1):
    with RecordingProgress(quiet=True) as progress:
        recorder = GrowthRecorder(out, configs or (CONFIG,), workers, "rota record test")
        return list(recorder.record(progress))


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    return tmp_path_factory.mktemp("recorded")


def trees_in(out, *configs):
    folder = out / "growth" / (configs[0] if configs else CONFIG).name
    if not folder.exists():
        record(out, *configs)
    return {each.name: read_growth_tree(each) for each in sorted(folder.iterdir())}


def test_every_setting_and_seed_has_a_whole_tree(recorded):
    trees = trees_in(recorded)
    assert list(trees) == ["lr=0.003-seed0", "lr=0.003-seed1", "lr=0.01-seed0"]
    for tree in trees.values():
        assert list(tree.nodes) == [(), (0,), (1,), (0, 1), (1, 0), (1, 1)]
        assert [node.steps for node in tree.nodes.values()] == [3, 6, 6, 9, 9, 9]
        assert [node.structure for node in tree.nodes.values()] == [0, 1, 0, 1, 1, 0]
        for node in tree.nodes.values():
            for count, accuracy in ((100, node.accuracy), (50, node.test_accuracy)):  # images
                assert count * accuracy == pytest.approx(round(count * accuracy))
            assert 0.0 < node.loss < 10.0
        assert tree.seconds((1, 0)) == 3 * 0.75
        assert tree.provenance.command == "rota record test"
    assert trees["lr=0.003-seed0"].hyper == {"lr": 0.003, "momentum": 0.9, "batch_size": 16}
    assert repr(trees["lr=0.003-seed0"].nodes) != repr(trees["lr=0.003-seed1"].nodes)
    assert not (recorded / "partial" / f"growth-{CONFIG.name}").exists()


def test_a_path_equals_the_same_training_in_one_go(recorded):
    tree = trees_in(recorded)["lr=0.01-seed0"]
    one = replace(SETUP, hyper=Hyperparameters(lr=0.01, batch_size=16)).trainer(
        StoppedClock(), seed=0, length=Length(steps=3)
    )
    for prefix in [(), (1,), (1, 0)]:
        if prefix:
            one.change(Change.parse(tree.choices.actions[prefix[-1]]))
        epoch = one.epoch()
        assert epoch.loss == tree.node(prefix).loss
        assert epoch.metrics["accuracy"] == tree.node(prefix).accuracy
        assert one.task.evaluate(one.network, "test")["accuracy"] == tree.node(prefix).test_accuracy
        known = tree.structures[tree.node(prefix).structure]
        assert known.structure == one.structure
    assert len(known.blocks[1]) > len(tree.structures[0].blocks[1])


def test_a_stopped_recorder_goes_on_without_a_difference(recorded, tmp_path, monkeypatch):
    monkeypatch.setattr(recorder_module, "WRITTEN_EVERY_S", -1.0)
    evaluate, calls = recorder_module.TreeTraining._add, []

    def stop(self, prefix, node):
        evaluate(self, prefix, node)
        calls.append(prefix)
        if len(calls) == 4:
            raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(recorder_module.TreeTraining, "_add", stop)
        with pytest.raises(KeyboardInterrupt):
            record(tmp_path)
    assert calls == [(), (0,), (0, 1), (1,)]  # depth first
    assert unfinished(tmp_path) == {f"growth-{CONFIG.name}": 1}
    first = CONFIG.settings()
    planned = GrowthRecorder(tmp_path, (CONFIG,), 1, "").planned(CONFIG)[0]
    assert planned.setting == next(iter(first))
    assert len(planned.nodes()) == 4
    trained = []
    TreeTraining(planned, trained.append).run()
    assert trained == [(1, 0), (1, 1)]  # what was there is not measured again
    record(tmp_path)
    for name, tree in trees_in(recorded).items():
        again = read_growth_tree(tmp_path / "growth" / CONFIG.name / name)
        assert repr(again.nodes) == repr(tree.nodes)


def test_several_processes_record_the_same(recorded, tmp_path, monkeypatch):
    def in_turn(work, ready, then, workers):
        for task in ready:
            work(task)
            yield task

    monkeypatch.setattr(recorder_module, "run_dag", in_turn)
    record(tmp_path, workers=2)
    for name, tree in trees_in(recorded).items():
        again = read_growth_tree(tmp_path / "growth" / CONFIG.name / name)
        assert repr(again.nodes) == repr(tree.nodes)


def test_a_training_that_fails_stays_failed(tmp_path):
    config = replace(CONFIG, grid={"lr": (1e30,)}, more_seeds={})
    (tree,) = trees_in(tmp_path, config).values()
    assert tree.missing() == ()
    assert all(math.isnan(node.accuracy) and node.steps < 3 for node in tree.nodes.values())


def test_networks_take_turns_and_what_is_there_is_not_recorded_again(tmp_path):
    other = GrowthConfig(
        setup=replace(SETUP, model="feedforward1"),
        steps=1,
        decisions=1,
        most_changes=1,
        order=("deepen 0",),
        grid={"lr": (0.01, 0.02)},
    )
    short = replace(CONFIG, steps=1, decisions=1, more_seeds={})
    found = [f"{folder.parent.name}/{folder.name}" for folder in record(tmp_path, short, other)]
    assert found == [
        "convnet2-digits/lr=0.01-seed0",
        "feedforward1-digits/lr=0.01-seed0",
        "convnet2-digits/lr=0.003-seed0",
        "feedforward1-digits/lr=0.02-seed0",
    ]
    assert record(tmp_path, short, other) == []
    more = record(tmp_path, replace(short, seeds=(0, 5)))
    assert [folder.name for folder in more] == ["lr=0.01-seed5", "lr=0.003-seed5"]
    with pytest.raises(InputError, match="was recorded with other settings"):
        record(tmp_path, replace(short, steps=2))


def test_step_times_can_be_measured_again(tmp_path, monkeypatch):
    record(tmp_path, replace(CONFIG, decisions=1))
    before = trees_in(tmp_path)
    slower = lambda trainers, where, clock: {  # noqa: E731
        (t.structure.fingerprint, 16): 2 * STEP_S[len(t.history)] for t in trainers
    }
    monkeypatch.setattr(recorder_module, "measure", slower)
    with RecordingProgress(quiet=True) as progress:
        recorder = GrowthRecorder(tmp_path, (replace(CONFIG, decisions=1),), 1, "rota record test")
        assert len(list(recorder.time_again(progress))) == 3
    for name, tree in trees_in(tmp_path).items():
        assert [each.step_s for each in tree.structures] == [1.0, 1.5]
        assert repr(tree.nodes) == repr(before[name].nodes)
        assert tree.provenance == before[name].provenance


def test_intervals_can_be_timed(tmp_path):
    config = replace(CONFIG, timed="intervals", grid={}, more_seeds={}, decisions=1)
    (tree,) = trees_in(tmp_path, config).values()
    assert all(0.0 < tree.seconds(prefix) < 60.0 for prefix in tree.nodes)
    assert tree.seconds(()) == tree.node(()).seconds != 1.5


@pytest.mark.parametrize(
    ("model", "order", "message"),
    [
        (
            "feedforward1",
            ("deepen 2",),
            "^feedforward1-digits: feedforward1 cannot grow there: deepen 2 after no",
        ),
        ("convnet2", ("deepen 1", "widen 2 64"), "cannot grow there: widen 2 64 after deepen 1: "),
        ("a2c", ("deepen 0",), "a2c plays games, which cannot be branched"),
    ],
)
def test_a_model_that_cannot_grow_there_is_named_before_anything_is_trained(tmp_path, model, order, message):
    images = {"data": None, "validation": None, "test": None} if model == "a2c" else {}
    config = GrowthConfig(
        setup=replace(SETUP, model=model, **images),
        steps=1,
        decisions=2,
        most_changes=len(order),
        order=order,
    )
    with pytest.raises(InputError, match=message):
        record(tmp_path, config)
    assert not (tmp_path / "growth").exists()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"steps": 0}, "steps is 0"),
        ({"order": ("deeper 1",)}, "unknown change 'deeper'"),
        ({"decisions": 0}, "expected 1 to 30 boundaries"),
        ({"most_changes": 2}, "expected one for each of the 2"),
        ({"grid": {"rate": (1.0,)}}, "unknown hyper-parameter 'rate'"),
        ({"more_seeds": {"lr=1": (1,)}}, "more_seeds: unknown setting 'lr=1'"),
        ({"seeds": ()}, "seeds: give one or more"),
        ({"seeds": (-1,)}, "seed -1"),
        ({"name": "a/b"}, "name 'a/b'"),
    ],
)
def test_mistakes_in_the_configuration(changes, message):
    with pytest.raises(ConfigError, match=message):
        replace(CONFIG, **{"actions": (), **changes})


def test_two_recordings_of_one_name_are_refused():
    with pytest.raises(ConfigError, match="growth: two are called 'convnet2-digits'"):
        RecordConfig(growth=(CONFIG, replace(CONFIG, steps=9)))


def test_a_damaged_piece_is_named(tmp_path):
    planned = GrowthRecorder(tmp_path, (CONFIG,), 1, "").planned(CONFIG)[0]
    planned.partial.put(planned.label, {"nodes": [1]})
    with pytest.raises(
        InputError, match=r"lr=0.01-seed0.json: cannot be read .*delete it to record it again"
    ):
        record(tmp_path)


CONFIGS = sorted((Path(__file__).parents[3] / "config" / "record").glob("growth-*.toml"))


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.stem)
def test_the_shipped_configurations_bind(path):
    for config in bind(RecordConfig, read(path), path).growth:
        assert config.setup.threads == 1
        assert config.choices.nodes <= 100
