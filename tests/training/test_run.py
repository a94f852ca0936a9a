"""A whole run: its budget, the allocation, and what is in its folder."""

import csv
import json

import pytest

from rota.core.errors import ConfigError, InputError
from rota.training.experiment import Allocation, TrainConfig
from rota.training.hyper import Hyperparameters
from rota.training.run import Run
from rota.training.setup import Setup
from rota.training.trainer import Length

SETUP = Setup(model="convnet2", data="digits", threads=1, hyper=Hyperparameters(lr=0.003))


def config(**values) -> TrainConfig:
    return TrainConfig(**{"setup": SETUP, "epoch": Length(steps=5), **values})


def test_a_run_leaves_its_epochs_and_its_result(tmp_path):
    epochs = list(Run(config(epochs=3), tmp_path, "rota train x").epochs())
    assert [epoch.steps for epoch in epochs] == [5, 10, 15]
    with (tmp_path / "epochs.csv").open() as stream:
        rows = list(csv.DictReader(stream))
    assert [float(row["validation_accuracy"]) for row in rows] == [e.metrics["accuracy"] for e in epochs]
    result = json.loads((tmp_path / "result.json").read_text())
    assert result["validation"] == epochs[-1].metrics
    assert result["provenance"]["command"] == "rota train x"
    assert result["steps"] == 15


def test_what_is_done_is_not_done_again(tmp_path):
    first = list(Run(config(epochs=2), tmp_path, "").epochs())
    result = (tmp_path / "result.json").stat().st_mtime_ns
    assert list(Run(config(epochs=2), tmp_path, "").epochs()) == first
    assert (tmp_path / "result.json").stat().st_mtime_ns == result


def test_a_run_that_was_stopped_goes_on_and_ends_as_if_it_had_not_been(tmp_path):
    whole = list(Run(config(budget_steps=22, checkpoint_every_s=0.0), tmp_path / "a", "").epochs())

    for epoch in Run(config(budget_steps=22, checkpoint_every_s=0.0), tmp_path / "b", "").epochs():
        if epoch.number == 2:
            break  # stopped: the checkpoint of the epoch before is the last
    again = list(Run(config(budget_steps=22, checkpoint_every_s=0.0), tmp_path / "b", "").epochs())

    assert [(e.steps, e.loss, e.metrics) for e in again] == [(e.steps, e.loss, e.metrics) for e in whole]
    results = [json.loads((tmp_path / name / "result.json").read_text()) for name in "ab"]
    assert results[0]["test"] == results[1]["test"]


def test_room_lets_the_network_grow_and_less_room_makes_it_shrink(tmp_path):
    run = Run(
        config(
            epochs=7,
            changes=("deepen 1", "nothing", "deepen 0"),
            allocation=(Allocation(0.0, "up"), Allocation(1e9, "down")),
        ),
        tmp_path,
        "",
    )
    layers = [len(run.trainer.structure.layers) for _ in run.epochs()]
    assert layers == [14, 14, 17, 17, 17, 17, 17]  # one convolution, normalisation, ReLU more each time
    made = json.loads((tmp_path / "result.json").read_text())["changes"]
    assert made == [{"steps": 0, "change": "deepen 1"}, {"steps": 10, "change": "deepen 0"}]


def test_when_room_is_taken_back_the_small_network_learns_from_the_large_one(tmp_path):
    run = Run(
        config(
            budget_steps=60,
            changes=("deepen 1", "deepen 0"),
            allocation=(Allocation(0.0, "up"), Allocation(0.05, "down")),
        ),
        tmp_path,
        "",
    )
    layers, taught = [], []
    for _ in run.epochs():
        layers.append(len(run.trainer.structure.layers))
        taught.append(run.trainer.teacher is not None)
    assert max(layers) > 11
    assert layers[-1] == 11
    assert any(taught)


def test_a_budget_shorter_than_one_batch_is_an_error(tmp_path):
    with pytest.raises(InputError, match="shorter than"):
        list(Run(config(budget_s=1e-9), tmp_path, "").epochs())


def test_another_run_in_the_folder_is_not_overwritten(tmp_path):
    list(Run(config(epochs=1), tmp_path, "").epochs())
    before = (tmp_path / "result.json").read_bytes()
    with pytest.raises(InputError, match="another run is there"):
        list(Run(config(epochs=2), tmp_path, "").epochs())
    assert (tmp_path / "result.json").read_bytes() == before


def test_a_failed_epoch_ends_the_run_and_is_told(tmp_path):
    setup = Setup(
        model="feedforward1", data="digits", threads=1, optimizer="sgd", hyper=Hyperparameters(lr=1e30)
    )
    epochs = list(Run(config(setup=setup, epochs=5), tmp_path, "").epochs())
    assert epochs[-1].ended == "failed"
    assert len(epochs) == 1
    assert "try a smaller lr" in json.loads((tmp_path / "result.json").read_text())["failure"]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({}, "how long"),
        ({"epochs": 0}, "epochs is 0"),
        ({"epochs": 1, "changes": ("deepen 0",)}, "allocation goes up"),
        ({"epochs": 1, "changes": ("deepn 0",)}, "Did you mean 'deepen'"),
        ({"epochs": 1, "allocation": (Allocation(2.0, "up"), Allocation(1.0, "down"))}, "order of time"),
    ],
)
def test_what_cannot_be_meant_is_refused(values, message):
    with pytest.raises(ConfigError, match=message):
        config(**values)
