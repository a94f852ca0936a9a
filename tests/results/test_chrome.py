"""The Chrome trace: valid JSON, a thread per slot, and never two slices at once on one thread."""

import json
from collections import defaultdict
from itertools import pairwise

import pytest

from rota.core.cluster import Cluster
from rota.core.costs import COSTS
from rota.core.timeline import Arrived, Finished, Started
from rota.policies.cluster.srtf import Srtf
from rota.results.chrome import write_chrome_trace
from rota.simulator.jobs import simulate
from rota.workload.jobs import workload


@pytest.fixture
def trace(tmp_path):
    """Gives a function that writes a trace and reads it back."""

    def make(timeline, jobs, cluster, **options):
        write_chrome_trace(tmp_path / "trace.json", timeline, jobs, cluster, **options)
        assert [file.name for file in tmp_path.iterdir()] == ["trace.json"]
        return json.loads((tmp_path / "trace.json").read_text("utf-8"))["traceEvents"]

    return make


def names(records, what):
    return {
        (r["pid"], r.get("tid")): r["args"]["name"]
        for r in records
        if r["ph"] == "M" and r["name"] == f"{what}_name"
    }


def bars(records):
    """Thread's name → (job, start, end) in seconds, by start."""
    threads = names(records, "thread")
    by_thread = defaultdict(list)
    for r in records:
        if r["ph"] == "X":
            span = (r["args"]["job"], r["ts"] / 1e6, (r["ts"] + r["dur"]) / 1e6)
            by_thread[threads[r["pid"], r["tid"]]].append(span)
    return {name: sorted(spans, key=lambda span: span[1]) for name, spans in by_thread.items()}


def assert_no_overlaps(records):
    for spans in bars(records).values():
        for before, after in pairwise(spans):
            assert before[2] <= after[1]


def test_each_slot_is_a_thread_of_its_node(trace, two_jobs):
    records = trace(*two_jobs)
    assert set(names(records, "process").values()) == {"cluster", "node 0"}
    assert bars(records) == {
        "node 0 / slot 0": [("a", 0, 2), ("b", 2, 6), ("a", 6, 14)],
        "node 0 / slot 1": [("a", 0, 2), ("a", 6, 14)],
    }


def test_a_slice_says_what_runs(trace, two_jobs):
    first = next(record for record in trace(*two_jobs) if record["ph"] == "X")
    assert first["name"] == "a bert"
    assert first["args"] == {"job": "a", "model": "bert", "gpus": 2, "pace_s": 1.0}


def test_jobs_that_share_a_slot_are_on_lanes_of_their_own(trace, shared_slots):
    records = trace(*shared_slots)
    assert_no_overlaps(records)
    assert bars(records) == {
        "node 0 / slot 0": [("a", 1, 5), ("a", 5, 7)],
        "node 0 / slot 0 / lane 2": [("b", 1, 5)],
        "node 1 / slot 0": [("c", 1, 5), ("b", 5, 9)],
    }


def test_threads_have_numbers_of_their_own(trace, shared_slots):
    records = trace(*shared_slots)
    pids = {pid for pid, _ in names(records, "process")}
    tids = [tid for _, tid in names(records, "thread")]
    assert len(set(tids)) == len(tids)
    assert not pids & set(tids)


def test_the_queue_is_a_counter(trace, two_jobs):
    records = trace(*two_jobs)
    queue = [(r["ts"], r["args"]["value"]) for r in records if r["ph"] == "C" and r["name"] == "queue length"]
    assert queue == [(0, 0), (2_000_000, 1), (6_000_000, 0)]


def test_a_window_cuts_slices_and_starts_counters_at_its_edge(trace, two_jobs):
    records = trace(*two_jobs, window_s=(4, 8))
    assert bars(records) == {
        "node 0 / slot 0": [("b", 4, 6), ("a", 6, 8)],
        "node 0 / slot 1": [("a", 6, 8)],
    }
    queue = [(r["ts"], r["args"]["value"]) for r in records if r["ph"] == "C" and r["name"] == "queue length"]
    assert queue == [(4_000_000, 1), (6_000_000, 0)]


def test_nothing_in_the_window_is_still_a_trace(trace, two_jobs):
    assert bars(trace(*two_jobs, window_s=(100, 200))) == {}


def test_what_is_shorter_than_a_microsecond_is_left_out(trace, write_down, some_jobs):
    timeline = write_down(Arrived(0, 0), Started(0, 0, 1.0, (0,)), Finished(1e-7, 0))
    assert bars(trace(timeline, some_jobs((0, 1, 1, 1e-7)), Cluster.uniform(1, 1))) == {}


@pytest.mark.parametrize("cost", COSTS)
def test_a_simulated_run_has_no_overlaps(trace, cost):
    n, cluster = 60, Cluster.uniform(2, 4)
    jobs = workload(
        "made up",
        ids=[f"j{i}" for i in range(n)],
        submit_s=[7.0 * i for i in range(n)],
        gpus=[(1, 2, 4, 8)[i % 4] for i in range(n)],
        model=["bert"] * n,
        duration_s=[5.0 + 37 * i % 101 for i in range(n)],
    )
    records = trace(simulate(jobs, cluster, Srtf(), COSTS[cost]).timeline, jobs, cluster)
    assert_no_overlaps(records)
    assert len(bars(records)) == cluster.slots
