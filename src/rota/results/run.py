"""A run as a whole: written once when it is over, read by whoever compares, plots or reports."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from rota import __version__
from rota.core.atomic import alone_in, written
from rota.core.cluster import Cluster
from rota.core.errors import InputError
from rota.core.timeline import Timeline
from rota.results import cluster_record
from rota.results.folder import AGAIN, FORMAT, RunFolder
from rota.results.jobs import JobColumns, Jobs, JobTimes
from rota.results.jobs_file import read_jobs, write_jobs
from rota.results.metrics import Metrics, measure
from rota.results.series import Series
from rota.results.timeline_file import read_timeline, write_timeline


@dataclass(frozen=True, slots=True)
class Run:
    """A complete run; its timeline, the one thing that can be large, is read when asked for."""

    folder: RunFolder
    scheduler: str
    command: str
    """What made it."""
    wall_s: float
    """How long that took."""
    inputs: str
    """The digest of what it was made from."""
    cluster: Cluster
    jobs: JobColumns
    times: JobTimes
    metrics: Metrics

    @property
    def makespan_s(self) -> float:
        """From the first submit to the last end, wherever the clock of the trace begins."""
        return self.metrics.makespan_s - float(self.jobs.submit_s[0])

    def timeline(self) -> Timeline:
        """Everything that happened, read from the folder."""
        cluster = self.cluster
        return read_timeline(self.folder.timeline, len(self.jobs), len(cluster.nodes), cluster.slots)

    def series(self) -> Series:
        """How full the cluster was over time, worked out from the timeline."""
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
) -> Metrics:
    """Write everything about a finished run, `metrics.json` last; returns the metrics."""
    measured = measure(timeline, workload, cluster)
    run = RunFolder(folder)
    about = {
        "format": FORMAT,
        "rota": __version__,
        "inputs": inputs,
        "scheduler": scheduler,
        "workload": workload.name,
        "command": command,
        "wall_s": wall_s,
        "metrics": asdict(measured.metrics),
        "cluster": cluster_record.record(cluster),
    }
    facts = (json.dumps(about, indent=2, allow_nan=False) + "\n").encode()
    with alone_in(folder):
        run.reopen()
        with written(run.config) as stream:
            stream.write(config_text.encode())
        with written(run.timeline) as stream:
            write_timeline(stream, timeline)
        with written(run.jobs) as stream:
            write_jobs(stream, workload, measured.times)
        with written(run.metrics) as stream:
            stream.write(facts)
    return measured.metrics


def read_run(folder: Path) -> Run:
    """Read a complete run back."""
    run = RunFolder(folder)
    found = run.read_metrics()
    try:
        metrics = Metrics(**found["metrics"])
        jobs, times = read_jobs(run.jobs, found["workload"])
        if len(jobs) != metrics.jobs:
            raise InputError(f"{run.jobs}: {len(jobs)} jobs where the run has {metrics.jobs}; {AGAIN}")
        return Run(
            folder=run,
            scheduler=found["scheduler"],
            command=found["command"],
            wall_s=found["wall_s"],
            inputs=found["inputs"],
            cluster=cluster_record.cluster(found["cluster"]),
            jobs=jobs,
            times=times,
            metrics=metrics,
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise InputError(f"{run.metrics}: not the metrics of a run ({error!r}); {AGAIN}") from None
