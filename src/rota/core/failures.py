"""Failures of jobs and nodes: what is configured, the state, and the kernels that let jobs fail.

When a job fails is a number of seconds on its slots, not a time: it is drawn from the seed, the number of
the job and that of the attempt, and from nothing else. So every scheduler meets the same failures, and a copy
of an engine goes on with the same ones. Nodes fail by the clock, drawn in the same way.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rota.core.arrays import Floats
from rota.core.cluster import Cluster
from rota.core.columns import (
    BEGIN,
    EXECUTED_S,
    EXECUTED_THEN_S,
    GPUS,
    JOB,
    PLACE,
    REMAINING,
    ROW,
    SINCE_S,
    SUBMIT_S,
    UNIT,
)
from rota.core.compiled import carray, kernel
from rota.core.costs import CostModel
from rota.core.errors import ConfigError
from rota.core.kernels import catch_up, remove, roll_back, stop, write
from rota.core.memory import (
    all_rows,
    columns_of,
    events_of,
    floats,
    index_of,
    ints,
    plan_at,
    pointer,
)
from rota.core.record import SharedRecord
from rota.core.timeline import EventKind

HOUR_S = 3600.0
CHECKPOINT_S = 1800.0
LARGEST_SEED = 2**63 - 1
ATTEMPT_FAILED, FAILED = int(EventKind.ATTEMPT_FAILED), int(EventKind.FAILED)


@dataclass(frozen=True, slots=True)
class Failures:
    """Failures of jobs and nodes, and the checkpoints that jobs go on from.

    >>> import rota
    >>> jobs, cluster = rota.synthetic_trace(jobs=40, gpus=16), rota.Cluster.uniform(nodes=2, gpus=8)
    >>> calm = rota.simulate(jobs, cluster, "srtf")
    >>> often = rota.simulate(jobs, cluster, "srtf", failures=rota.Failures(per_gpu_hour=0.05))
    >>> calm.metrics.failed_attempts, often.metrics.failed_attempts > 0, often.metrics.lost_gpu_s > 0
    (0, True, True)
    """

    per_gpu_hour: float = 0.0
    """Mean number of failures of a running job, per GPU and hour."""
    node_mtbf_s: float = 0.0
    """Mean seconds from a node's repair, or the start, to its next failure; 0: nodes do not fail."""
    node_repair_s: float = 3600.0
    """Mean seconds from a node's failure to its repair."""
    as_in_trace: bool = True
    """Whether attempts and jobs fail that failed in the trace, if it says which."""
    checkpoint_every_s: float | None = None
    """Productive seconds between the checkpoints from which a failed job goes on: 0 loses nothing, inf all.
    1800 if not set, or `checkpoint_every_s` of the cost model. A preempted job is saved first unless the cost
    model has checkpoints, too."""
    attempts: int = 100
    """Attempts after which a job fails for good."""
    seed: int = 0
    """Seed of all failures that are drawn."""

    def __post_init__(self) -> None:
        for name in ("per_gpu_hour", "node_mtbf_s"):
            if not 0.0 <= getattr(self, name) < np.inf:
                raise ConfigError(f"failures: {name} is {getattr(self, name)}; it must be 0 or more")
        if not 0.0 < self.node_repair_s < np.inf:
            raise ConfigError(f"failures: node_repair_s is {self.node_repair_s}; it must be above 0")
        if self.checkpoint_every_s is not None and not self.checkpoint_every_s >= 0.0:
            raise ConfigError(
                f"failures: checkpoint_every_s is {self.checkpoint_every_s}; it must be 0 or more"
            )
        if self.attempts < 1:
            raise ConfigError(f"failures: attempts is {self.attempts}; it must be at least 1")
        if not 0 <= self.seed <= LARGEST_SEED:
            raise ConfigError(f"failures: seed is {self.seed}; it must be 0 or more, and below 2**63")

    @property
    def is_random(self) -> bool:
        """Whether anything is drawn from the seed."""
        return self.per_gpu_hour > 0.0 or self.node_mtbf_s > 0.0

    def checkpoints(self, cost: CostModel) -> float:
        """Return the productive seconds between checkpoints. Raises ConfigError if both say how many."""
        if cost.checkpoint_every_s > 0.0:
            if self.checkpoint_every_s not in (None, cost.checkpoint_every_s):
                raise ConfigError(
                    "checkpoint_every_s and failures.checkpoint_every_s differ; set one of them"
                )
            return cost.checkpoint_every_s
        return CHECKPOINT_S if self.checkpoint_every_s is None else self.checkpoint_every_s


@dataclass(frozen=True, slots=True)
class RecordedFailures:
    """What failed in a trace: attempts of each job, and jobs for good."""

    begin: NDArray[np.int64]
    """Job → where its failed attempts begin in `after_s`; one more entry at the end."""
    after_s: Floats
    """Seconds on its slots after which each attempt failed."""
    for_good: NDArray[np.int32]
    """1 for each job that had failed when it ended."""

    @classmethod
    def none(cls, jobs: int) -> "RecordedFailures":
        """Return those of a trace in which nothing failed."""
        return cls(np.zeros(jobs + 1, np.int64), np.zeros(0), np.zeros(jobs, np.int32))


STATE = ("fails_s", "failed", "gang", "node_s", "node_draws", "broken", "away", "failing")
"""Arrays that change: for each job the seconds on its slots at which it fails next, how many attempts failed,
and the size of its gang that this holds for; for each node when it fails or is repaired, how often it did,
whether it is broken, and whether it is away by plan; and the rows of the jobs that fail next."""
GIVEN = ("begin", "after_s", "for_good")

RECORD = np.dtype(
    [(name, "i8") for name in (*STATE, *GIVEN, "jobs", "recorded", "nodes", "most_attempts", "seed")]
    + [(name, "i8") for name in ("fail_count", "failing_now", "turning", "barren")]
    + [(name, "f8") for name in ("job_mean_s", "node_mean_s", "repair_mean_s", "job_s", "change_s")]
)


class FailureState(SharedRecord):
    """The failures of an engine: what was drawn so far, and what fails next."""

    def __init__(
        self, settings: Failures, recorded: RecordedFailures, table: Floats, cluster: Cluster
    ) -> None:
        """Begin with a table of all jobs, as that of an engine."""
        self._made_from = settings, recorded, table, cluster
        jobs, nodes = table.shape[1], len(cluster.nodes)
        if settings.node_mtbf_s > 0.0 and cluster.slots_per_gpu > 1:
            raise ConfigError("node_mtbf_s cannot be combined with slots_per_gpu: give one of them")
        if not settings.as_in_trace:
            recorded = RecordedFailures.none(jobs)
        self.lay_out_record(RECORD)
        self.put(
            fails_s=np.full(jobs, np.inf),
            failed=np.zeros(jobs, np.int32),
            gang=table[GPUS].copy(),
            node_s=np.full(nodes, np.inf),
            node_draws=np.zeros(nodes, np.int32),
            broken=np.zeros(nodes, np.int32),
            away=np.zeros(nodes, np.int32),
            failing=np.zeros(max(jobs, 1), np.int32),
            **{name: np.ascontiguousarray(getattr(recorded, name)) for name in GIVEN},
        )
        self.arrays["away"][[*cluster.late]] = 1
        rate = settings.per_gpu_hour / HOUR_S / cluster.slots_per_gpu
        self.write(
            jobs=jobs, recorded=len(recorded.after_s), nodes=nodes, seed=settings.seed,
            most_attempts=settings.attempts, job_mean_s=1.0 / rate if rate > 0.0 else np.inf,
            node_mean_s=settings.node_mtbf_s, repair_mean_s=settings.node_repair_s,
            job_s=np.inf, change_s=np.inf,
        )  # fmt: skip
        begin_at(self.address)

    def checkpoints(self, cost: CostModel) -> float:
        """Return the productive seconds between checkpoints."""
        return self._made_from[0].checkpoints(cost)

    def fresh(self) -> "FailureState":
        """Return another one, at the beginning."""
        return FailureState(*self._made_from)

    def snapshot(self) -> Mapping[str, NDArray[Any]]:
        """Return copies of everything that changes."""
        return {"record": self.record.copy(), **{name: self.arrays[name].copy() for name in STATE}}

    def restore(self, found: Mapping[str, NDArray[Any]]) -> None:
        """Make everything as it was at a snapshot."""
        for name in STATE:
            self.arrays[name][:] = found[name]
        self.record[:] = found["record"]
        self.put(**self.arrays)


# ── draws ───────────────────────────────────────────────────────────────────────────────────────────────────

OF_JOBS, OF_NODES = 1, 2


@kernel
def mixed(z):
    """Return a number whose bits all depend on all bits of another (the end of splitmix64)."""
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@kernel
def exponential(seed, stream, which, number):
    """Return a random number, exponential with mean 1: always the same for the same arguments."""
    step = np.uint64(0x9E3779B97F4A7C15)
    z = mixed(np.uint64(seed) + step)
    z = mixed((z ^ np.uint64(stream)) + step)
    z = mixed((z ^ np.uint64(which)) + step)
    z = mixed((z ^ np.uint64(number)) + step)
    return -np.log((float(z >> np.uint64(11)) + 1.0) * 2.0**-53)


@kernel
def failures_at(address):
    """Return the record of the failures of an engine."""
    return carray(pointer(address), 1, RECORD)[0]


@kernel
def attempt_s(f, job, gpus):
    """Return how many seconds on its slots the present attempt of a job takes until it fails."""
    number = ints(f.failed, f.jobs)[job]
    begin = carray(pointer(f.begin), f.jobs + 1, np.int64)
    lasts_s = np.inf
    if begin[job] + number < begin[job + 1]:
        lasts_s = floats(f.after_s, f.recorded)[begin[job] + number]
    if f.job_mean_s < np.inf:
        lasts_s = min(lasts_s, exponential(f.seed, OF_JOBS, job, number) * f.job_mean_s / gpus)
    return lasts_s


@kernel
def begin_at(address):
    """Draw the first failure of each job and node."""
    f = failures_at(address)
    fails_s, gang = floats(f.fails_s, f.jobs), floats(f.gang, f.jobs)
    for job in range(f.jobs):
        fails_s[job] = attempt_s(f, job, gang[job])
    if f.node_mean_s > 0.0:
        node_s = floats(f.node_s, f.nodes)
        for node in range(f.nodes):
            node_s[node] = exponential(f.seed, OF_NODES, node, 0) * f.node_mean_s
        f.change_s = node_s.min()


# ── jobs that fail ──────────────────────────────────────────────────────────────────────────────────────────


@kernel
def find_failing(e):
    """Find the running jobs that fail next: their rows, and when."""
    f, columns, p = failures_at(e.failures), columns_of(e), plan_at(e.current)
    index, fails_s, failing = index_of(p), floats(f.fails_s, f.jobs), ints(f.failing, f.jobs)
    gang = floats(f.gang, f.jobs)
    f.job_s = np.inf
    f.fail_count = 0
    for k in range(p.jobs):
        row = index[ROW, k]
        job = int(columns[JOB, row])
        if fails_s[job] == np.inf:
            continue
        gpus = index[BEGIN, index[UNIT, k] + 1] - index[BEGIN, index[UNIT, k]]
        ran_s = columns[EXECUTED_THEN_S, row]
        if gpus != gang[job]:  # its account was opened now; a larger gang fails sooner
            fails_s[job] = ran_s + (fails_s[job] - ran_s) * gang[job] / gpus
            gang[job] = gpus
        at_s = max(columns[SINCE_S, row] + (fails_s[job] - ran_s), e.now_s)
        if at_s < f.job_s:
            f.job_s = at_s
            f.fail_count = 0
        if at_s == f.job_s:
            failing[f.fail_count] = row
            f.fail_count += 1


@kernel
def next_failure(e, at_s, ends, changing):
    """Return the next instant, and how many jobs end and nodes change by plan then, failures included."""
    f = failures_at(e.failures)
    next_s = min(f.job_s, f.change_s)
    f.barren = 0 if e.running > 0 or at_s < np.inf else f.barren + 1
    if f.barren > PATIENCE:
        return np.inf, 0, 0
    if next_s < at_s:
        at_s, ends, changing = next_s, 0, 0
    f.failing_now = f.fail_count if f.job_s == at_s else 0
    f.turning = 0
    if f.change_s == at_s:
        node_s = floats(f.node_s, f.nodes)
        for node in range(f.nodes):
            f.turning += node_s[node] == at_s
    return at_s, ends, changing


PATIENCE = 100_000  # changes of nodes while jobs wait and nothing else happens, after which a run is stuck


@kernel
def failures_due(e):
    """Return the most events that the failures of the next instant write."""
    f = failures_at(e.failures)
    return 2 * f.failing_now + f.turning * (1 + 2 * plan_at(e.current).jobs)


@kernel
def fail_jobs(e):
    """Let jobs that have ended fail for good if they did in the trace, and attempts fail that are due."""
    f, columns, events = failures_at(e.failures), columns_of(e), events_of(e)
    for_good = ints(f.for_good, f.jobs)
    for i in range(e.count - e.coming - e.ending_now, e.count - e.coming):
        if for_good[events[i].job]:
            events[i].kind = FAILED
    if f.failing_now == 0:
        return
    failing, failed = ints(f.failing, f.jobs), ints(f.failed, f.jobs)
    fails_s, gang = floats(f.fails_s, f.jobs), floats(f.gang, f.jobs)
    ended = 0
    for i in range(f.failing_now):
        row = failing[i]
        if columns[PLACE, row] < 0.0:
            continue  # it has ended at the same time
        job = int(columns[JOB, row])
        failed[job] += 1
        catch_up(columns, row, e.now_s, e.checkpoint_every_s)
        e.count = roll_back(columns, row, events, e.count, e.now_s)
        stop(columns, row)
        e.running -= 1
        if failed[job] >= f.most_attempts:
            failing[ended] = row
            ended += 1
            continue
        fails_s[job] = columns[EXECUTED_S, row] + attempt_s(f, job, gang[job])
        e.count = write(events, e.count, e.now_s, ATTEMPT_FAILED, job, columns[REMAINING, row], 0, 0)
    if ended > 0:
        give_up(e, failing, ended)


@kernel
def give_up(e, rows, ended):
    """Remove jobs that have failed for good."""
    columns, events, before = columns_of(e), events_of(e), e.count
    for i in range(ended):
        e.completed_s += e.now_s - columns[SUBMIT_S, rows[i]]
    e.count = remove(
        columns, all_rows(e), e.active - e.queued, e.active, ints(e.free, e.capacity), rows, ended,
        e.now_s, events, e.count,
    )  # fmt: skip
    for i in range(ended):
        events[before + i].kind = FAILED
        events[before + i].value = columns[REMAINING, rows[i]]
    e.active -= ended
    e.done += ended
