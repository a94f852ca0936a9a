"""Runs of jobs: written to their folders, and read."""

from dataclasses import asdict, dataclass, field, replace
from itertools import groupby
from pathlib import Path
from typing import Any

from rota.config.bind import facts, keys
from rota.core.cluster import Cluster, Node, NodeChange, expand_kinds
from rota.core.errors import InputError
from rota.core.files import atomic_write, folder_lock
from rota.core.timeline import Timeline
from rota.results.folder import AGAIN, RunFolder
from rota.results.jobs import JobColumns, Jobs, JobTimes, read_jobs, read_timeline, write_jobs, write_timeline
from rota.results.metrics import Metrics, measure
from rota.results.parameters import Parameters
from rota.results.timeline_pass import Series


@dataclass(frozen=True, slots=True)
class NodesRecord:
    """Consecutive equal nodes."""

    count: int
    slots: int
    switch: int
    kind: str
    name: str = ""


@dataclass(frozen=True, slots=True)
class ClusterRecord:
    """A cluster, as it is written."""

    nodes: tuple[NodesRecord, ...]
    slots_per_gpu: int
    cross_node: float
    cross_switch: float
    speeds: dict[str, dict[str, float]]
    changes: tuple[NodeChange, ...]


def record_of(cluster: Cluster) -> dict[str, Any]:
    """Return a cluster as plain values, which `cluster_of` reads."""
    return {
        "nodes": [{"count": len(list(same)), **asdict(node)} for node, same in groupby(cluster.nodes)],
        "slots_per_gpu": cluster.slots_per_gpu,
        "cross_node": cluster.cross_node,
        "cross_switch": cluster.cross_switch,
        "speeds": {kind: dict(speeds) for kind, speeds in cluster.speeds.items()},
        "changes": [asdict(change) for change in cluster.changes],
    }


def cluster_of(found: ClusterRecord) -> Cluster:
    """Return the cluster of a record. Raises InputError if there can be no such cluster."""
    return Cluster(
        nodes=expand_kinds(
            (row.count, Node(row.slots, row.switch, row.kind, row.name)) for row in found.nodes
        ),
        slots_per_gpu=found.slots_per_gpu,
        cross_node=found.cross_node,
        cross_switch=found.cross_switch,
        speeds=found.speeds,
        changes=found.changes,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class RunHead:
    """A complete run without its jobs: the content of `metrics.json`."""

    folder: RunFolder
    """Folder of the run, whether or not it has been written."""
    scheduler: str
    command: str
    """Command that made it."""
    wall_s: float
    """Seconds that it took to make."""
    metrics: Metrics
    parameters: Parameters = field(default_factory=dict)
    """Point of a grid that the run is at."""
    knows: str = ""
    """What the scheduler knew of durations; empty if an older version of rota made the run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRecord(RunHead):
    """A complete run; its timeline, which can be large, is read on demand."""

    inputs: str
    """Digest of what it was made from."""
    cluster: Cluster
    jobs: JobColumns
    times: JobTimes
    kept: Timeline | None = None
    """The timeline, if it is in memory."""

    @property
    def end_s(self) -> float:
        """When the last job ended, in seconds on the clock of the trace."""
        return float(self.times.end_s.max())

    def timeline(self) -> Timeline:
        """Return the timeline, read from the folder unless it is in memory."""
        if self.kept is not None:
            return self.kept
        cluster = self.cluster
        return read_timeline(self.folder.timeline, len(self.jobs), len(cluster.nodes), cluster.slots)

    def series(self) -> Series:
        """Return the load of the cluster over time, computed from the timeline."""
        return measure(self.timeline(), self.jobs, self.cluster).series


def write_run(
    folder: Path,
    *,
    scheduler: str,
    workload: Jobs,
    cluster: Cluster,
    timeline: Timeline,
    config_text: str,
    inputs: str,
    wall_s: float,
    command: str,
    parameters: Parameters | None = None,
    knows: str = "",
) -> Metrics:
    """Write a finished run, `metrics.json` last; returns the metrics."""
    measured = measure(timeline, workload, cluster)
    run = RunFolder(folder)
    results = {
        "scheduler": scheduler,
        "workload": workload.name,
        "wall_s": wall_s,
        "knows": knows,
        "metrics": asdict(measured.metrics),
        "cluster": record_of(cluster),
    }
    with folder_lock(folder):
        run.reopen()
        run.write(run.config, config_text)
        with atomic_write(run.timeline) as stream:
            write_timeline(stream, timeline)
        with atomic_write(run.jobs) as stream:
            write_jobs(stream, workload, measured.times)
        run.write_head(results, inputs=inputs, command=command, parameters=parameters)
    return measured.metrics


@dataclass(frozen=True, slots=True)
class _RunFacts:
    format: int
    rota: str
    inputs: str
    scheduler: str
    workload: str
    command: str
    wall_s: float
    metrics: Metrics
    cluster: ClusterRecord
    parameters: dict[str, object] = field(default_factory=dict)
    knows: str = ""


def read_head(folder: Path) -> RunHead:
    """Read the metrics of a complete run, without its jobs."""
    run = RunFolder(folder)
    return RunHead(folder=run, **_said(_facts(run)))


def _said(found: _RunFacts) -> dict[str, Any]:
    """Return what a head says, but for its folder."""
    return {name: getattr(found, name) for name in keys(RunHead) if name != "folder"}


def _facts(run: RunFolder) -> _RunFacts:
    return facts(_RunFacts, run.read_head(), run.head, AGAIN)


def read_run(folder: Path) -> RunRecord:
    """Read a complete run."""
    run = RunFolder(folder)
    found = _facts(run)
    jobs, times = read_jobs(run.jobs, found.workload)
    if len(jobs) != found.metrics.jobs:
        raise InputError(f"{run.jobs}: {len(jobs)} jobs where the run has {found.metrics.jobs}; {AGAIN}")
    try:
        cluster = cluster_of(found.cluster)
    except InputError as error:
        raise InputError(f"{run.head}: {error}; {AGAIN}") from None
    said = _said(found)
    if found.format == 1:  # which counted from the beginning of the trace's clock
        since_s = found.metrics.makespan_s - float(jobs.submit_s[0])
        said["metrics"] = replace(found.metrics, makespan_s=since_s)
    return RunRecord(**said, folder=run, inputs=found.inputs, cluster=cluster, jobs=jobs, times=times)
