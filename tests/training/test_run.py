"""A whole run: its budget, the allocation, and what is in its folder."""

import csv
import json
import signal
from dataclasses import replace
from itertools import count
from types import SimpleNamespace

import pytest
import torch

from rota.core.errors import ConfigError, InputError
from rota.training import run as run_module
from rota.training.clock import Length, ProfiledClock, StoppedClock, WallClock
from rota.training.config import AllocationChange, TrainConfig
from rota.training.exchange import FromStorage
from rota.training.hyper import Hyperparameters
from rota.training.run import TrainingRun
from rota.training.setup import Setup

SETUP = Setup(model="convnet2", data="digits", threads=1, hyper=Hyperparameters(lr=0.003))


def config(**values) -> TrainConfig:
    return TrainConfig(**{"setup": SETUP, "epoch": Length(steps=5), **values})


def test_a_run_leaves_its_epochs_and_its_result(tmp_path):
    epochs = list(TrainingRun(config(epochs=3), tmp_path, "rota train x").epochs())
    assert [epoch.steps for epoch in epochs] == [5, 10, 15]
    with (tmp_path / "epochs.csv").open() as stream:
        rows = list(csv.DictReader(stream))
    assert [float(row["validation_accuracy"]) for row in rows] == [e.metrics["accuracy"] for e in epochs]
    result = json.loads((tmp_path / "result.json").read_text())
    assert result["validation"] == epochs[-1].metrics
    assert result["provenance"]["command"] == "rota train x"
    assert result["steps"] == 15


def test_what_is_done_is_not_done_again(tmp_path):
    first = list(TrainingRun(config(epochs=2), tmp_path, "").epochs())
    result = (tmp_path / "result.json").stat().st_mtime_ns
    assert list(TrainingRun(config(epochs=2), tmp_path, "").epochs()) == first
    assert (tmp_path / "result.json").stat().st_mtime_ns == result


def test_a_run_that_was_stopped_goes_on_and_ends_as_if_it_had_not_been(tmp_path):
    whole = list(TrainingRun(config(budget_steps=22, checkpoint_every_s=0.0), tmp_path / "a", "").epochs())

    for epoch in TrainingRun(config(budget_steps=22, checkpoint_every_s=0.0), tmp_path / "b", "").epochs():
        if epoch.number == 2:
            break  # stopped: the checkpoint of the epoch before is the last
    again = list(TrainingRun(config(budget_steps=22, checkpoint_every_s=0.0), tmp_path / "b", "").epochs())

    assert [(e.steps, e.loss, e.metrics) for e in again] == [(e.steps, e.loss, e.metrics) for e in whole]
    results = [json.loads((tmp_path / name / "result.json").read_text()) for name in "ab"]
    assert results[0]["test"] == results[1]["test"]


@pytest.mark.usefixtures("on_profile")
@pytest.mark.parametrize("budget", [7, 10])
def test_a_run_that_is_stopped_after_any_step_ends_as_if_it_had_not_been(tmp_path, budget):
    """Also after the last one: of an epoch that the budget cuts short, or of a whole one."""
    asked = config(setup=replace(SETUP, model="feedforward1"), budget_steps=budget)
    whole = list(TrainingRun(asked, tmp_path / "whole", "").epochs())
    for stopped_after in range(1, budget + 1):
        steps = count(1)

        def stop(steps=steps, last=stopped_after):
            if next(steps) == last:
                signal.raise_signal(signal.SIGINT)

        folder = tmp_path / str(stopped_after)
        with pytest.raises(KeyboardInterrupt):
            list(TrainingRun(asked, folder, "").epochs(stop))
        assert list(TrainingRun(asked, folder, "").epochs()) == whole
        results = [json.loads((each / "result.json").read_text()) for each in (folder, tmp_path / "whole")]
        assert [{**each, "provenance": None} for each in results[:1]] == [{**results[1], "provenance": None}]


def test_what_is_checked_beforehand_is_not_paid_from_the_budget(tmp_path, monkeypatch):
    happened = []

    class Watched(WallClock):
        def now_s(self):
            happened.append("a look at the clock")
            return super().now_s()

    class Asked:
        def probabilities(self, observation):
            happened.append("a question")
            return [1.0, *[0.0] * (len(observation.actions) - 1)]

    monkeypatch.setattr(TrainingRun, "_clock", lambda self: Watched(torch.device("cpu")))
    asked = config(epochs=1, budget_s=1e6, allocation=(AllocationChange(0.0, "up"),), decisions=1)
    list(TrainingRun(asked, tmp_path, "", Asked()).epochs())
    assert happened[:2] == ["a question", "a look at the clock"]


def test_a_network_that_there_was_no_time_to_train_is_not_a_result(tmp_path, monkeypatch):
    class Jumps(WallClock):
        """Fits at first, and is over at the next look."""

        looks = 0

        def now_s(self):
            self.looks += 1
            return 0.0 if self.looks == 1 else 2.0

    monkeypatch.setattr(TrainingRun, "_clock", lambda self: Jumps(torch.device("cpu")))
    with pytest.raises(InputError, match="shorter than the first batch"):
        list(TrainingRun(config(budget_s=1.0), tmp_path, "").epochs())
    assert not (tmp_path / "result.json").exists()


@pytest.mark.parametrize(("named", "fits"), [("digits", True), (None, True), ("cifar10", False)])
def test_a_profile_is_of_the_same_data_whether_they_were_named_or_not(tmp_path, monkeypatch, named, fits):
    asked = {"model": "convnet2", "data": named, "size": None, "hyper": {"batch_size": 64}}
    tree = SimpleNamespace(details={"asked": {"setup": asked}, "seconds_per_step": {}})
    monkeypatch.setattr(run_module, "read_tree", lambda folder: tree)
    runs = [
        TrainingRun(config(setup=replace(SETUP, data=data), epochs=1, profile=tmp_path), tmp_path, "")
        for data in ("digits", None)
    ]
    for run in runs:
        if fits:
            assert isinstance(run._clock(), ProfiledClock)
        else:
            with pytest.raises(InputError, match="recorded with data 'cifar10', this is 'digits'"):
                run._clock()


def test_a_profile_is_of_the_same_storage(tmp_path, monkeypatch):
    asked = {"model": "convnet2", "data": "digits", "size": None, "hyper": {"batch_size": 64}}
    tree = SimpleNamespace(details={"asked": {"setup": asked}, "seconds_per_step": {}})
    monkeypatch.setattr(run_module, "read_tree", lambda folder: tree)
    slow = replace(SETUP, data="digits", storage_mb_s=2.0)
    with pytest.raises(InputError, match=r"recorded with storage_mb_s None, this is 2\.0"):
        TrainingRun(config(setup=slow, epochs=1, profile=tmp_path), tmp_path, "")._clock()


def test_who_trains_by_a_profile_does_not_wait_for_storage_that_its_clock_knows(tmp_path, monkeypatch):
    asked = {"model": "convnet2", "data": "digits", "size": None, "storage_mb_s": 1e-6}
    asked |= {"hyper": {"batch_size": 64}}
    step_times = {SETUP.trainer(StoppedClock(), seed=0).structure.fingerprint: 0.5}
    tree = SimpleNamespace(
        details={"asked": {"setup": {**asked, "storage_mb_s": 1e-6}}, "seconds_per_step": step_times}
    )
    monkeypatch.setattr(run_module, "read_tree", lambda folder: tree)
    slow = replace(SETUP, storage_mb_s=1e-6)
    monkeypatch.setattr(FromStorage, "batch", lambda *_: pytest.fail("waited for storage"))
    run = TrainingRun(config(setup=slow, epochs=1, budget_s=2.0, profile=tmp_path), tmp_path / "out", "")
    assert [epoch.steps for epoch in run.epochs()] == [4]  # of 0.5 s each


def test_an_external_allocation_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="external_allocation: no cluster sets"):
        TrainingRun(config(epochs=1, external_allocation=True), tmp_path, "")


def test_room_lets_the_network_grow_and_less_room_makes_it_shrink(tmp_path):
    run = TrainingRun(
        config(
            epochs=7,
            changes=("deepen 1", "nothing", "deepen 0"),
            allocation=(AllocationChange(0.0, "up"), AllocationChange(1e9, "down")),
        ),
        tmp_path,
        "",
    )
    layers = [len(run.trainer.structure.layers) for _ in run.epochs()]
    assert layers == [14, 14, 17, 17, 17, 17, 17]  # one convolution, normalisation, ReLU more each time
    made = json.loads((tmp_path / "result.json").read_text())["changes"]
    assert made == [{"steps": 0, "change": "deepen 1"}, {"steps": 10, "change": "deepen 0"}]


@pytest.fixture
def on_profile(monkeypatch):
    """Every step takes 0.1 s."""

    class Equal:
        def __getitem__(self, key):
            return 0.1

    monkeypatch.setattr(TrainingRun, "_clock", lambda self: ProfiledClock(Equal()))


UP_AND_DOWN = (
    AllocationChange(0.95, "up"),
    AllocationChange(2.0, "down"),
    AllocationChange(2.45, "up"),
    AllocationChange(3.0, "down"),
)


@pytest.mark.usefixtures("on_profile")
def test_when_room_is_taken_back_all_growth_is_and_the_small_network_learns_from_the_large_one(tmp_path):
    run = TrainingRun(
        config(budget_s=4.0, changes=("deepen 1", "deepen 0"), allocation=UP_AND_DOWN), tmp_path, ""
    )
    seen = [
        (e.steps, len(run.trainer.structure.layers), run.trainer.teacher is not None) for e in run.epochs()
    ]
    assert seen == [
        (5, 11, False),
        (10, 11, False),  # 0.95 s: room for more, which is used before the epochs that follow
        (15, 14, False),
        (20, 17, False),  # 2.0 s: all of it is taken back
        (25, 11, True),  # 2.45 s: room again, but nothing more is asked for
        (30, 11, True),
        (35, 11, True),
        (40, 11, True),
    ]
    made = json.loads((tmp_path / "result.json").read_text())["changes"]
    assert [(each["steps"], each["change"]) for each in made] == [
        (10, "deepen 1"),
        (15, "deepen 0"),
        (20, "shrink"),
        (20, "shrink"),
    ]


@pytest.mark.usefixtures("on_profile")
@pytest.mark.parametrize("stopped_after", [1, 2, 3, 4])
def test_a_run_that_is_stopped_anywhere_on_the_way_up_and_down_ends_the_same(tmp_path, stopped_after):
    asked = config(
        budget_s=3.0, changes=("deepen 1", "shrink"), allocation=UP_AND_DOWN, checkpoint_every_s=0.0
    )
    whole = list(TrainingRun(asked, tmp_path / "a", "").epochs())
    steps = 0

    def count():
        nonlocal steps
        steps += 1

    for number, _ in enumerate(TrainingRun(asked, tmp_path / "b", "").epochs(count), 1):
        if number == stopped_after + 1:
            break
    first, steps = steps, 0
    again = list(TrainingRun(asked, tmp_path / "b", "").epochs(count))
    assert again == whole
    assert 0 < steps < 30  # what was saved is not trained again
    assert first + steps <= 30 + 5  # of what was stopped, at most the last epoch is
    results = [json.loads((tmp_path / name / "result.json").read_text()) for name in "ab"]
    assert results[0]["test"] == results[1]["test"]
    assert results[0]["test"] != results[0]["validation"]


def test_a_budget_shorter_than_one_batch_is_an_error(tmp_path):
    with pytest.raises(InputError, match="shorter than"):
        list(TrainingRun(config(budget_s=1e-9), tmp_path, "").epochs())


def test_another_run_in_the_folder_is_not_overwritten(tmp_path):
    list(TrainingRun(config(epochs=1), tmp_path, "").epochs())
    before = (tmp_path / "result.json").read_bytes()
    with pytest.raises(InputError, match="another run is there"):
        list(TrainingRun(config(epochs=2), tmp_path, "").epochs())
    assert (tmp_path / "result.json").read_bytes() == before


def test_a_failed_epoch_ends_the_run_and_is_told(tmp_path):
    setup = Setup(
        model="feedforward1", data="digits", threads=1, optimizer="sgd", hyper=Hyperparameters(lr=1e30)
    )
    epochs = list(TrainingRun(config(setup=setup, epochs=5), tmp_path, "").epochs())
    assert epochs[-1].ended == "failed"
    assert len(epochs) == 1
    assert "try a smaller lr" in json.loads((tmp_path / "result.json").read_text())["failure"]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({}, "how long"),
        ({"epochs": 0}, "epochs is 0"),
        ({"epochs": 1, "seed": -1}, "seed -1: give a whole number, 0 or more"),
        ({"epochs": 1, "changes": ("deepen 0",)}, "allocation goes up"),
        ({"epochs": 1, "changes": ("deepn 0",)}, "Did you mean 'deepen'"),
        (
            {"epochs": 1, "allocation": (AllocationChange(2.0, "up"), AllocationChange(1.0, "down"))},
            "order of time",
        ),
    ],
)
def test_what_cannot_be_meant_is_refused(values, message):
    with pytest.raises(ConfigError, match=message):
        config(**values)
