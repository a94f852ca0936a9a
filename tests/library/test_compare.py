"""`rota.compare`: rows, seeds, intervals, processes."""

import math
import os
import subprocess
import sys
import textwrap
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

import rota
from rota.core.intervals import mean_interval, student_95
from rota.library.compare import _simulated as real
from rota.library.processes import call_all
from rota.policies.cluster.srtf import Srtf


@dataclass(frozen=True)
class Shuffled(rota.Scheduler):
    """A random order, which follows from the seed."""

    seed: int = 0

    def plan(self, view):
        keys = np.random.default_rng([self.seed, int(view.now_s)]).random(view.capacity)
        return view.first_fit(view.rank(keys))


def drawn(seed: int) -> rota.Workload:
    return rota.synthetic_trace(jobs=40, gpus=16, seed=seed)


def test_where_nothing_is_random_there_is_one_run_and_it_says_so(jobs, cluster, aging):
    found = rota.compare(jobs, cluster, ["fifo", Srtf(), aging], seeds=7)
    frame = found.to_frame()
    assert frame["scheduler"].tolist() == ["fifo", "srtf", "aging"]
    assert frame["seed"].isna().all()
    assert found.note == "nothing is random: one run of each scheduler"
    assert found.note in str(found)
    assert found.note in found._repr_html_()
    summary = found.summary()
    assert summary[("avg_jct_s", "mean")].tolist() == frame["avg_jct_s"].tolist()
    assert summary[("avg_jct_s", "low")].isna().all()
    assert found["srtf"].metrics == rota.simulate(jobs, cluster, "srtf").metrics


def test_only_what_is_random_runs_with_every_seed(jobs, cluster):
    found = rota.compare(jobs, cluster, ["fifo", Shuffled()], seeds=[3, 5, 8])
    frame = found.to_frame()
    assert frame["scheduler"].tolist() == ["fifo", *["shuffled"] * 3]
    assert frame["seed"].fillna(-1).tolist() == [-1, 3, 5, 8]
    assert found.note == "random with 3 seeds: shuffled; one run of each of the others"
    assert found.runs[2].timeline.equals(rota.simulate(jobs, cluster, Shuffled(5)).timeline)
    assert frame["avg_jct_s"].nunique() == 4


def test_jobs_that_are_drawn_are_the_same_for_all_schedulers(cluster):
    found = rota.compare(drawn, cluster, ["fifo", "srtf"], seeds=4)
    assert found.note == "jobs are drawn from 4 seeds"
    frame = found.to_frame()
    assert frame["seed"].tolist() == [0, 1, 2, 3] * 2
    values = frame.loc[frame["scheduler"] == "srtf", "avg_jct_s"].to_numpy()
    assert values[2] == rota.simulate(drawn(2), cluster, "srtf").metrics.avg_jct_s
    half = 3.182 * values.std(ddof=1) / 2.0  # Student's t for three degrees of freedom, of four values
    row = found.summary().loc["srtf"]
    assert row[("runs", "")] == 4
    assert row[("avg_jct_s", "mean")] == pytest.approx(values.mean())
    assert row[("avg_jct_s", "low")] == pytest.approx(values.mean() - half)
    assert row[("avg_jct_s", "high")] == pytest.approx(values.mean() + half)


def test_processes_give_what_one_process_gives(cluster, aging):
    ask = (drawn, cluster, ["srtf", aging(0.5), Shuffled()])
    alone, together = rota.compare(*ask, seeds=2), rota.compare(*ask, seeds=2, workers=2)
    for one, other in zip(alone.runs, together.runs, strict=True):
        assert one.timeline.equals(other.timeline)
        assert (one.metrics, one.scheduler) == (other.metrics, other.scheduler)


def test_a_class_of_a_file_runs_in_processes(jobs, cluster, aging_file):
    found = rota.compare(jobs, cluster, ["srtf", f"{aging_file}:Aging"], workers=2)
    assert found["aging"].timeline.equals(rota.simulate(jobs, cluster, f"{aging_file}:Aging").timeline)


def test_a_class_with_several_options_is_told_apart_by_them(jobs, cluster, aging):
    found = rota.compare(jobs, cluster, [aging(0.5), aging(2.0), "srtf"])
    assert found.to_frame()["scheduler"].tolist() == ["aging(patience=0.5)", "aging(patience=2.0)", "srtf"]
    with pytest.raises(rota.RotaError, match=r"srtf\(placement=consolidated\) is there twice"):
        rota.compare(jobs, cluster, ["srtf", "srtf"])


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"schedulers": []}, "schedulers is empty"),
        ({"schedulers": "srtf"}, "schedulers is the text 'srtf'; give a list"),
        ({"seeds": 0}, "seeds is empty"),
        ({"seeds": [1, 1]}, "seeds has one twice"),
        ({"workers": 0}, "workers is 0; give a number from 1 to 1,024, or ray"),
        ({"workers": "many"}, "workers is 'many'; give a number from 1 to 1,024, or ray"),
        ({"jobs": "philly.csv"}, "jobs are a str"),
    ],
)
def test_what_makes_no_sense_is_said(jobs, cluster, given, said):
    ask = {"jobs": jobs, "cluster": cluster, "schedulers": ["srtf"], **given}
    with pytest.raises(rota.RotaError, match=said):
        rota.compare(**ask)


def test_figures_and_pages_show_all_of_them(tmp_path, jobs, cluster):
    found = rota.compare(jobs, cluster, ["fifo", "srtf"])
    assert found.plot("jct", tmp_path / "jct.png")._repr_png_().startswith(b"\x89PNG")
    text = found.report(tmp_path / "all.html").read_text()
    assert "2 schedulers on the same jobs" in text
    with pytest.raises(rota.RotaError, match="unknown scheduler 'sr'"):
        found["sr"]


@pytest.mark.parametrize(("freedom", "t"), [(1, 12.706), (4, 2.776), (30, 2.042), (31, 2.0395), (99, 1.9842)])
def test_students_t(freedom, t):
    assert student_95(freedom) == pytest.approx(t, abs=5e-4)


def test_an_interval_by_hand():
    # mean 2, standard deviation 1, standard error 1/√3
    assert mean_interval([1.0, 2.0, 3.0]) == pytest.approx(
        (2.0, 2 - 4.303 / math.sqrt(3), 2 + 4.303 / math.sqrt(3))
    )
    assert math.isnan(mean_interval([1.0])[1])


# Saved runs


def test_a_comparison_that_was_stopped_goes_on(tmp_path, monkeypatch):
    cluster = rota.Cluster.uniform(nodes=2, gpus=4)
    asked = (lambda seed: rota.synthetic_trace(jobs=20, gpus=8, seed=seed), cluster, ["fifo", "srtf"])
    first = rota.compare(*asked, seeds=2, out=tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "fifo_seed=0", "fifo_seed=1", "srtf_seed=0", "srtf_seed=1",
    ]  # fmt: skip
    (tmp_path / "srtf_seed=1" / "metrics.json").unlink()  # it was not finished
    made = []
    monkeypatch.setattr("rota.library.compare._simulated", lambda *call: made.append(call) or real(*call))
    again = rota.compare(*asked, seeds=2, out=tmp_path)
    assert len(made) == 1
    frames = [found.to_frame().drop(columns="wall_s") for found in (first, again)]
    assert frames[0].equals(frames[1])
    assert again["srtf"].timeline.equals(first["srtf"].timeline)
    with pytest.raises(rota.RotaError, match=r"fifo_seed=0: holds another run, made from other inputs"):
        rota.compare(asked[0], rota.Cluster.uniform(1, 8), ["fifo", "srtf"], seeds=2, out=tmp_path)
    assert len(made) == 1


def test_runs_that_would_share_a_folder_are_refused(tmp_path):
    def jobs(seed, kind):
        return rota.synthetic_trace(jobs=5, gpus=8, seed=seed)

    cluster = rota.Cluster.uniform(nodes=2, gpus=4)
    with pytest.raises(rota.RotaError, match=r"two runs would be in .*kind=a-b"):
        rota.compare(jobs, cluster, ["fifo"], seeds=1, grid={"kind": ["a/b", "a:b"]}, out=tmp_path)


# Processes


def test_results_come_with_the_number_of_their_call():
    assert dict(call_all(divmod, [(7, 2), (9, 4), (5, 5)], workers=2)) == {0: (3, 1), 1: (2, 1), 2: (1, 0)}


def test_what_a_call_raises_is_raised_here():
    def fail(number):
        raise rota.RotaError(f"no {number}")

    with pytest.raises(rota.RotaError, match="no 1"):
        list(call_all(fail, [(1,), (1,)], workers=2))


def test_what_a_call_prints_is_not_taken_for_an_answer():
    def speak(number):
        print("hello")  # noqa: T201
        os.write(1, b"raw")
        return number

    assert sorted(call_all(speak, [(1,), (2,)], workers=2)) == [(0, 1), (1, 2)]


def test_a_worker_that_dies_is_an_error():
    with pytest.raises(rota.RotaError, match="a worker died"):
        list(call_all(os._exit, [(3,), (3,)], workers=2))


def test_workers_end_with_the_process_that_started_them(tmp_path):
    """Even if that is killed while they work."""
    script = tmp_path / "script.py"
    script.write_text(
        textwrap.dedent(
            f"""
            import os, time
            from pathlib import Path
            from rota.library.processes import call_all

            def work(name):
                Path(r"{tmp_path}", name).write_text(str(os.getpid()))
                time.sleep(300)

            list(call_all(work, [("a.pid",), ("b.pid",)], workers=2))
            """
        )
    )
    process = subprocess.Popen([sys.executable, script])
    wait_until(lambda: len(list(tmp_path.glob("*.pid"))) == 2)
    time.sleep(0.1)
    pids = [int(file.read_text()) for file in tmp_path.glob("*.pid")]
    process.kill()
    process.wait()
    wait_until(lambda: not any(Path(f"/proc/{pid}").exists() and not is_zombie(pid) for pid in pids))


def is_zombie(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def wait_until(is_so, at_most_s: float = 60.0) -> None:
    until_s = time.monotonic() + at_most_s
    while not is_so():
        assert time.monotonic() < until_s
        time.sleep(0.05)


def test_differences_are_paired_by_seed(cluster):
    """A difference of means has the same mean, but the interval is that of the differences."""

    def drawn(seed):
        return rota.synthetic_trace(jobs=40, gpus=16, seed=seed)

    found = rota.compare(drawn, cluster, ["fifo", "srtf"], seeds=3)
    frame = found.to_frame().pivot(index="seed", columns="scheduler", values="avg_jct_s")
    differences = (frame["fifo"] - frame["srtf"]).tolist()
    row = found.against("srtf").loc["fifo"]
    assert (row["avg_jct_s", "mean"], row["avg_jct_s", "low"]) == pytest.approx(
        mean_interval(differences)[:2]
    )
    assert found.against("srtf").index.tolist() == ["fifo"]
    with pytest.raises(rota.RotaError, match="unknown scheduler 'sjf'"):
        found.against("sjf")


def test_without_seeds_a_difference_has_no_interval(jobs, cluster):
    found = rota.compare(jobs, cluster, ["fifo", "srtf"])
    row = found.against("fifo").loc["srtf"]
    assert row["avg_jct_s", "mean"] == found["srtf"].metrics.avg_jct_s - found["fifo"].metrics.avg_jct_s
    assert math.isnan(row["avg_jct_s", "low"])


def test_a_grid_varies_jobs_and_cluster():
    def drawn(seed, load):
        return rota.synthetic_trace(jobs=30, gpus=16, load=load, seed=seed)

    def machines(nodes):
        return rota.Cluster.uniform(nodes=nodes, gpus=8)

    found = rota.compare(
        drawn, machines, ["fifo", "srtf"], seeds=2, grid={"load": [0.5, 0.9], "nodes": [4, 2]}
    )
    frame = found.to_frame()
    assert len(found) == 2 * 2 * 2 * 2
    assert frame.columns[:4].tolist() == ["scheduler", "load", "nodes", "seed"]
    alone = rota.simulate(drawn(1, 0.9), machines(2), "srtf")
    row = frame.query("scheduler == 'srtf' and load == 0.9 and nodes == 2 and seed == 1")
    assert row["avg_jct_s"].tolist() == [alone.metrics.avg_jct_s]
    summary = found.summary()
    assert summary.index.names == ["scheduler", "load", "nodes"]
    assert summary.loc[("srtf", 0.9, 2), ("runs", "")] == 2
    pairs = frame.query("load == 0.9 and nodes == 2").pivot(
        index="seed", columns="scheduler", values="avg_jct_s"
    )
    difference = found.against("srtf").loc[("fifo", 0.9, 2), ("avg_jct_s", "mean")]
    assert difference == pytest.approx((pairs["fifo"] - pairs["srtf"]).mean())
    assert "srtf load=0.9 nodes=2 seed 1" in str(found)
    assert found.plot("jct").axes


@pytest.mark.parametrize(
    ("grid", "message"),
    [
        ({"loda": [1.0]}, "neither jobs nor cluster take loda"),
        ({"load": []}, "load has no values"),
        ({"load": range(20_000)}, "more than 10,000 points"),
        ({"load": 0.5}, "load is 0.5; give a list of its values"),
        ({"seed": [1]}, r"seed is no parameter; give seeds=\[1, 2\]"),
        ([0.5], "grid is a list; give a dictionary"),
    ],
)
def test_a_grid_that_does_not_fit_is_said(grid, message, cluster):
    with pytest.raises(rota.RotaError, match=message):
        rota.compare(lambda seed, load: None, cluster, ["fifo"], grid=grid)


def test_how_functions_are_called_is_said(cluster, jobs):
    with pytest.raises(rota.RotaError, match=r"jobs: is called with \(seed, load\); write lambda seed, load"):
        rota.compare(lambda load: jobs, cluster, ["fifo"], grid={"load": [0.5]})
    with pytest.raises(rota.RotaError, match=r"jobs: is called with \(seed\)"):
        rota.compare(lambda: jobs, cluster, ["fifo"])
    with pytest.raises(rota.RotaError, match="schedulers is a type; give a list"):
        rota.compare(jobs, cluster, int)
    with pytest.raises(rota.RotaError, match="unknown scheduler '0'"):
        rota.compare(jobs, cluster, ["fifo"])[0]
    for seeds in (np.int64(1), [-3], 2.0):
        if seeds == 1:
            assert len(rota.compare(lambda seed: jobs, cluster, ["fifo"], seeds=seeds)) == 1
        else:
            with pytest.raises(rota.RotaError, match="seeds"):
                rota.compare(lambda seed: jobs, cluster, ["fifo"], seeds=seeds)


def test_differences_mirror_each_other_where_only_one_is_random(jobs, cluster):
    found = rota.compare(jobs, cluster, [Shuffled(), "fifo"], seeds=3)
    one, other = found.against("fifo").loc["shuffled"], found.against("shuffled").loc["fifo"]
    assert one["runs", ""] == other["runs", ""] == 3
    assert one["avg_jct_s", "mean"] == pytest.approx(-other["avg_jct_s", "mean"])
    assert one["avg_jct_s", "low"] == pytest.approx(-other["avg_jct_s", "high"])


def test_a_notebook_and_a_page_tell_points_and_seeds(cluster, tmp_path):
    found = rota.compare(
        lambda seed, load: rota.synthetic_trace(jobs=20, gpus=16, load=load, seed=seed),
        cluster, ["fifo"], seeds=2, grid={"load": [0.5, 0.9]},
    )  # fmt: skip
    assert "<td>fifo load=0.9 seed 1</td>" in found._repr_html_()
    assert found.runs[-1].record.parameters == {"load": 0.9, "seed": 1}
    assert "load=0.9" in found.report(tmp_path / "page.html").read_text()


class Forgot(rota.Scheduler):
    def plan(self, view):
        view.first_fit(view.order)


def test_a_plan_that_is_not_returned_is_said(jobs, cluster):
    with pytest.raises(rota.RotaError, match=r"Forgot\.plan returned None; return a plan"):
        rota.simulate(jobs, cluster, Forgot())
