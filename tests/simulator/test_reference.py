"""Equality with the figures of the Muri simulator, on its own traces."""

import csv
import json
from dataclasses import replace

import numpy as np
import pytest

from rota.core.cluster import Cluster
from rota.core.costs import INTERVAL
from rota.core.timeline import EventKind
from rota.policies.cluster.registry import scheduler_class
from rota.results.metrics import measure
from rota.simulator.jobs import simulate
from rota.workload.public import read_muri

EXACT = ("srtf", "srsf", "tiresias", "antman", "muri-l-no-blossom")
"""Schedulers that leave nothing open; matchings and solver optima are not unique."""
TOLERANCE = dict.fromkeys(EXACT, 1e-6) | {"themis": 0.05}

RUNS = [
    (
        "trace1",
        ("srtf", "srsf", "tiresias", "antman", "muri-s", "muri-l", "muri-l-worst-order", "muri-l-no-blossom"),
    ),
    (
        "trace3",
        ("srtf", "srsf", "tiresias", "antman", "muri-s", "muri-l", "muri-l-worst-order", "muri-l-no-blossom"),
    ),
    ("trace1_pr", ("srtf", "srsf", "tiresias", "antman", "muri-s", "muri-l")),
    ("trace3_pr", ("srtf", "srsf", "tiresias", "antman", "muri-s", "muri-l")),
    ("trace1_first100", ("srtf", "srsf", "tiresias", "antman", "themis")),
    ("trace1_first200", ("muri-s", "muri-l")),
    ("trace3_first200", ("themis",)),
    ("trace3_pr_first120", ("muri-s", "muri-l")),
]


def load(reference, trace):
    name, _, rest = trace.partition("_")
    jobs = read_muri(reference("clusters", "muri", f"{name}.csv"))
    if "pr" in rest:
        jobs = replace(jobs, submit_s=np.zeros(len(jobs)))
    return jobs.head(int(rest.partition("first")[2])) if "first" in rest else jobs


@pytest.mark.parametrize(("trace", "name"), [(trace, name) for trace, names in RUNS for name in names])
def test_figures_equal_the_reference(reference, trace, name):
    runs = json.loads(reference("clusters", "reference.json").read_text())["runs"]
    expected = next(run for run in runs if (run["trace"], run["scheduler"]) == (trace, name))
    jobs, cluster = load(reference, trace), Cluster.uniform(8, 8)
    done = simulate(jobs, cluster, scheduler_class(name)(), INTERVAL)
    metrics = measure(done.timeline, jobs, cluster).metrics
    rel = TOLERANCE.get(name, 0.03)
    assert metrics.avg_jct_s == pytest.approx(expected["avg_jct_s"], rel=rel)
    if name in EXACT:
        assert metrics.makespan_s == pytest.approx(expected["makespan_s"], rel=rel)
        assert metrics.p99_jct_s == pytest.approx(expected["p99_jct_s"], rel=rel)
        assert done.instants == expected["events"]


@pytest.mark.parametrize(
    ("trace", "name"),
    [(trace, name) for trace, names in RUNS[:2] + RUNS[3:4] for name in names if name in EXACT],
)
def test_every_job_starts_and_ends_when_it_did_in_the_reference(reference, trace, name):
    with reference("clusters", "jobs", f"{trace}__{name}.csv").open() as file:
        rows = list(csv.DictReader(file))
    jobs = load(reference, trace)
    events = simulate(jobs, Cluster.uniform(8, 8), scheduler_class(name)(), INTERVAL).timeline.events
    ended = events[events["kind"] == EventKind.FINISHED]
    started = events[events["kind"] == EventKind.STARTED][::-1]
    ends, starts = np.zeros(len(jobs)), np.zeros(len(jobs))
    ends[ended["job"]] = ended["at_s"]
    starts[started["job"]] = started["at_s"]  # backwards, so that the first start is the one that stays
    numbers = [int(row["job_id"]) for row in rows]
    np.testing.assert_allclose(ends[numbers], [float(row["end"]) for row in rows], rtol=1e-12)
    np.testing.assert_allclose(starts[numbers], [float(row["start"]) for row in rows], rtol=1e-12)
