"""Pollux workloads and their applications; the numbers are worked out from the sample in conftest."""

import numpy as np
import pytest

from rota.core.errors import TraceError
from rota.recordings.curve import write_curves
from rota.recordings.folder import provenance
from rota.recordings.pollux import (
    Application,
    StepTimeCurve,
    as_curves,
    as_profiles,
    packed,
    read_application,
)
from rota.recordings.profile import write_profiles
from rota.workload import pollux

PLACEMENT = "placement,local_bsz,step_time,sync_time"


def test_a_job_is_its_steps_at_its_gang_size_and_local_batch(sample):
    jobs = pollux.read(sample("pollux"), seed=4)
    assert jobs.ids == ("cifar10-0", "cifar10-1")
    assert jobs.submit_s.tolist() == [53.0, 54.0]
    assert jobs.gpus.tolist() == [6.0, 1.0]
    assert jobs.models == ("cifar10",)
    # 600 over 6 GPUs is 100 each, half way from 50 to 150; 128 on one is 28 % of the way from 100 to 200.
    assert jobs.iteration_s == pytest.approx([1.5, 0.5 + 0.28 * 0.4])
    assert jobs.iterations.tolist() == [40.0, 100.0]  # batch 600 is nearest to the run with 512
    assert jobs.duration_s == pytest.approx([60.0, 61.2])


def test_synchronising_is_measured_and_the_rest_split_as_in_the_stand_in(sample):
    load, compute, sync = pollux.read(sample("pollux")).stages_s[:, 0]
    assert sync == pytest.approx(0.5)
    assert load == pytest.approx(1.0 * 784 / (784 + 117))  # resnet18; 6 GPUs take the column of 8
    assert load + compute + sync == pytest.approx(1.5)


def test_what_was_assumed_is_noted(sample):
    assert pollux.read(sample("pollux"), seed=4).notes == (
        "loading and computing not measured apart for 2 jobs: split as in the nearest model",
        "1 job of a batch size without a training run: as long as the nearest",
        "no priority in the trace for 2 jobs: drawn, half of them opportunistic, with seed 4",
    )


def test_applications_may_be_in_the_parent_folder(sample):
    path = sample("pollux")
    inner = path.parent / "workloads" / path.name
    inner.parent.mkdir()
    assert len(pollux.read(path.rename(inner))) == 2


def test_an_application_that_was_not_measured_is_an_error_with_its_line(sample, rows):
    path = sample("pollux", rows["pollux"] + "bert-2,60,bert,1,12\n")
    with pytest.raises(
        TraceError, match=r"line 4: application: 'bert' is not measured: expected bert/placements.csv"
    ):
        pollux.read(path)


@pytest.mark.parametrize(("gpus", "placement"), [(1, "1"), (4, "4"), (6, "24"), (11, "344"), (16, "4444")])
def test_packed_placements_use_as_few_nodes_as_possible(gpus, placement):
    assert packed(gpus) == placement


def test_only_packed_placements_are_kept(sample):
    measured = read_application(sample("pollux").parent / "cifar10")
    assert list(measured.curves) == [1, 6, 24]
    assert measured.curves[6].step_s.tolist() == [1.0, 2.0]  # 24, not 33
    assert measured.curves[24].step_s.tolist() == [4.0]  # on 6 nodes, not on 12
    assert measured.iterations == {128: 100, 512: 40}


def test_a_batch_beyond_the_largest_is_accumulated_and_synchronised_once():
    curve = StepTimeCurve(np.array([10.0, 20.0]), np.array([1.0, 2.0]), np.array([0.25, 0.5]))
    assert curve.at(20.0) == (2.0, 0.5)
    assert curve.at(30.0) == (pytest.approx(2 * (1.5 - 0.375) + 0.375), 0.375)  # two parts of 15
    assert curve.at(60.0) == (pytest.approx(3 * (2.0 - 0.5) + 0.5), 0.5)  # three parts of 20


def test_a_batch_below_the_smallest_takes_as_long_as_the_smallest():
    curve = StepTimeCurve(np.array([10.0, 20.0]), np.array([1.0, 2.0]), np.array([0.25, 0.5]))
    assert curve.at(1.0) == (1.0, 0.25)


@pytest.mark.parametrize(("gpus", "gang"), [(1, 1), (2, 6), (6, 6), (7, 24), (48, 24)])
def test_a_gang_size_not_measured_is_the_next_larger_or_the_largest(gpus, gang):
    curve = StepTimeCurve(np.array([1.0]), np.array([1.0]), np.array([0.0]))
    assert Application({1: curve, 6: curve, 24: curve}, {128: 1}).measured_gang(gpus) == gang


@pytest.mark.parametrize(("batch", "nearest"), [(1, 128), (128, 128), (256, 128), (257, 512), (5000, 512)])
def test_the_nearest_batch_size_is_nearest_by_ratio(batch, nearest):
    assert Application({}, {128: 1, 512: 1}).measured_batch(batch) == nearest


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("placements.csv", f"{PLACEMENT}\n4x,1,1,1\n", "line 2: placement: '4x' is not digits"),
        ("placements.csv", f"{PLACEMENT}\n4,0,1,1\n", "line 2: local_bsz: '0' is not a number above"),
        ("placements.csv", "placement,local_bsz\n", "line 1: no column 'step_time', 'sync_time'"),
        ("scalability.csv", "", "scalability.csv: the file is empty"),
        ("validation-128.csv", "progress,iteration\n", "no rows after the header"),
        ("validation-128.csv", "progress,iteration\n1,many\n", "line 2: iteration: 'many' is not a number"),
    ],
)  # fmt: skip
def test_a_mistake_in_a_measurement_is_reported(sample, file, content, message):
    path = sample("pollux")
    (path.parent / "cifar10" / file).write_text(content)
    with pytest.raises(TraceError, match=message):
        pollux.read(path)


def test_an_application_without_a_training_run_is_an_error(sample):
    path = sample("pollux")
    for file in (path.parent / "cifar10").glob("validation-*"):
        file.unlink()
    with pytest.raises(TraceError, match="no validation-<batch size>"):
        pollux.read(path)


def test_recordings_imported_from_an_application_give_the_same_jobs(sample):
    path = sample("pollux")
    published = pollux.read(path)
    folder = path.parent / "cifar10"
    origin = provenance(device="t4", seed=None, command="")
    profiles, curves = as_profiles(folder, "t4", origin), as_curves(folder, "t4", origin)
    for file in folder.iterdir():
        file.unlink()
    write_profiles(folder / "profiles", profiles)
    write_curves(folder / "curves", curves)
    imported = pollux.read(path)
    for column in ("iteration_s", "iterations", "duration_s", "stages_s"):
        assert getattr(imported, column).tolist() == getattr(published, column).tolist()
