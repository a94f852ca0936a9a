"""Curves: what they say, and that they read back exactly."""

import math
from dataclasses import replace

import numpy as np
import pytest

from rota.core.errors import InputError
from rota.recordings.curve import CurvePoint, Curves, CurveSetting, read_curves, write_curves


def test_a_setting_as_arrays(curves):
    setting = curves.settings["a"]
    assert len(setting) == 3
    assert setting.steps.tolist() == [50, 100, 150]
    assert setting.seconds.tolist() == [0.5, 1.0, 1.5]
    assert setting.metrics["loss"].tolist() == [1.0, 0.5, 1 / 3]
    assert setting.metrics["accuracy"].tolist() == [0.25, 0.5, 0.75]


def test_what_is_missing_is_a_setting_not_there_or_cut_short(curves):
    assert curves.missing() == ("b", "c")
    assert replace(curves, intervals=0, planned=()).missing() == ()


def test_a_setting_at_which_training_failed_is_not_missing_and_is_kept(curves, tmp_path):
    hyper = {"lr": 10.0, "batch_size": 64, "rule": "sgd"}
    write_curves(tmp_path, replace(curves, failed={"b": curves.settings["b"].hyper, "c": hyper}))
    found = read_curves(tmp_path)
    assert found.missing() == ()
    assert found.failed["c"] == hyper
    assert [each["lr"] for each in found.tried] == [0.1, 1e-3, 10.0]
    with pytest.raises(InputError, match="failed setting 'c' has lr; expected"):
        replace(curves, failed={"c": {"lr": 10.0}})


def test_the_main_metric_is_the_first_that_was_measured(curves, origin):
    assert curves.main_metric == "accuracy"
    row = CurvePoint(1, 1, math.nan, {"reward": 2.0})
    only = Curves(
        "dqn", "", (), 1, {"a": CurveSetting.of("a", {}, "", 0, [row])}, origin, metrics=("reward",)
    )
    assert only.main_metric == "reward"


def test_what_is_written_reads_back_exactly(curves, tmp_path):
    write_curves(tmp_path, curves)
    found = read_curves(tmp_path)
    for name in ("model", "data", "hyper", "intervals", "planned", "metrics", "provenance"):
        assert getattr(found, name) == getattr(curves, name)
    assert list(found.settings) == ["a", "b"]
    for name, setting in curves.settings.items():
        again = found.settings[name]
        assert (again.hyper, again.device, again.seed) == (setting.hyper, setting.device, setting.seed)
        assert isinstance(again.hyper["batch_size"], int)
        for column in ("interval", "steps", "seconds"):
            np.testing.assert_array_equal(getattr(again, column), getattr(setting, column))
        for metric in ("loss", "accuracy", "f1"):
            np.testing.assert_array_equal(again.metrics[metric], setting.metrics[metric])


def test_the_file_is_plain(curves, tmp_path):
    write_curves(tmp_path, curves)
    lines = (tmp_path / "curves.csv").read_text().splitlines()
    assert lines[0] == "setting,lr,batch_size,rule,device,seed,interval,steps,seconds,loss,accuracy,f1"
    assert lines[1] == "a,0.1,64,sgd,cpu,1,1,50,0.5,1.0,0.25,0.125"
    assert len(lines) == 6


def test_a_setting_of_other_hyper_parameters_is_refused(curves):
    other = CurveSetting.of("a", {"lr": 0.1}, "cpu", 1, [])
    with pytest.raises(InputError, match="setting 'a' is 'a' with lr; expected"):
        replace(curves, settings={"a": other})


def test_a_metric_that_was_not_named_is_refused(curves):
    with pytest.raises(InputError, match="also has f1; name it in metrics"):
        replace(curves, metrics=("loss", "accuracy"))


@pytest.mark.parametrize("name", ["seed", "loss"])
def test_two_columns_of_one_name_are_refused(origin, tmp_path, name):
    with pytest.raises(InputError, match=f"two columns would be called '{name}'"):
        write_curves(tmp_path, Curves("m", "d", (name,), 1, {}, origin))
    assert list(tmp_path.iterdir()) == []
