"""A run on disk: complete or not there, the same when read back, and clear about what is wrong."""

import json
from dataclasses import replace

import numpy as np
import pytest

from rota.core.cluster import Cluster, Node, NodeChange
from rota.core.errors import InputError
from rota.core.timeline import Arrived, Failed, Finished, Started
from rota.results.folder import RunFolder, run_folders
from rota.results.metrics import measure
from rota.results.run import read_run, write_run

FILES = ["config.toml", "jobs.csv", "metrics.json", "timeline.npz"]


def write(folder, parts, **changes):
    timeline, jobs, cluster = parts
    about = {
        "scheduler": "srtf",
        "workload": jobs,
        "cluster": cluster,
        "timeline": timeline,
        "config_text": 'policy = "srtf"  # ünïcode\n',
        "inputs": "digest 1",
        "wall_s": 0.25,
        "command": "rota simulate --quick",
    }
    return write_run(folder, **about | changes)


@pytest.fixture
def folder(tmp_path, two_jobs):
    """A complete run."""
    write(tmp_path / "run", two_jobs)
    return tmp_path / "run"


def test_a_run_is_four_files_and_nothing_else(folder):
    assert sorted(file.name for file in folder.iterdir()) == FILES
    assert (folder / "config.toml").read_text("utf-8") == 'policy = "srtf"  # ünïcode\n'


def test_a_run_reads_back_as_it_was_written(folder, two_jobs):
    timeline, jobs, cluster = two_jobs
    run = read_run(folder)
    expected = measure(*two_jobs)
    assert run.metrics == expected.metrics
    assert (run.scheduler, run.command, run.wall_s, run.inputs) == (
        "srtf", "rota simulate --quick", 0.25, "digest 1",
    )  # fmt: skip
    assert run.cluster == cluster
    assert list(run.timeline()) == list(timeline)
    assert (run.jobs.name, run.jobs.ids, run.jobs.models) == ("by hand", ("a", "b"), ("bert", "vgg16"))
    for name in ("model", "gpus", "submit_s", "iterations", "iteration_s"):
        np.testing.assert_array_equal(getattr(run.jobs, name), getattr(jobs, name))
    for name in ("jct_s", "waiting_s", "running_s", "first_start_s", "end_s", "preemptions", "fairness"):
        np.testing.assert_array_equal(getattr(run.times, name), getattr(expected.times, name))
    np.testing.assert_array_equal(run.series().waiting, expected.series.waiting)


def test_makespans_of_older_folders_counted_from_the_beginning_of_the_clock(tmp_path, shared_slots):
    write(tmp_path, shared_slots)  # from 1 to 9
    file = tmp_path / "metrics.json"
    found = json.loads(file.read_text())
    assert (found["format"], found["metrics"]["makespan_s"]) == (2, 8.0)
    found["format"], found["metrics"]["makespan_s"] = 1, 9.0
    file.write_text(json.dumps(found))
    assert read_run(tmp_path).metrics.makespan_s == 8.0


def test_ids_and_models_may_contain_anything(tmp_path, two_jobs):
    timeline, jobs, cluster = two_jobs
    strange = replace(jobs, ids=('a, "b"\n', "π"), models=("x;\ty", ""))
    write(tmp_path, (timeline, strange, cluster))
    read = read_run(tmp_path).jobs
    assert (read.ids, read.models) == (strange.ids, strange.models)


def test_a_cluster_reads_back_with_all_that_makes_its_nodes_unequal(tmp_path, two_jobs):
    timeline, jobs, _ = two_jobs
    cluster = Cluster(
        (Node(1), Node(1), Node(4, switch=1, kind="v100")),
        cross_node=1.5,
        speeds={"v100": {"bert": 2.0}},
        slots_per_gpu=2,
        changes=(NodeChange(3.5, 2, False),),
    )
    write(tmp_path, (timeline, jobs, cluster))
    assert read_run(tmp_path).cluster == cluster


def test_a_run_is_complete_for_the_inputs_it_was_made_from(folder):
    assert RunFolder(folder).complete()
    assert RunFolder(folder).complete("digest 1")
    assert not RunFolder(folder).complete("digest 2")


def test_a_run_that_was_cut_short_is_not_complete(folder):
    (folder / "metrics.json").unlink()
    assert RunFolder(folder).begun
    assert not RunFolder(folder).complete("digest 1")
    with pytest.raises(InputError, match="not a complete run"):
        read_run(folder)


def test_a_run_that_fails_while_it_is_written_again_is_not_complete(folder, two_jobs, monkeypatch):
    def fail(stream, timeline):
        stream.write(b"half of it")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("rota.results.run.write_timeline", fail)
    with pytest.raises(InputError, match="No space left"):
        write(folder, two_jobs)
    assert not RunFolder(folder).complete()
    assert not list(folder.glob("*.partial"))


def test_a_run_can_be_written_over_itself(folder, two_jobs):
    write(folder, two_jobs, inputs="digest 2")
    assert RunFolder(folder).complete("digest 2")


def test_a_folder_that_cannot_be_written_is_one_line(tmp_path, two_jobs):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot be written") as error:
        write(tmp_path / "file" / "run", two_jobs)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("name", ["jobs.csv", "metrics.json", "timeline.npz"])
@pytest.mark.parametrize("content", [b"", b"\x00\xff\x00", b"[1, 2", b"{}", b"PK\x03\x04 and no more", None])
def test_a_file_that_is_not_ours_is_named(folder, name, content):
    (folder / name).unlink()
    if content is not None:
        (folder / name).write_bytes(content)
    with pytest.raises(InputError, match=name) as error:
        read_run(folder).timeline()
    assert "\n" not in str(error.value)
    assert "again" in str(error.value)


def test_metrics_of_another_format_are_named(folder):
    found = json.loads((folder / "metrics.json").read_text())
    (folder / "metrics.json").write_text(json.dumps(found | {"format": 99}))
    with pytest.raises(InputError, match="format 99"):
        read_run(folder)


@pytest.mark.parametrize("key", ["scheduler", "workload", "cluster", "metrics", "command"])
def test_metrics_that_lack_something_are_named(folder, key):
    found = json.loads((folder / "metrics.json").read_text())
    del found[key]
    (folder / "metrics.json").write_text(json.dumps(found))
    with pytest.raises(InputError, match=key):
        read_run(folder)


@pytest.mark.parametrize(
    ("column", "value", "what"),
    [
        ("job", 9, "names jobs"),
        ("job", -1, "names jobs"),
        ("kind", 77, "not the timeline of a run"),
        ("kinds", "EXPLODED", "EXPLODED"),
        ("begin", 1000, "fewer slots"),
        ("at_s", np.nan, "order of time"),
        ("slots", 2, "names slots"),
    ],
)
def test_a_timeline_never_leads_outside_its_run(folder, column, value, what):
    columns = dict(np.load(folder / "timeline.npz"))
    columns[column][0] = value
    np.savez(folder / "timeline.npz", **columns)
    with pytest.raises(InputError, match=what):
        read_run(folder).timeline()


def test_a_timeline_outlives_a_change_of_the_numbers_of_its_kinds(folder, two_jobs):
    columns = dict(np.load(folder / "timeline.npz"))
    columns["kind"] = (len(columns["kinds"]) - 1 - columns["kind"]).astype(np.int8)
    columns["kinds"] = columns["kinds"][::-1]
    np.savez(folder / "timeline.npz", **columns)
    assert list(read_run(folder).timeline()) == list(two_jobs[0])


def test_a_job_that_is_missing_is_noticed(folder):
    *kept, _ = (folder / "jobs.csv").read_text().splitlines(keepends=True)
    (folder / "jobs.csv").write_text("".join(kept))
    with pytest.raises(InputError, match=r"jobs\.csv: 1 jobs where the run has 2"):
        read_run(folder)


def test_a_timeline_of_objects_is_not_unpickled(folder):
    columns = dict(np.load(folder / "timeline.npz"))
    columns["value"] = np.array([object()] * len(columns["value"]))
    np.savez(folder / "timeline.npz", **columns)
    with pytest.raises(InputError, match="not the timeline of a run"):
        read_run(folder).timeline()


def test_runs_are_found_below_a_folder_by_name(tmp_path, two_jobs):
    for name in ("b/2", "b/1", "a"):
        write(tmp_path / name, two_jobs)
    (tmp_path / "empty").mkdir()
    (tmp_path / "note.txt").write_text("")
    found = [run.path.relative_to(tmp_path).as_posix() for run in run_folders(tmp_path)]
    assert found == ["a", "b/1", "b/2"]
    assert [run.path for run in run_folders(tmp_path / "a")] == [tmp_path / "a"]
    assert not list(run_folders(tmp_path / "nowhere"))


def test_which_jobs_failed_is_kept_and_runs_of_before_had_none(tmp_path, write_down, some_jobs):
    timeline = write_down(
        Arrived(0, 0), Arrived(0, 1), Started(0, 0, 1.0, (0,)), Started(0, 1, 1.0, (1,)),
        Finished(4, 0), Failed(5, 1, 8.0),
    )  # fmt: skip
    write(tmp_path, (timeline, some_jobs((0, 1, 4, 1), (0, 1, 13, 1)), Cluster.uniform(1, 2)))
    found = read_run(tmp_path)
    assert found.times.failed.tolist() == [0, 1]
    assert (found.metrics.failed, found.metrics.avg_jct_s) == (1, 4.0)
    assert list(found.timeline())[-1] == Failed(5.0, 1, 8.0)
    jobs, metrics = tmp_path / "jobs.csv", tmp_path / "metrics.json"
    jobs.write_text("".join(line.rsplit(",", 4)[0] + "\n" for line in jobs.read_text().splitlines()))
    facts = json.loads(metrics.read_text())
    for name in ("failed", "failed_attempts", "lost_gpu_s", "goodput", "availability", "resizes"):
        del facts["metrics"][name]
    metrics.write_text(json.dumps(facts))
    assert read_run(tmp_path).times.failed.tolist() == [0, 0]
    assert read_run(tmp_path).metrics.failed == 0
