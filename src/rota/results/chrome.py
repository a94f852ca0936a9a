"""A timeline as a Chrome trace, to scroll and zoom through at https://ui.perfetto.dev.

A process per node, a thread per slot, a slice per segment in which a job kept its slots and its step time.
Failures of jobs and nodes are instants of the process of their node.
Slices of one thread must not overlap (Perfetto drops those that do), and asynchronous slices, which may, are
not drawn with the thread of their slot. So a slot that is shared gets further threads, its lanes, named after
it and numbered; each job of the slot is on a lane of its own.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain, islice
from pathlib import Path

import numpy as np

from rota.core.cluster import Cluster
from rota.core.files import atomic_write
from rota.core.timeline import EventKind, Timeline
from rota.results.jobs import Jobs
from rota.results.metrics import measure
from rota.results.timeline_pass import PLACED, Segments, Series, segments

CLUSTER_PID = 1
BLOCK = 4096


def write_chrome_trace(
    path: Path,
    timeline: Timeline,
    jobs: Jobs,
    cluster: Cluster,
    window_s: tuple[float, float] = (-np.inf, np.inf),
) -> None:
    """Write the trace of a run, or of a window of it, block by block."""
    series = measure(timeline, jobs, cluster).series
    stretches = segments(timeline, by_step_time=True).between(*window_s)
    lanes = Lanes(cluster)
    records = chain(
        _processes(cluster),
        _counters(series, window_s),
        _bars(stretches, timeline, jobs, lanes),
        _failures(timeline, jobs, cluster, window_s),
    )
    with atomic_write(path) as stream:
        stream.write(b'{"displayTimeUnit": "ms", "traceEvents": [\n')
        separator = ""
        while block := list(islice(records, BLOCK)):
            stream.write((separator + ",\n".join(block)).encode())
            separator = ",\n"
        stream.write(b"\n]}\n")


@dataclass(slots=True)
class Lanes:
    """The threads of a trace: one per slot, and more for a slot while jobs share it."""

    cluster: Cluster
    nodes: list[int] = field(init=False)
    first: list[int] = field(init=False)
    free_at_us: list[list[int]] = field(init=False)
    """When each lane of each slot is free again."""
    last_job: list[list[int]] = field(init=False)

    def __post_init__(self) -> None:
        self.nodes = self.cluster.slot_nodes().tolist()
        self.first = self.cluster.first_slots().tolist()
        self.free_at_us = [[] for _ in self.nodes]
        self.last_job = [[] for _ in self.nodes]

    def take(self, slot: int, job: int, start_us: int, end_us: int) -> tuple[int, bool]:
        """Take a free lane of the slot, the job's last one if possible; returns it and whether it is new."""
        free = [lane for lane, at_us in enumerate(self.free_at_us[slot]) if at_us <= start_us]
        mine = [lane for lane in free if self.last_job[slot][lane] == job]
        lane = (mine or free or [len(self.free_at_us[slot])])[0]
        new = lane == len(self.free_at_us[slot])
        if new:
            self.free_at_us[slot].append(end_us)
            self.last_job[slot].append(job)
        self.free_at_us[slot][lane] = end_us
        self.last_job[slot][lane] = job
        return lane, new

    def pid(self, slot: int) -> int:
        """Return the process that stands for the node of a slot."""
        return CLUSTER_PID + 1 + self.nodes[slot]

    def tid(self, slot: int, lane: int) -> int:
        """Return the thread's number: unique in the trace, and never that of a process."""
        return CLUSTER_PID + 1 + len(self.cluster.nodes) + lane * len(self.nodes) + slot

    def name(self, slot: int, lane: int) -> str:
        """Return the name of a thread: its slot, and its lane if there are several."""
        node = self.nodes[slot]
        further = f" / lane {lane + 1}" if lane else ""
        return f"node {node} / slot {slot - self.first[node]}{further}"


def _processes(cluster: Cluster) -> Iterator[str]:
    yield from _metadata("process", {"pid": CLUSTER_PID}, "cluster", 0)
    for node in range(len(cluster.nodes)):
        yield from _metadata("process", {"pid": CLUSTER_PID + 1 + node}, f"node {node}", node + 1)


def _metadata(what: str, whose: dict[str, int], name: str, order: int) -> Iterator[str]:
    """Yield the name of a process or thread, and its position for viewers that use it."""
    for key, value in {"name": name, "sort_index": order}.items():
        yield json.dumps({"ph": "M", "name": f"{what}_{key}", **whose, "args": {key: value}})


def _counters(series: Series, window_s: tuple[float, float]) -> Iterator[str]:
    columns = {"queue length": series.waiting, "running jobs": series.running, "busy slots": series.busy}
    until_s = np.append(series.at_s[1:], np.inf)
    inside = np.flatnonzero((until_s > window_s[0]) & (series.at_s <= window_s[1]))
    at_s = np.maximum(series.at_s[inside], window_s[0])
    for name, values in columns.items():
        steps = values[inside]
        changed = np.append(True, np.diff(steps) != 0.0)[: len(steps)]
        for step_s, value in zip(at_s[changed].tolist(), steps[changed].tolist(), strict=True):
            args = {"value": int(value)}
            yield json.dumps({"ph": "C", "name": name, "pid": CLUSTER_PID, "ts": _us(step_s), "args": args})


def _bars(stretches: Segments, timeline: Timeline, jobs: Jobs, lanes: Lanes) -> Iterator[str]:
    for job, start_s, end_s, begin, gpus, step_s in _rows(stretches):
        ts, end_us = _us(start_s), _us(end_s)
        if end_us == ts:
            continue
        what = _bar(jobs, job, ts, end_us - ts, gpus, step_s)
        for slot in timeline.slots[begin : begin + gpus].tolist():
            lane, new = lanes.take(slot, job, ts, end_us)
            pid, tid = lanes.pid(slot), lanes.tid(slot, lane)
            if new:
                order = slot * len(jobs.ids) + lane
                yield from _metadata("thread", {"pid": pid, "tid": tid}, lanes.name(slot, lane), order)
            yield f'{{{what}, "pid": {pid}, "tid": {tid}}}'


NODES = {EventKind.NODE_LOST: "node lost", EventKind.NODE_JOINED: "node joined"}
FAILED = {EventKind.ATTEMPT_FAILED: "failed", EventKind.FAILED: "failed for good"}


def _failures(
    timeline: Timeline, jobs: Jobs, cluster: Cluster, window_s: tuple[float, float]
) -> Iterator[str]:
    """Yield nodes that come and go, and jobs that fail: on the node of their first slot."""
    nodes, first_slot, lost = cluster.slot_nodes().tolist(), {}, {}
    chosen = timeline.events[
        np.isin(timeline.events["kind"], (*PLACED, *NODES, *FAILED, EventKind.ROLLED_BACK))
    ]
    for at_s, kind, job, value, begin in zip(
        *(chosen[name].tolist() for name in ("at_s", "kind", "job", "value", "begin")), strict=True
    ):
        if kind in PLACED:
            first_slot[job] = int(timeline.slots[begin])
        elif kind == EventKind.ROLLED_BACK:
            lost[job] = at_s, value
        elif window_s[0] <= at_s <= window_s[1]:
            node, name, args = job, NODES.get(kind), {}
            if kind in FAILED:
                node, name = nodes[first_slot[job]], f"{jobs.ids[job]} {FAILED[EventKind(kind)]}"
                iterations = lost[job][1] if lost.get(job, (None,))[0] == at_s else 0.0
                args = {"job": jobs.ids[job], "remaining": value, "lost": iterations}
            where = {"pid": CLUSTER_PID + 1 + node, "tid": CLUSTER_PID + 1 + node}
            yield json.dumps({"ph": "i", "s": "p", "name": name, **where, "ts": _us(at_s), "args": args})


def _rows(stretches: Segments) -> Iterator[tuple[int, float, float, int, int, float]]:
    """Yield the segments one by one; never all of them as Python objects at once."""
    s = stretches
    columns = (s.job, s.start_s, s.end_s, s.begin, s.gpus, s.step_s)
    for first in range(0, len(s), BLOCK):
        yield from zip(*(column[first : first + BLOCK].tolist() for column in columns), strict=True)


def _bar(jobs: Jobs, job: int, ts: int, dur: int, gpus: int, step_s: float) -> str:
    """Return what the slices of all slots of a gang share, as the inside of a JSON object."""
    model = jobs.models[jobs.model[job]]
    args = {"job": jobs.ids[job], "model": model, "gpus": gpus, "pace_s": step_s}
    name = f"{jobs.ids[job]} {model}"
    return json.dumps({"ph": "X", "name": name, "cat": model, "ts": ts, "dur": dur, "args": args})[1:-1]


def _us(at_s: float) -> int:
    return round(at_s * 1e6)
