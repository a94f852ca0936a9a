"""The figures of merit of a run, all of them functions of its timeline."""

from dataclasses import dataclass

import numpy as np

from rota.core.arrays import Floats
from rota.core.cluster import Cluster
from rota.core.columns import SIZE, UP
from rota.core.errors import InputError
from rota.core.events import Kind
from rota.core.timeline import Timeline
from rota.results import sweep
from rota.results.jobs import Jobs, JobTimes
from rota.results.series import Series
from rota.results.sound import problem


@dataclass(frozen=True, slots=True)
class Metrics:
    """One run in a dozen numbers."""

    jobs: int
    avg_jct_s: float
    """Mean job completion time, from submit to end, of the jobs that finished; so all JCTs and fairness."""
    p50_jct_s: float
    p99_jct_s: float
    """The JCT at position ⌊0.99 n⌋ of the sorted ones, counted from 0; nothing is interpolated."""
    makespan_s: float
    """From the first submit to the last end."""
    queueing_s: float
    """Mean time that a job waits, before its first start and after each pause."""
    utilisation: float
    """Busy ÷ available slot-seconds, from first submit to last end; a shared slot counts once."""
    queue_length: float
    """Waiting jobs, averaged over time."""
    blocking_index: float
    """Waited so far ÷ solo time left, averaged over the waiting jobs and the time in which there are any."""
    fairness_mean: float
    fairness_worst: float
    """Finish-time fairness: JCT ÷ what the job would take alone on its fair share; above 1 is unfair."""
    preemptions: int
    """Pauses after which a job had to wait."""
    migrations: int
    """Moves to other slots without a wait."""
    failed: int = 0
    """Jobs that were given up, as their attempts were used up: only on real machines."""


@dataclass(frozen=True, slots=True)
class Measured:
    """Everything that one pass over a timeline gives."""

    metrics: Metrics
    times: JobTimes
    series: Series


def measure(timeline: Timeline, jobs: Jobs, cluster: Cluster) -> Measured:
    """All results of a run in which every job has ended."""
    lives, now, series = _walk(timeline, jobs, cluster)
    times = _times(lives, jobs, timeline)
    return Measured(_metrics(times, series, now), times, series)


def at_rank(values: Floats, share: float) -> float:
    """The value at position ⌊share × n⌋ of the sorted ones; 0 of none."""
    return float(np.sort(values)[int(share * len(values))]) if len(values) else 0.0


def _set_out(timeline: Timeline, jobs: Jobs, cluster: Cluster) -> sweep.Pass:
    """How things are before the first event. Columns are copied: all layouts share one compilation."""
    n = len(jobs.ids)
    nodes = cluster.table().astype(np.int64)
    lives = np.zeros((sweep.LIVES, n))
    lives[[sweep.FIRST_START_S, sweep.END_S, sweep.PAUSED_AT_S]] = np.nan
    lives[sweep.LEFT_S] = jobs.iterations * jobs.iteration_s
    now = np.zeros(sweep.NOW)
    now[sweep.AVAILABLE] = nodes[SIZE] @ nodes[UP]
    return sweep.Pass(
        events=timeline.events,
        code=np.array([sweep.CODES[Kind(number)] for number in range(len(Kind))]),
        arena=timeline.slots,
        gpus=np.array(jobs.gpus, np.float64),
        iteration_s=np.array(jobs.iteration_s, np.float64),
        least=np.minimum(jobs.iterations, 1.0),
        sizes=nodes[SIZE],
        up=nodes[UP],
        gpus_per_slot=1.0 / cluster.slots_per_gpu,
        lives=lives,
        where=np.full(n, sweep.ABSENT),
        load=np.zeros(cluster.slots, np.int32),
        now=now,
        series=np.zeros((sweep.STEPS, len(timeline))),
    )


def _walk(timeline: Timeline, jobs: Jobs, cluster: Cluster) -> tuple[Floats, Floats, Series]:
    wrong = problem(timeline, len(jobs.ids), len(cluster.nodes), cluster.slots)
    if wrong:
        raise InputError(f"timeline: {wrong}; make the run again")
    out = _set_out(timeline, jobs, cluster)
    instants, impossible = sweep.walk(out)
    if impossible >= 0:
        raise InputError(_impossible(timeline, jobs, impossible))
    open_jobs = np.flatnonzero(np.isnan(out.lives[sweep.END_S]))
    if len(open_jobs):
        some = f"{len(open_jobs)} of {len(jobs.ids)} jobs, the first of them {jobs.ids[open_jobs[0]]},"
        raise InputError(f"timeline: {some} have not ended; let the run go on to its end")
    return out.lives, out.now, Series(*out.series[:, :instants])


def _impossible(timeline: Timeline, jobs: Jobs, number: int) -> str:
    record = timeline.events[number]
    what = Kind(record["kind"]).name.lower()
    when = f"event {number}, at {record['at_s']} s"
    return (
        f"timeline: {when}: job {jobs.ids[record['job']]} {what}, which it could not then; make the run again"
    )


def _times(lives: Floats, jobs: Jobs, timeline: Timeline) -> JobTimes:
    failed = np.zeros(len(jobs.ids), np.int64)
    failed[timeline.events["job"][timeline.events["kind"] == Kind.FAILED]] = 1
    jct_s = lives[sweep.END_S] - jobs.submit_s
    solo_s = jobs.iterations * jobs.iteration_s
    crowding = np.maximum(lives[sweep.ASKED_S] / np.maximum(lives[sweep.GPU_S], 1e-300), 1.0)
    return JobTimes(
        submit_s=jobs.submit_s,
        first_start_s=lives[sweep.FIRST_START_S],
        end_s=lives[sweep.END_S],
        jct_s=jct_s,
        waiting_s=lives[sweep.WAITED_S],
        running_s=lives[sweep.RUNNING_S],
        preemptions=lives[sweep.PREEMPTIONS].astype(np.int64),
        migrations=lives[sweep.MIGRATIONS].astype(np.int64),
        fairness=jct_s / (solo_s * crowding),
        failed=failed,
    )


def _metrics(times: JobTimes, series: Series, now: Floats) -> Metrics:
    span_s = float(series.at_s[-1] - series.at_s[0])
    jct_s, fairness = times.jct_s[times.finished], times.fairness[times.finished]
    return Metrics(
        jobs=len(times.jct_s),
        avg_jct_s=float(jct_s.mean()) if len(jct_s) else 0.0,
        p50_jct_s=float(np.median(jct_s)) if len(jct_s) else 0.0,
        p99_jct_s=at_rank(jct_s, 0.99),
        makespan_s=float(times.end_s.max() - times.submit_s[0]),
        queueing_s=float(times.waiting_s.mean()),
        utilisation=_share(series.total(series.busy), series.total(series.available)),
        queue_length=_share(series.total(series.waiting), span_s),
        blocking_index=_share(float(now[sweep.TOTAL_BLOCKING_S]), float(now[sweep.BLOCKED_S])),
        fairness_mean=float(fairness.mean()) if len(jct_s) else 0.0,
        fairness_worst=float(fairness.max(initial=0.0)),
        preemptions=int(times.preemptions.sum()),
        migrations=int(times.migrations.sum()),
        failed=int(times.failed.sum()),
    )


def _share(part: float, whole: float) -> float:
    """A ratio; 0 of nothing, as in a run that has no length."""
    return part / whole if whole else 0.0
