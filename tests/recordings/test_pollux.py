"""Pollux's applications become profiles and curves, and can be had back from them."""

import math

import pytest

from rota.core.errors import TraceError
from rota.recordings.curve import write_curves
from rota.recordings.pollux import applications, as_curves, as_profiles, is_application, read_application
from rota.recordings.profile import write_profiles

FILES = {
    "placements.csv": (
        "placement,local_bsz,step_time,sync_time\n1,10,0.5,0\n1,20,0.75,0\n22,10,2,1.5\n4,10,1,0.25\n"
    ),
    "scalability.csv": "num_nodes,num_replicas,local_bsz,step_time,sync_time\n6,24,10,4,3\n12,24,10,8,7\n",
    "validation-10.csv": "progress,iteration,metric\n50,49,0.5\n100,99,0.75\n",
    "validation-40.csv": "progress,iteration,metric\n60,19,0.25\n",
}


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "bert"
    folder.mkdir()
    for name, text in FILES.items():
        (folder / name).write_text(text)
    return folder


@pytest.fixture
def imported(folder, origin, tmp_path):
    """Where it was written as recordings."""
    out = tmp_path / "imported" / "bert"
    write_profiles(out / "profiles", as_profiles(folder, "t4", origin))
    write_curves(out / "curves", as_curves(folder, "t4", origin))
    return out


def test_step_times_as_profiles(folder, origin):
    profiles = as_profiles(folder, "t4", origin)
    assert len(profiles.rows) == 6
    alone = profiles.find("bert", 20, "t4", 1)
    assert (alone.iteration_s, alone.synchronise_s) == (0.75, 0.0)
    assert math.isnan(alone.load_s)
    assert profiles.find("bert", 40, "t4", 4).synchronise_s == 0.25
    assert profiles.find("bert", 40, "t4", 4, placement="22").synchronise_s == 1.5
    assert profiles.find("bert", 240, "t4", 24).iteration_s == 4.0
    assert profiles.find("bert", 240, "t4", 24, placement="12 nodes").iteration_s == 8.0


def test_training_runs_as_curves(folder, origin):
    curves = as_curves(folder, "t4", origin)
    assert (curves.model, curves.hyper, curves.main_metric) == ("bert", ("batch_size",), "metric")
    assert list(curves.settings) == ["batch-10", "batch-40"]
    run = curves.settings["batch-10"]
    assert run.hyper == {"batch_size": 10}
    assert run.interval.tolist() == [0, 1]
    assert run.steps.tolist() == [50, 100]
    assert run.metrics["metric"].tolist() == [0.5, 0.75]
    assert run.metrics["progress"].tolist() == [50.0, 100.0]
    assert all(map(math.isnan, run.seconds))
    assert curves.missing() == ()


def test_an_application_is_the_same_from_its_recordings(folder, imported):
    assert repr(read_application(imported)) == repr(read_application(folder))


def test_recordings_of_something_else_are_no_application(imported, profiles):
    write_profiles(imported / "profiles", profiles)
    with pytest.raises(TraceError, match="bert: its profiles and curves have no 'local_batch', so"):
        read_application(imported)


def test_applications_are_a_folder_or_folders_in_it(folder, imported, tmp_path):
    assert applications(folder) == applications(tmp_path) == [folder]
    assert is_application(folder)
    assert is_application(imported)
    assert not is_application(tmp_path)
    with pytest.raises(TraceError, match=r"no placements.csv in it or in a folder below"):
        applications(imported)


def test_the_published_applications(reference, origin, tmp_path):
    for folder in applications(reference("recordings", "pollux")):
        write_profiles(tmp_path / folder.name / "profiles", as_profiles(folder, "t4", origin))
        write_curves(tmp_path / folder.name / "curves", as_curves(folder, "t4", origin))
        assert repr(read_application(tmp_path / folder.name)) == repr(read_application(folder))
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "bert", "cifar10", "deepspeech2", "imagenet", "ncf", "yolov3",
    ]  # fmt: skip
