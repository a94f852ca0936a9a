"""A tour of the whole system with tiny data: read this first.

Jobs and machines go in, a policy says at each instant what should run where, and a timeline comes out; all
figures follow from the timeline.
"""

import pytest

import rota
from rota.core.cluster import Cluster
from rota.core.timeline import Arrived, Finished, Preempted, Started
from rota.policies.cluster.fifo import Fifo
from rota.policies.cluster.srtf import Srtf
from rota.results.metrics import measure
from rota.results.run import read_run, write_run
from rota.simulator.jobs import simulate
from rota.workload.jobs import workload

# A cluster: one node with two GPUs.
CLUSTER = Cluster.uniform(nodes=1, gpus=2)

# A workload: each job has a submit time, a gang of so many GPUs, and work to do, here a second per iteration.
# Nobody has measured how long a model called "mine" takes to start, so it takes 10 s.
JOBS = workload(
    "tour",
    ids=["long", "wide", "short"],
    submit_s=[0.0, 0.0, 30.0],
    gpus=[1, 2, 1],
    model=["mine"] * 3,
    duration_s=[100.0, 40.0, 5.0],
    iteration_s=[1.0] * 3,
    stages_s=[[0.2] * 3, [0.7] * 3, [0.1] * 3],  # of which loading, computing, synchronising
)


def test_first_in_first_out():
    # The timeline of a run is what happened, as events. Jobs are numbered by submit time.
    assert list(simulate(JOBS, CLUSTER, Fifo()).timeline) == [
        Arrived(0.0, 0),
        Arrived(0.0, 1),
        Started(0.0, 0, 1.0, (0,)),  # at a second per iteration, on slot 0; "wide" does not fit beside it,
        Arrived(30.0, 2),  #            and "short" must not overtake "wide"
        Finished(110.0, 0),
        Started(110.0, 1, 1.0, (0, 1)),
        Finished(160.0, 1),
        Started(160.0, 2, 1.0, (0,)),
        Finished(175.0, 2),
    ]


def test_shortest_remaining_time_first():
    assert list(simulate(JOBS, CLUSTER, Srtf()).timeline)[2:] == [
        Started(0.0, 1, 1.0, (0, 1)),
        Arrived(30.0, 2),
        Preempted(30.0, 1, 20.0),  # 10 s of start-up and 20 of its 40 iterations are done
        Started(30.0, 2, 1.0, (0,)),
        Started(30.0, 0, 1.0, (1,)),  # there is a slot for "long" too
        Finished(45.0, 2),
        Preempted(45.0, 0, 95.0),
        Started(45.0, 1, 1.0, (0, 1)),  # a job pays its start-up each time it starts
        Finished(75.0, 1),
        Started(75.0, 0, 1.0, (0,)),
        Finished(180.0, 0),
    ]


def test_a_run_is_measured_kept_and_read_back(tmp_path):
    done = simulate(JOBS, CLUSTER, Srtf())
    metrics = measure(done.timeline, JOBS, CLUSTER).metrics
    assert metrics.avg_jct_s == pytest.approx((180 + 75 + (45 - 30)) / 3)  # job completion time
    assert (metrics.makespan_s, metrics.preemptions) == (180.0, 2)

    about = {"scheduler": "srtf", "config_text": "", "inputs": "", "wall_s": done.wall_s, "command": "tour"}
    write_run(tmp_path / "srtf", workload=JOBS, cluster=CLUSTER, timeline=done.timeline, **about)
    run = read_run(tmp_path / "srtf")
    assert run.metrics == metrics
    assert list(run.timeline()) == list(done.timeline)


class WidestFirst(rota.Scheduler):
    """A policy of one's own: rank the jobs that are there, and give slots to those that fit."""

    def plan(self, view):
        return view.first_fit(view.rank(-view.gpus))


def test_a_policy_of_ones_own():
    # In `rota simulate` it is called by its file: --schedulers widest.py:WidestFirst.
    # `rota.simulate` is what scripts and notebooks call: its run has frames of pandas.
    run = rota.simulate(JOBS, CLUSTER, WidestFirst())
    started = run.timeline[run.timeline["event"] == "started"]
    assert started["job"].tolist() == ["wide", "long", "short"]
    assert run.jobs["end_s"].to_dict() == {"long": 160.0, "wide": 50.0, "short": 65.0}
