"""Failures as people see them: tables, frames, folders, figures, reports, traces for Perfetto."""

import json
import math

import pytest

import rota
from rota import cli
from rota.core.cluster import Cluster
from rota.figures.gantt import blocks, failures
from rota.results.chrome import write_chrome_trace
from rota.workload.jobs import workload

TWO = Cluster.uniform(1, 2)
FAILURES = rota.Failures(checkpoint_every_s=300.0)


@pytest.fixture(scope="module")
def jobs():
    # Job a fails after 500 s on its slot and goes on from 300 s; b fails for good after 400 s.
    return workload(
        "two", ["a", "b"], [0.0, 0.0], [1, 1], ["bert", "bert"], duration_s=[1000.0, 400.0],
        iterations=[1000.0, 400.0], iteration_s=[1.0, 1.0], startup_s=[0.0, 0.0],
        failed_after_s=[(500.0,), ()], failed=[False, True],
    )  # fmt: skip


@pytest.fixture(scope="module")
def run(jobs):
    return rota.simulate(jobs, TWO, "fifo", failures=FAILURES)


def test_jobs_and_events_say_what_failed(run):
    assert run.jobs[["attempts", "failed", "lost_gpu_s"]].to_dict("index") == {
        "a": {"attempts": 2, "failed": 0, "lost_gpu_s": 200.0},
        "b": {"attempts": 1, "failed": 1, "lost_gpu_s": 400.0},
    }
    shown = run.timeline[run.timeline["event"].isin(["attempt_failed", "rolled_back", "failed"])]
    assert shown[["at_s", "event", "job"]].to_numpy().tolist() == [
        [400.0, "failed", "b"],
        [500.0, "rolled_back", "a"],
        [500.0, "attempt_failed", "a"],
    ]
    assert shown["lost"].dropna().tolist() == [200.0]
    assert shown["remaining"].dropna().tolist() == [0.0, 700.0]
    metrics = run.metrics
    assert (metrics.failed_attempts, metrics.failed) == (2, 1)
    assert (metrics.lost_gpu_s, metrics.availability) == (600.0, 1.0)
    assert metrics.goodput == pytest.approx(1000.0 / (2 * 1200.0))


def test_the_table_says_so_only_if_something_failed(jobs, run):
    calm = rota.simulate(jobs, TWO, "fifo")
    assert "goodput" not in str(calm)
    header, row = str(run).splitlines()
    assert header.split("   ")[-4:] == ["failures", "lost [GPU h]", "goodput", "availability"]
    assert row.split()[-4:] == ["2", "0.17", "41.7%", "100.0%"]


def test_a_folder_keeps_all_of_it(run, tmp_path):
    again = rota.load(run.save(tmp_path / "run"))
    assert again.metrics == run.metrics
    assert again.jobs.equals(run.jobs)
    assert again.timeline.equals(run.timeline)
    assert "checkpoint_every_s = 300.0" in (tmp_path / "run" / "config.toml").read_text()


def test_failures_that_are_drawn_are_repeated_with_seeds(jobs, tmp_path):
    drawn = rota.Failures(per_gpu_hour=1.0, as_in_trace=False)
    found = rota.compare(jobs, TWO, ["fifo", "srtf"], failures=drawn, seeds=3, out=tmp_path / "runs")
    assert found.note == "failures are drawn from 3 seeds"
    assert len(found) == 6
    assert found.runs[0].metrics.makespan_s != found.runs[1].metrics.makespan_s
    again = rota.compare(jobs, TWO, ["fifo", "srtf"], failures=drawn, seeds=3, out=tmp_path / "runs")
    assert [each.metrics for each in again.runs] == [each.metrics for each in found.runs]
    assert rota.compare(jobs, TWO, ["fifo"], failures=FAILURES, seeds=3).note == (
        "nothing is random: one run of each scheduler"
    )


def test_a_gantt_chart_marks_where_a_job_failed(run, tmp_path):
    timeline = run.record.timeline()
    found = blocks(timeline, TWO, (0.0, math.inf))
    assert [(block.job, block.slot, block.start_s) for block in failures(found, timeline)] == [
        (1, 1, 400.0),
        (0, 0, 500.0),
    ]
    labels = [text.get_text() for text in run.plot("gantt").axes[0].get_legend().get_texts()]
    assert "job failed" in labels


def test_perfetto_is_told_when_jobs_and_nodes_failed(run, jobs, tmp_path):
    def instants(found):
        write_chrome_trace(tmp_path / "trace.json", found.record.timeline(), found.record.jobs, TWO)
        events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
        return [(each["ts"], each["name"], each["args"]) for each in events if each["ph"] == "i"]

    assert instants(run) == [
        (400_000_000, "b failed for good", {"job": "b", "remaining": 0.0, "lost": 0.0}),
        (500_000_000, "a failed", {"job": "a", "remaining": 700.0, "lost": 200.0}),
    ]
    nodes = rota.Failures(node_mtbf_s=600.0, node_repair_s=60.0, as_in_trace=False, seed=1)
    names = [name for _, name, _ in instants(rota.simulate(jobs, TWO, "fifo", failures=nodes))]
    assert set(names) == {"node lost", "node joined"}


def test_a_report_has_the_columns_and_the_events(run, tmp_path):
    page = run.report(tmp_path / "page.html").read_text()
    assert "availability" in page
    assert "attempt_failed" in page


def test_the_command_takes_them_from_flags_and_files(jobs, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    from rota.workload.plain import write

    write(tmp_path / "two.csv", jobs)
    flags = [
        "simulate",
        "--trace",
        "two.csv",
        "--nodes",
        "1",
        "--gpus-per-node",
        "2",
        "--schedulers",
        "fifo",
        "--json",
    ]
    assert cli.main([*flags, "--set", "failures.checkpoint_every_s=300", "--out", "runs"]) == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert (row["failed_attempts"], row["failed"], row["lost_gpu_s"]) == (2, 1, 600.0)
    assert "[failures]" in (tmp_path / "runs" / "fifo" / "config.toml").read_text()
    assert cli.main(["simulate", "runs/fifo/config.toml", "--json"]) == 0
    (again,) = json.loads(capsys.readouterr().out)
    assert {**again, "wall_s": 0} == {**row, "wall_s": 0}
    assert cli.main([*flags, "--set", "failures.per_gpu_hour=-1"]) == 2
    assert "failures: per_gpu_hour is -1.0; it must be 0 or more" in capsys.readouterr().err
    assert cli.main([*flags, "--set", "failures.per_gpu_hours=1"]) == 2
    assert "did you mean 'per_gpu_hour'" in capsys.readouterr().err.lower()
