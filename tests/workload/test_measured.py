"""Jobs that take as long as was measured on one's own machines."""

import math
from dataclasses import replace

import numpy as np
import pytest

from rota.core.errors import ConfigError, InputError, TraceError
from rota.recordings.folder import provenance
from rota.recordings.profile import Profile, Profiles, write_profiles
from rota.simulator.jobs_config import WorkloadConfig
from rota.workload.plain import read
from rota.workload.profiles import MeasuredTimes, read_measured

HEAD = "id,submit_s,gpus,model,iterations,duration_s,priority\n"


def profile(model, gang, iteration_s, **more):
    return Profile(model=model, batch_size=8, device="here", gang=gang, iteration_s=iteration_s, **more)


def recording(folder, *rows):
    origin = provenance(device="here", seed=0, command="test", libraries=())
    write_profiles(folder, Profiles(rows, origin))
    return folder


@pytest.fixture
def measured(tmp_path):
    rows = (
        profile("a", 1, 0.2, load_s=0.05, compute_s=0.1, synchronise_s=0.0, extra={"startup_s": 1.5}),
        profile("a", 4, 0.3, load_s=0.05, compute_s=0.1, synchronise_s=0.1),
        profile("a", 1, 9.0, beside="b"),
        profile("b", 2, 0.4),
    )
    return read_measured(recording(tmp_path / "recording", *rows))


def test_a_gang_that_was_not_measured_takes_the_next_larger(measured):
    assert measured.find("a", 2).iteration_s == 0.3
    assert measured.find("a", 8).iteration_s == 0.3
    assert measured.find("b", 1).iteration_s == 0.4
    assert measured.find("c", 1) is None


def test_columns_are_iteration_stages_and_start(measured):
    found = measured.columns(["a", "b", "c"], np.array([1.0, 2.0, 1.0]))
    assert found[:, 0].tolist() == [0.2, 0.05, 0.1, 0.0, 1.5]
    assert found[:, 1].tolist() == [0.4, 0.0, 0.0, 0.0, 0.0]
    assert math.isnan(found[0, 2])


def test_what_was_never_measured_takes_what_is_expected():
    found = MeasuredTimes("x", expected_s=0.25).columns(["c"], np.array([1.0]))
    assert found[:, 0].tolist() == [0.25, 0.0, 0.25, 0.0, 0.0]


def test_a_job_with_iterations_takes_as_long_as_these_do(tmp_path, measured):
    (tmp_path / "jobs.csv").write_text(HEAD + "x,0,1,a,10,99,0\ny,1,2,b,5,99,0\n")
    jobs = read(tmp_path / "jobs.csv", measured=measured)
    assert jobs.iteration_s.tolist() == [0.2, 0.4]
    assert jobs.duration_s.tolist() == [2.0, 2.0]
    assert jobs.startup_s.tolist() == [1.5, 0.0]
    assert jobs.stages_s[:, 0].tolist() == [0.05, 0.1, 0.0]


def test_what_a_row_says_itself_wins(tmp_path, measured):
    (tmp_path / "jobs.csv").write_text(
        "id,submit_s,gpus,model,duration_s,iteration_s,priority\nx,0,1,a,30,0.5,0\n"
    )
    jobs = read(tmp_path / "jobs.csv", measured=measured)
    assert (jobs.iteration_s[0], jobs.iterations[0], jobs.duration_s[0]) == (0.5, 60.0, 30.0)
    assert jobs.notes == (
        f"iteration_s in the trace for 1 job: that counts, not what {measured.source} says",
    )


def test_a_model_that_nobody_measured_is_named(tmp_path, measured):
    (tmp_path / "jobs.csv").write_text(HEAD + "x,0,1,c,10,99,0\n")
    with pytest.raises(TraceError, match="measured"):
        read(tmp_path / "jobs.csv", measured=measured)


def test_of_two_batch_sizes_of_a_model_the_trace_names_one(tmp_path):
    rows = profile("a", 1, 0.2), Profile(model="a", batch_size=16, device="here", iteration_s=0.3)
    measured = read_measured(recording(tmp_path / "two", *rows))
    (tmp_path / "jobs.csv").write_text(HEAD + "x,0,1,a (batch size 16),10,99,0\n")
    assert read(tmp_path / "jobs.csv", measured=measured).iteration_s.tolist() == [0.3]
    (tmp_path / "jobs.csv").write_text(HEAD + "x,0,1,a,10,99,0\n")
    message = (
        r"two: has a with batches of 8 and 16; name one of them in the trace, as in 'a \(batch size 16\)'"
    )
    with pytest.raises(InputError, match=message):
        read(tmp_path / "jobs.csv", measured=measured)


def test_speeds_of_other_devices_are_those_that_were_measured(tmp_path):
    """The V100 counts; the K80 is half as fast with a, and with b on the mean of two gangs, 0.25 and 0.75."""
    times_s = {("a", 1): (0.1, 0.2), ("a", 2): (0.1, 0.1), ("b", 2): (0.1, 0.4), ("b", 4): (0.3, 0.4)}
    rows = [
        Profile(model=model, batch_size=8, device=device, gang=gang, iteration_s=iteration_s)
        for (model, gang), both in times_s.items()
        for device, iteration_s in zip(("v100", "k80"), both, strict=True)
    ]
    measured = read_measured(recording(tmp_path / "two", *rows))
    (tmp_path / "jobs.csv").write_text(HEAD + "x,0,1,a,10,99,0\ny,0,2,b,10,99,0\n")
    jobs = read(tmp_path / "jobs.csv", measured=measured)
    assert jobs.iteration_s.tolist() == [0.1, 0.1]
    assert jobs.speeds["k80"] == pytest.approx({"a": 0.5, "b": (0.25 + 0.75) / 2})
    others = [replace(row, device="a100") for row in rows if row.device == "k80"]
    k80 = [row for row in rows if row.device == "k80"]
    with pytest.raises(
        InputError, match="was measured on k80, a100; give a recording of one device, or with a v"
    ):
        read_measured(recording(tmp_path / "other", *k80, *others))
    assert read_measured(recording(tmp_path / "one", *k80)).speeds == {}


def test_time_can_be_scaled(tmp_path, measured):
    """A tenth of the time: jobs come ten times as often and have a tenth to do, with the same step time."""
    (tmp_path / "jobs.csv").write_text(HEAD + "x,10,1,a,100,99,0\ny,20,2,b,5,99,0\n")
    config = WorkloadConfig(trace=tmp_path / "jobs.csv", profiles=tmp_path / "recording", time_scale=0.1)
    jobs = config.load()
    assert jobs.submit_s.tolist() == [1.0, 2.0]
    assert jobs.iterations.tolist() == [10.0, 1.0]  # at least one
    assert jobs.iteration_s.tolist() == [0.2, 0.4]
    assert jobs.duration_s.tolist() == pytest.approx([2.0, 0.2])


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"time_scale": 0.0}, "time_scale is 0; it must be above 0"),
        ({"format": "muri"}, "profiles: only for a trace in CSV"),
        ({"draw_models": True}, "draw_models: profiles say how long jobs take"),
        ({"startup_s": -1.0}, "startup_s is -1; it must be 0 or more"),
    ],
)
def test_what_makes_no_sense_is_refused(tmp_path, settings, said):
    with pytest.raises(ConfigError, match=said):
        WorkloadConfig(trace=tmp_path / "a.csv", profiles=tmp_path, **settings)
