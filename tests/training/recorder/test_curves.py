"""Curves: every setting of the grid, interval by interval."""

import math
from dataclasses import replace

import numpy as np
import pytest

from rota.core.errors import ConfigError, InputError
from rota.recordings.curve import read_curves
from rota.recordings.library import unfinished
from rota.training.hyper import Hyperparameters
from rota.training.recorder import curves as recorder_module
from rota.training.recorder.curves import CurvesConfig, CurvesRecorder
from rota.training.recorder.partial import RecordingProgress
from rota.training.setup import Setup

SETUP = Setup(model="feedforward1", data="digits", threads=1, optimizer="sgd")
CONFIG = CurvesConfig(
    name="test",
    setup=SETUP,
    grid={"lr": (0.1, 1e30), "batch_size": (8.0, 16.0)},
    intervals=3,
    steps=4,
)


def record(out, config=CONFIG):
    with RecordingProgress(quiet=True) as progress:
        return list(CurvesRecorder(out, config, "rota record test", 1).record(progress))


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """Recorded in another process."""
    out = tmp_path_factory.mktemp("curves")
    assert record(out) == [out / "curves" / "test"]
    return out


def test_settings_intervals_and_metrics_are_there(recorded):
    curves = read_curves(recorded / "curves" / "test")
    assert list(curves.settings) == ["lr=0.1,batch_size=8", "lr=0.1,batch_size=16"]
    good = curves.settings["lr=0.1,batch_size=16"]
    assert good.hyper == {"lr": 0.1, "batch_size": 16}
    assert good.steps.tolist() == [4, 8, 12]
    assert good.metrics["accuracy"][-1] > 0.3
    assert good.metrics["validation_loss"][-1] < good.metrics["validation_loss"][0]
    assert np.allclose(good.seconds, good.seconds[0])
    assert good.seconds[0] > 0


def test_a_setting_that_fails_at_once_is_not_missing_but_failed(recorded):
    curves = read_curves(recorded / "curves" / "test")
    assert curves.missing() == ()
    assert curves.failed == {
        "lr=1e+30,batch_size=8": {"lr": 1e30, "batch_size": 8},
        "lr=1e+30,batch_size=16": {"lr": 1e30, "batch_size": 16},
    }


def test_what_is_recorded_is_not_recorded_again(recorded, monkeypatch):
    monkeypatch.setattr(recorder_module, "run_dag", None)
    assert record(recorded) == []
    with pytest.raises(InputError, match="was recorded with other settings"):
        record(recorded, CurvesConfig(name="test", setup=SETUP, intervals=4))


def test_stopped_it_is_resumed(recorded, tmp_path, monkeypatch):
    def in_turn(limit):
        def run_dag(work, ready, then, workers):
            for number, piece in enumerate(ready):
                if number == limit:
                    raise KeyboardInterrupt
                work(piece)
                done.append(piece)
                yield piece

        return run_dag

    done = []
    monkeypatch.setattr(recorder_module, "run_dag", in_turn(1))
    with pytest.raises(KeyboardInterrupt):
        record(tmp_path)
    monkeypatch.setattr(recorder_module, "run_dag", in_turn(None))
    record(tmp_path)
    assert sorted(done) == sorted(CONFIG.settings())  # each once
    mine, theirs = (read_curves(out / "curves" / "test") for out in (tmp_path, recorded))
    assert list(mine.settings) == list(theirs.settings)
    for name, setting in mine.settings.items():
        np.testing.assert_array_equal(setting.metrics["accuracy"], theirs.settings[name].metrics["accuracy"])


@pytest.mark.parametrize("beside", [0, 1])
def test_what_cannot_be_trained_is_found_before_anything_is_begun(tmp_path, monkeypatch, beside):
    """So that it can be corrected: nothing unfinished is there that would be of other settings."""
    monkeypatch.setenv("ROTA_DATA", str(tmp_path / "nowhere"))
    monkeypatch.setattr(recorder_module, "TIMING_ROUNDS", 1)
    config = replace(CONFIG, grid={}, intervals=1, copies=beside)
    with pytest.raises(InputError, match="cifar100: not here"):
        record(tmp_path, replace(config, setup=replace(SETUP, data="cifar100")))
    assert unfinished(tmp_path) == {}
    assert not (tmp_path / "partial" / "curves-test").exists()


def test_seconds_that_were_measured_are_not_a_piece(tmp_path):
    with RecordingProgress(quiet=True) as progress:
        CurvesRecorder(tmp_path, CONFIG, "", 1)._measure(progress)
    assert list((tmp_path / "partial" / "curves-test").iterdir())
    assert unfinished(tmp_path) == {}


def test_a_model_without_images_has_data_of_its_own(tmp_path, monkeypatch):
    monkeypatch.setattr(
        recorder_module, "run_dag", lambda work, names, *_: (work(name) or name for name in names)
    )
    setup = Setup(model="dqn", threads=1, hyper=Hyperparameters(batch_size=8))
    (folder,) = record(tmp_path, CurvesConfig(name="games", setup=setup, intervals=1, steps=1))
    assert read_curves(folder).data == "cartpole"


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"grid": {"learning_rate": (0.1,)}}, "unknown hyper-parameter 'learning_rate'"),
        ({"grid": {"momentun": (0.1,)}}, "Did you mean 'momentum'"),
        ({"grid": {"lr": ()}}, "one or more values"),
        ({"grid": {"lr": (0.1, 0.1)}}, "each of them once"),
        ({"grid": {"lr": (0.1, -0.1)}}, "lr is -0.1"),
        ({"grid": {"batch_size": (8.5,)}}, "whole numbers"),
        ({"grid": {"batch_size": (math.inf,)}}, "whole numbers"),
        ({"seed": -1}, "seed -1: give a whole number, 0 or more"),
        ({"intervals": 0}, "intervals is 0"),
        ({"name": "../x"}, "letters, digits"),
    ],
)
def test_what_cannot_be_recorded_is_refused(values, message):
    with pytest.raises(ConfigError, match=message):
        CurvesConfig(**{"name": "test", "setup": SETUP, **values})
