"""Seconds of intervals of concurrent copies."""

import math
from dataclasses import replace

import pytest
import torch

from rota.core.errors import ConfigError, InputError
from rota.core.processes import WorkerLost
from rota.recordings.curve import read_curves
from rota.simulator.noise import ReportOverhead
from rota.training.exchange import FromStorage
from rota.training.recorder import curves
from rota.training.recorder.curves import (
    TIMING_ROUNDS,
    CopyTimings,
    CurvesConfig,
    CurvesRecorder,
    IntervalTimes,
    TimedNetwork,
    _groups,
    mean,
)
from rota.training.recorder.partial import Partial, RecordingProgress
from rota.training.setup import Setup

SETUP = Setup(model="feedforward1", data="digits", threads=1, optimizer="sgd")
CONFIG = CurvesConfig(
    name="pair", setup=SETUP, grid={"batch_size": (8.0, 16.0)}, intervals=2, steps=4, copies=2
)


def in_turn(work, names, then, workers):
    """Do it in this process."""
    for name in names:
        work(name)
        yield name


@pytest.fixture(scope="module")
def copies():
    """What two copies measured in processes of their own, once."""
    return CopyTimings(SETUP, (8, 16), 4, 0, 2)._all()


@pytest.fixture(scope="module")
def recorded(tmp_path_factory, copies):
    """Recorded with two timing rounds that measured the same."""
    out = tmp_path_factory.mktemp("copies")
    with pytest.MonkeyPatch.context() as patch, RecordingProgress(quiet=True) as progress:
        patch.setattr(curves, "TIMING_ROUNDS", 2)
        patch.setattr(curves, "run_dag", in_turn)
        patch.setattr(CopyTimings, "_all", lambda _: copies)
        (folder,) = CurvesRecorder(out, CONFIG, "rota record test", 1).record(progress)
    return folder


def test_seconds_per_step_of_each_batch_size_are_kept(recorded):
    found = read_curves(recorded)
    known = {size: seconds for _, size, seconds in found.details["seconds_per_step"]}
    assert sorted(known) == [8, 16]
    for setting in found.settings.values():
        step_s = known[setting.hyper["batch_size"]]
        assert setting.seconds.tolist() == pytest.approx([4 * step_s, 4 * step_s])


def test_the_overhead_of_a_report_is_what_a_simulation_reads(recorded):
    found = ReportOverhead.recorded(read_curves(recorded).details)
    assert all(seconds > 0.0 for seconds in (found.load_s, found.evaluate_s, found.save_s))


def test_only_what_was_asked_for_is_named_so_that_earlier_recordings_are_known_again(tmp_path, monkeypatch):
    monkeypatch.setattr(curves, "run_dag", in_turn)
    alone = CurvesConfig(name="alone", setup=SETUP, intervals=1, steps=1)
    with RecordingProgress(quiet=True) as progress:
        (folder,) = CurvesRecorder(tmp_path, alone, "rota record test", 1).record(progress)
        details = read_curves(folder).details
        assert "copies" not in details["asked"]
        assert "storage_mb_s" not in details["asked"]["setup"]
        assert "overhead" not in details
        slower = replace(alone, setup=replace(SETUP, storage_mb_s=1.0))
        with pytest.raises(InputError, match="was recorded with other settings"):
            list(CurvesRecorder(tmp_path, slower, "rota record test", 1).record(progress))


def test_waiting_for_storage_is_measured(tmp_path):
    """64 images of 8 × 8 numbers of 4 bytes take 0.05 s."""
    slow = replace(SETUP, storage_mb_s=0.32768)
    assert TimedNetwork(CopyTimings(slow, (64,), 2, 0, 1), 64, tmp_path / "checkpoint").train().step_s >= 0.05


def test_how_good_a_network_becomes_takes_no_waiting(tmp_path, monkeypatch):
    monkeypatch.setattr(FromStorage, "batch", lambda *_: pytest.fail("waited for storage"))
    config = CurvesConfig(name="slow", setup=replace(SETUP, storage_mb_s=1e-3), intervals=2, steps=3)
    (name,), kept = config.settings(), Partial(tmp_path, "slow")
    curves.train(config, kept, name)
    assert [(number, steps) for number, steps, _ in kept.get(name)] == [(0, 3), (1, 6)]


def test_an_interval_takes_as_long_as_it_does_on_average():
    parts = [
        IntervalTimes(0.0, 1.0, 4.0, 2.0),
        IntervalTimes(1.0, 1.0, 4.0, 2.0),
        IntervalTimes(2.0, 4.0, 4.0, 5.0),
    ]
    assert mean(parts) == IntervalTimes(1.0, 2.0, 4.0, 3.0)


def test_timing_rounds_are_spread_over_the_recording(monkeypatch, tmp_path):
    """A machine that is three times as slow after the last setting is so in one round of five."""
    step_times = iter([1.0] * (TIMING_ROUNDS - 1) + [3.0])
    trained_before = []

    def measured(self):
        trained_before.append(len(list(tmp_path.rglob("batch_size=*.json"))))
        return {8: [IntervalTimes(0.0, next(step_times), 0.0, 0.0)]}

    monkeypatch.setattr(CopyTimings, "measure", measured)
    monkeypatch.setattr(curves, "run_dag", in_turn)
    grid = {"batch_size": (8.0,), "lr": (0.01, 0.02, 0.03, 0.04)}
    config = CurvesConfig(name="pair", setup=SETUP, grid=grid, intervals=1, steps=1, copies=2)
    with RecordingProgress(quiet=True) as progress:
        (folder,) = CurvesRecorder(tmp_path, config, "rota record test", 2).record(progress)
    assert trained_before == [0, 1, 2, 3, 4]
    assert [each.seconds.tolist() for each in read_curves(folder).settings.values()] == [
        [pytest.approx(1.4)]
    ] * 4


@pytest.mark.parametrize(
    ("names", "count", "groups"),
    [("", 4, []), ("a", 4, ["a"]), ("abcdef", 4, ["a", "bc", "d", "ef"]), ("abc", 1, ["abc"])],
)
def test_groups_leave_nothing_out(names, count, groups):
    assert _groups(list(names), count) == [list(group) for group in groups]


def test_each_copy_measures_as_often_as_it_should(copies):
    assert [{size: len(times) for size, times in each.items()} for each in copies] == [
        {8: curves.TIMED_INTERVALS, 16: curves.TIMED_INTERVALS}
    ] * 2


def test_a_copy_that_dies_is_noticed():
    broken = CopyTimings(SETUP, (8,), 0, 0, 1)  # step time of no steps: the copy ends with an error
    with pytest.raises(WorkerLost, match="a worker died"):
        broken.measure()


def test_what_a_copy_cannot_train_is_an_error_that_says_so(monkeypatch, tmp_path):
    monkeypatch.setenv("ROTA_DATA", str(tmp_path))
    with pytest.raises(InputError, match="cifar100: not here"):
        CopyTimings(replace(SETUP, data="cifar100"), (8,), 2, 0, 1).measure()


def test_steps_that_fail_are_not_taken_for_fast_ones(tmp_path):
    part = TimedNetwork(CopyTimings(SETUP, (8,), 2, 0, 1), 8, tmp_path / "checkpoint")
    with torch.no_grad():
        next(part._trial._trainer.network.parameters()).fill_(math.nan)
    (tmp_path / "checkpoint").write_bytes(part._trial.save())
    with pytest.raises(InputError, match="seconds per step cannot be measured"):
        part.train()


def test_fewer_than_none_are_refused():
    with pytest.raises(ConfigError, match="copies is -1"):
        CurvesConfig(name="test", setup=SETUP, copies=-1)
