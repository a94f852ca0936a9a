"""What a finished experiment says of itself."""

from datetime import datetime, timedelta

import pytest

import rota.sweeps as ss
from rota.sweeps.trial import SweepStatus, Trial


def train(cfg):
    for step in range(3):
        ss.log({"loss": cfg["x"] * (3 - step), "time": step}, step)
    if cfg["x"] == 3:
        ss.log({"loss": float("nan")}, 3)


@pytest.fixture
def result(sweep):
    return sweep(train, {"x": ss.Grid([2, 1, 3]), "net": {"width": 8}}, asha=None).run()


def test_the_best_trial_is_by_the_best_value_at_any_iteration(result):
    assert result.best_trial("loss", "min").cfg["x"] == 1
    assert result.best_trial("loss", "max").cfg["x"] == 3
    assert result.experiment == "MySweep"


def test_without_a_metric_there_is_no_best(result):
    with pytest.raises(ValueError, match="give a metric"):
        result.best_trial()
    with pytest.raises(ValueError, match="no trial has logged 'error'; logged were: loss, time"):
        result.best_trial("error", "min")


def test_metric_and_mode_are_those_of_asha_also_when_read_later(sweep, tmp_path):
    sweep(train, {"x": ss.Grid([2, 1])}, asha=ss.ASHA("loss", "max", max_t=60, min_t=50)).run()
    assert ss.Result("MySweep", tmp_path / "sweeps").best_trial().cfg["x"] == 2


def test_the_summary_is_a_table_with_configuration_and_last_metrics(result):
    table = result.summary()
    assert list(table.columns) == [
        "trial_id",
        "status",
        "runtime",
        "iteration",
        "x",
        "net.width",
        "loss",
        "time",
    ]
    assert table["x"].tolist() == [2, 1, 3]
    assert table["loss"].tolist()[:2] == [2, 1]
    assert table["status"].tolist() == ["completed"] * 3
    assert list(result.summary(cfg_and_metrics=["loss"]).columns)[4:] == ["loss"]
    assert list(result.summary(cfg_and_metrics=False).columns)[4:] == []
    assert len(result.summary(rows=2)) == 2


def test_the_best_come_first_where_it_is_known_what_is_good(sweep):
    result = sweep(train, {"x": ss.Grid([2, 1, 3])}, asha=ss.ASHA("loss", "min", min_t=50, max_t=60)).run()
    assert result.summary()["x"].tolist() == [1, 2, 3]


def test_the_result_of_nothing_is_not_found(tmp_path):
    with pytest.raises(ss.ExperimentNotFoundError, match="no such experiment"):
        ss.Result("Nothing", tmp_path)


def test_an_experiment_without_trials_has_an_empty_table(sweep, tmp_path):
    sweep(train, {"x": 1})
    result = ss.Result("MySweep", tmp_path / "sweeps")
    assert result.trials == []
    assert result.summary().empty


def test_a_trial_begins_with_nothing():
    trial = Trial(cfg={"x": 1})
    assert (trial.status, trial.runtime, trial.metrics, trial.process) == (None, None, {}, None)
    assert not trial.is_terminated()


def test_the_id_of_a_trial_is_that_of_its_configuration_in_whatever_order():
    assert Trial({"a": 1, "b": 2}).trial_id == Trial({"b": 2, "a": 1}, status="running").trial_id
    assert Trial({"a": 1}).trial_id != Trial({"a": 2}).trial_id
    assert Trial({"a": 1}).trial_id != Trial({"a": "1"}).trial_id


@pytest.mark.parametrize("status", list(SweepStatus))
def test_the_terminated_are_completed_pruned_or_failed(status):
    assert Trial({}, status=str(status)).is_terminated() == (status in ("completed", "pruned", "failed"))


def test_runtime_is_from_start_to_end_or_until_now():
    begin = datetime(2024, 5, 1, 12, 0, 0)
    assert Trial({}, start_time=begin, end_time=begin + timedelta(seconds=90)).runtime == timedelta(
        seconds=90
    )
    now = Trial({}, start_time=datetime.now() - timedelta(seconds=5)).runtime
    assert now is not None
    assert 5 <= now.total_seconds() < 60
