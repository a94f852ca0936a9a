"""Metrics of a run of jobs, their intervals over seeds, and the table that compares schedulers."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from rota.core.arrays import Floats
from rota.core.cluster import Cluster
from rota.core.columns import SIZE, UP
from rota.core.errors import InputError
from rota.core.files import printable
from rota.core.text import aligned
from rota.core.timeline import EventKind, Timeline
from rota.results import timeline_pass
from rota.results.jobs import Jobs, JobTimes
from rota.results.timeline_pass import Series, validate_timeline


@dataclass(frozen=True, slots=True)
class Metrics:
    """The metrics of a run."""

    jobs: int
    avg_jct_s: float
    """Mean job completion time in seconds, from submit to end. JCTs and fairness count finished jobs only."""
    p50_jct_s: float
    p99_jct_s: float
    """The JCT at position ⌊0.99 n⌋ of the sorted ones, from 0; nothing is interpolated."""
    makespan_s: float
    """Seconds from the first submit to the last end."""
    queueing_s: float
    """Mean seconds that a job waits, before its first start and after each pause."""
    utilisation: float
    """Busy ÷ available slot-seconds, from first submit to last end; a shared slot counts once."""
    queue_length: float
    """Number of waiting jobs, averaged over time."""
    blocking_index: float
    """Waited so far ÷ solo time left, averaged over waiting jobs and the time in which there are any."""
    fairness_mean: float
    fairness_worst: float
    """Finish-time fairness: JCT ÷ what the job would take alone on its fair share; above 1 is unfair."""
    preemptions: int
    """Pauses after which a job had to wait."""
    migrations: int
    """Changes to other slots without a wait."""
    failed: int = 0
    """Jobs that failed for good."""
    failed_attempts: int = 0
    """Attempts that failed, the last ones of jobs that failed for good included."""
    lost_gpu_s: float = 0.0
    """GPU-seconds of work that was lost: done again from a checkpoint, or of jobs that failed for good."""
    goodput: float = math.nan
    """GPU-seconds that the finished jobs would have needed alone on the reference device ÷ available ones."""
    availability: float = 1.0
    """Available slots ÷ all slots of the cluster, averaged over time."""
    resizes: int = 0
    """Changes to a larger or smaller gang."""


@dataclass(frozen=True, slots=True)
class MeasuredRun:
    """All results of one pass over a timeline."""

    metrics: Metrics
    times: JobTimes
    series: Series


def measure(timeline: Timeline, jobs: Jobs, cluster: Cluster) -> MeasuredRun:
    """Return all results of a run in which every job has ended."""
    lives, now, series = _walk(timeline, jobs, cluster)
    times = JobTimes.of(lives, jobs, timeline)
    return MeasuredRun(_metrics(times, series, now, jobs, cluster), times, series)


def at_rank(values: Floats, share: float) -> float:
    """Return the value at position ⌊share × n⌋ of the sorted ones; 0 if there are none."""
    return float(np.sort(values)[int(share * len(values))]) if len(values) else 0.0


def _set_out(timeline: Timeline, jobs: Jobs, cluster: Cluster) -> timeline_pass.Pass:
    """Return the state before the first event. Columns are copied: all layouts share one compilation."""
    n = len(jobs.ids)
    nodes = cluster.table().astype(np.int64)
    lives = np.zeros((timeline_pass.LIVES, n))
    lives[[timeline_pass.FIRST_START_S, timeline_pass.END_S, timeline_pass.PAUSED_AT_S]] = np.nan
    lives[timeline_pass.LEFT_S] = jobs.iterations * jobs.iteration_s
    now = np.zeros(timeline_pass.NOW)
    now[timeline_pass.AVAILABLE] = nodes[SIZE] @ nodes[UP]
    return timeline_pass.Pass(
        events=timeline.events,
        code=timeline_pass.CODE,
        arena=timeline.slots,
        gpus=np.array(jobs.gpus, np.float64),
        iteration_s=np.array(jobs.iteration_s, np.float64),
        least=np.minimum(jobs.iterations, 1.0),
        sizes=nodes[SIZE],
        up=nodes[UP],
        gpus_per_slot=1.0 / cluster.slots_per_gpu,
        lives=lives,
        where=np.full(n, timeline_pass.ABSENT),
        load=np.zeros(cluster.slots, np.int32),
        now=now,
        series=np.zeros((timeline_pass.STEPS, len(timeline))),
    )


def _walk(timeline: Timeline, jobs: Jobs, cluster: Cluster) -> tuple[Floats, Floats, Series]:
    wrong = validate_timeline(timeline, len(jobs.ids), len(cluster.nodes), cluster.slots)
    if wrong:
        raise InputError(f"timeline: {wrong}; make the run again")
    out = _set_out(timeline, jobs, cluster)
    instants, impossible = timeline_pass.walk(out)
    if impossible >= 0:
        raise InputError(_impossible(timeline, jobs, impossible))
    open_jobs = np.flatnonzero(np.isnan(out.lives[timeline_pass.END_S]))
    if len(open_jobs):
        some = f"{len(open_jobs)} of {len(jobs.ids)} jobs, the first of them {jobs.ids[open_jobs[0]]},"
        raise InputError(f"timeline: {some} have not ended; let the run go on to its end")
    return out.lives, out.now, Series(*out.series[:, :instants])


def _impossible(timeline: Timeline, jobs: Jobs, number: int) -> str:
    record = timeline.events[number]
    what = EventKind(record["kind"]).name.lower()
    when = f"event {number}, at {record['at_s']} s"
    return (
        f"timeline: {when}: job {jobs.ids[record['job']]} {what}, which it could not then; make the run again"
    )


def _metrics(times: JobTimes, series: Series, now: Floats, jobs: Jobs, cluster: Cluster) -> Metrics:
    span_s = float(series.at_s[-1] - series.at_s[0])
    available_s, slots = series.total(series.available), np.full(len(series.at_s), float(cluster.slots))
    solo_gpu_s = (jobs.iterations * jobs.iteration_s * jobs.gpus)[times.finished]
    jct_s, fairness = times.jct_s[times.finished], times.fairness[times.finished]
    return Metrics(
        jobs=len(times.jct_s),
        avg_jct_s=float(jct_s.mean()) if len(jct_s) else 0.0,
        p50_jct_s=float(np.median(jct_s)) if len(jct_s) else 0.0,
        p99_jct_s=at_rank(jct_s, 0.99),
        makespan_s=float(times.end_s.max() - times.submit_s[0]),
        queueing_s=float(times.waiting_s.mean()),
        utilisation=_share(series.total(series.busy), available_s),
        queue_length=_share(series.total(series.waiting), span_s),
        blocking_index=_share(
            float(now[timeline_pass.TOTAL_BLOCKING_S]), float(now[timeline_pass.BLOCKED_S])
        ),
        fairness_mean=float(fairness.mean()) if len(jct_s) else 0.0,
        fairness_worst=float(fairness.max(initial=0.0)),
        preemptions=int(times.preemptions.sum()),
        migrations=int(times.migrations.sum()),
        failed=int(times.failed.sum()),
        failed_attempts=int((times.attempts - 1).sum() + times.failed.sum()),
        lost_gpu_s=float(times.lost_gpu_s.sum()),
        goodput=_share(float(solo_gpu_s.sum()), available_s / cluster.slots_per_gpu),
        availability=_share(available_s, series.total(slots)),
        resizes=int(times.resizes.sum()),
    )


def _share(part: float, whole: float) -> float:
    """Return a ratio; 0 if the whole is 0, as in a run of no length."""
    return part / whole if whole else 0.0


UNITS = (("d", 86400.0), ("h", 3600.0), ("min", 60.0), ("s", 1.0))
TIMES = ("avg JCT", "p50", "p99", "makespan", "queueing")
OTHERS = ("utilisation", "fairness", "preemptions", "wall [s]")

FAILED = "failed (not in JCT, fairness)"
"""Heading of a column that is shown if a job has failed."""
FAILING = ("failures", "lost [GPU h]", "goodput", "availability")
"""Headings of columns that are shown if attempts or nodes failed."""


class MetricsRow(NamedTuple):
    """A run in the table."""

    name: str
    metrics: Metrics
    wall_s: float
    knows: str = ""
    """What the scheduler knew of durations, if that is to be said."""


def table(lines: Sequence[MetricsRow]) -> str:
    """Return the table; all times but the last are in one unit, which the header names."""
    longest_s = max(line.metrics.avg_jct_s for line in lines)
    unit, seconds = next((unit for unit in UNITS if longest_s >= unit[1]), UNITS[-1])
    failed = any(line.metrics.failed for line in lines)
    failing = any(shows_failures(line.metrics) for line in lines)
    resized = any(line.metrics.resizes for line in lines)
    header = ("scheduler", *(f"{name} [{unit}]" for name in TIMES), *OTHERS, *([FAILED] if failed else []))
    header += (*(FAILING if failing else ()), *(["resizes"] if resized else []))
    knows = any(line.knows for line in lines)
    rows = [(*header, "knows") if knows else header]
    for line in lines:
        cells = _cells(line, seconds, failed=failed, failing=failing)
        cells += (f"{line.metrics.resizes:,}",) if resized else ()
        rows.append((*cells, line.knows) if knows else cells)
    return "\n".join(aligned(rows))


def shows_failures(metrics: Metrics) -> bool:
    """Return whether work was lost, or an attempt failed after which its job went on."""
    return metrics.failed_attempts > metrics.failed or metrics.lost_gpu_s > 0.0


def failing_cells(m: Metrics) -> tuple[str, str, str, str]:
    """Return the cells of `FAILING`."""
    goodput = "" if math.isnan(m.goodput) else f"{m.goodput:.1%}"
    return f"{m.failed_attempts:,}", f"{m.lost_gpu_s / 3600.0:,.2f}", goodput, f"{m.availability:.1%}"


def _cells(line: MetricsRow, unit_s: float, *, failed: bool, failing: bool) -> tuple[str, ...]:
    m = line.metrics
    times_s = (m.avg_jct_s, m.p50_jct_s, m.p99_jct_s, m.makespan_s, m.queueing_s)
    return (
        printable(line.name),
        *(f"{time_s / unit_s:,.2f}" for time_s in times_s),
        f"{m.utilisation:.1%}",
        f"{m.fairness_mean:.2f}",
        f"{m.preemptions:,}",
        f"{line.wall_s:.3f}",
        *([f"{m.failed:,} of {m.jobs:,}"] if failed else []),
        *(failing_cells(m) if failing else ()),
    )
