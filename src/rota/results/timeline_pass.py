"""One pass over a timeline: segments, series over time, and validation."""

from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rota.core.arrays import Floats, Ints
from rota.core.compiled import inlined, kernel
from rota.core.timeline import EventKind, Timeline


@dataclass(frozen=True, slots=True)
class Segments:
    """Columns over the segments of jobs on their slots, by start time."""

    job: Ints
    start_s: Floats
    end_s: Floats
    begin: Ints
    """Position of its first slot in the timeline's slots."""
    gpus: Ints
    step_s: Floats
    """Seconds per iteration."""

    def __len__(self) -> int:
        return len(self.job)

    def between(self, start_s: float, end_s: float) -> "Segments":
        """Return the segments in a window, cut at its edges."""
        inside = (self.end_s > start_s) & (self.start_s < end_s)
        return Segments(
            self.job[inside],
            np.maximum(self.start_s[inside], start_s),
            np.minimum(self.end_s[inside], end_s),
            self.begin[inside],
            self.gpus[inside],
            self.step_s[inside],
        )


PLACED = (EventKind.STARTED, EventKind.MOVED, EventKind.RESIZED)
"""Events that put a job on slots."""


def segments(timeline: Timeline, *, by_step_time: bool = False) -> Segments:
    """Return the segments of a run, cut by step time, too, if asked for; none is empty.

    A segment ends with the next event of its job; an open one ends with the timeline.
    """
    events = timeline.events
    kinds = [*PLACED, EventKind.PAUSED, EventKind.ATTEMPT_FAILED]
    kinds += [EventKind.FINISHED, EventKind.FAILED]
    rows = np.flatnonzero(np.isin(events["kind"], [*kinds, EventKind.PACED] if by_step_time else kinds))
    rows = rows[np.argsort(events["job"][rows], kind="stable")]
    kind, job = events["kind"][rows], events["job"][rows].astype(np.int64)
    end_s = np.append(events["at_s"][rows[1:]], 0.0)
    end_s[np.append(job[1:] != job[:-1], True)] = events["at_s"][-1] if len(events) else 0.0
    placed = np.isin(kind, PLACED)
    last_placed = np.maximum.accumulate(np.where(placed, np.arange(len(rows)), 0))
    runs = (placed | (kind == EventKind.PACED)) & (end_s > events["at_s"][rows])
    chosen = np.flatnonzero(runs)[np.argsort(rows[runs])]
    where = rows[last_placed[chosen]]
    return Segments(
        job[chosen],
        events["at_s"][rows[chosen]],
        end_s[chosen],
        events["begin"][where],
        events["gpus"][where].astype(np.int64),
        events["value"][rows[chosen]],
    )


@dataclass(frozen=True, slots=True)
class Series:
    """Step functions: each value holds from its time until the next; the last time is the end of the run."""

    at_s: Floats
    waiting: Floats
    """Jobs without slots."""
    running: Floats
    """Jobs on slots."""
    busy: Floats
    """Slots with at least one job."""
    available: Floats
    """Slots of the nodes that are up."""

    def total(self, values: Floats) -> float:
        """Return the integral of a column over the run, in (its unit) × seconds."""
        return float(np.sum(values[:-1] * np.diff(self.at_s)))

    def means(self, values: Floats, edges_s: Floats) -> Floats:
        """Return the mean of a column in each interval between two edges; 0 outside the run."""
        held_s = np.concatenate(([0.0], np.cumsum(values[:-1] * np.diff(self.at_s))))
        sums = np.interp(edges_s, self.at_s, held_s)
        means: Floats = np.diff(sums) / np.diff(edges_s)
        return means


def validate_timeline(timeline: Timeline, jobs: int, nodes: int, slots: int) -> str | None:
    """Return what is wrong first with a timeline of so many jobs, nodes and slots; None if nothing is."""
    if not len(timeline):
        return "has no events"
    found = first_wrong(timeline.events, timeline.slots, CODE, jobs, nodes, slots)
    return WRONG[found] if found < len(WRONG) else None


# mypy: allow-untyped-decorators


# What can happen, in numbers of our own: a compiled kernel is kept as it is when only another file changes.
NODE_LOST, NODE_JOINED, FINISHED, ARRIVED, PAUSED, STARTED, MOVED, PACED = range(8)
CRASHED, ROLLED_BACK, RESIZED = 8, 9, 10
CODES = {
    EventKind.NODE_LOST: NODE_LOST,
    EventKind.NODE_JOINED: NODE_JOINED,
    EventKind.FINISHED: FINISHED,
    EventKind.FAILED: FINISHED,
    EventKind.ARRIVED: ARRIVED,
    EventKind.PAUSED: PAUSED,
    EventKind.STARTED: STARTED,
    EventKind.MOVED: MOVED,
    EventKind.PACED: PACED,
    EventKind.ATTEMPT_FAILED: CRASHED,
    EventKind.ROLLED_BACK: ROLLED_BACK,
    EventKind.RESIZED: RESIZED,
}

CODE = np.array([CODES[EventKind(number)] for number in range(len(EventKind))])
"""Code of each kind of event."""

WRONG = (
    "has events of unknown kinds",
    "names jobs that the run does not have",
    "names nodes that the cluster does not have",
    "is not in order of time",
    "has fewer slots than its events name",
    "names slots that the cluster does not have",
)
"""What `first_wrong` finds, by its number."""

# Rows of `lives`, which has a column per job.
FIRST_START_S = 0
END_S = 1
SINCE_S = 2  # when it last began to wait or to run
WAITED_S = 3
RUNNING_S = 4
PAUSED_AT_S = 5
LEFT_S = 6  # solo time still to do, as of its last pause
ASKED_S = 7  # GPU-seconds that all jobs asked for in its life; until its end, the total at its arrival
GPU_S = 8  # GPU-seconds that were there in its life; until its end, the total at its arrival
PREEMPTIONS = 9
MIGRATIONS = 10
FAILURES = 11  # attempts that failed, but for the last one of a job that failed for good
STEP_S = 12  # its step time
HELD_GPU_S = 13  # GPU-seconds on its slots
LOST_GPU_S = 14  # GPU-seconds of work that it did again
RESIZES = 15
LIVES = 16  # how many rows there are

# Entries of `now`: how things stand at the moment of the pass, and what has added up on the way.
WAITING = 0  # jobs
RUNNING = 1  # jobs
BUSY = 2  # slots
AVAILABLE = 3  # slots
ASKED = 4  # GPUs, by all active jobs
AGE = 5  # waited ÷ left, summed over the waiting jobs
AGEING = 6  # how fast that grows
TOTAL_ASKED_S = 7
TOTAL_GPU_S = 8
TOTAL_BLOCKING_S = 9  # the mean age of the waiting jobs × seconds
BLOCKED_S = 10  # seconds in which a job waited
NOW = 11  # how many entries there are

# Rows of `series`: the time, then the first entries of `now`.
STEPS = 5

# Where a job is, if not on the slots of an event.
ABSENT, QUEUED, DONE = -1, -2, -3


step = partial(kernel, allocates=False)


class Pass(NamedTuple):
    """All arrays that the pass reads and writes."""

    events: NDArray[np.void]
    code: NDArray[np.int64]
    """Code of each kind of event."""
    arena: NDArray[np.int32]
    gpus: Floats
    iteration_s: Floats
    least: Floats
    """Fewest iterations that a waiting job can have left: one, or all of a shorter job.

    Less is a rounding error; dividing by it would outweigh all other jobs.
    """
    sizes: Ints
    """Number of slots of each node."""
    up: Ints
    """1 for each node that is up."""
    gpus_per_slot: float
    lives: Floats
    where: Ints
    """The event that put each job on its slots, or ABSENT, QUEUED, DONE."""
    load: NDArray[np.int32]
    """Number of jobs on each slot."""
    now: Floats
    series: Floats


@step
def first_wrong(
    events: NDArray[np.void],
    arena: NDArray[np.int32],
    code: NDArray[np.int64],
    jobs: int,
    nodes: int,
    slots: int,
) -> int:
    """Return the first of `WRONG` that applies to any event, or their number."""
    wrong = len(WRONG)
    before_s = -np.inf
    for e in range(events.shape[0]):
        event = events[e]
        if not 0 <= event.kind < code.shape[0]:
            return 0
        if (code[event.kind] > NODE_JOINED and not 0 <= event.job < jobs) or event.job < 0:
            wrong = min(wrong, 1)
        elif code[event.kind] <= NODE_JOINED and event.job >= nodes:
            wrong = min(wrong, 2)
        if not event.at_s >= before_s:
            wrong = min(wrong, 3)
        before_s = event.at_s
        if event.gpus < 0 or event.begin < 0 or event.begin > arena.shape[0] - event.gpus:
            wrong = min(wrong, 4)
    for i in range(arena.shape[0]):
        if not 0 <= arena[i] < slots:
            wrong = min(wrong, 5)
    return wrong


@step
def walk(p: Pass) -> tuple[int, int]:
    """Go through all events; returns the number of instants and the first impossible event, or -1.

    Starts at the first arrival and stops at the last end: node events before or after do not count.
    """
    at_s = np.inf
    left = p.lives.shape[1]
    instants = 0
    for e in range(p.events.shape[0]):
        event = p.events[e]
        if event.at_s > at_s:
            let_pass(p, event.at_s - at_s)
            at_s = event.at_s
        code = p.code[event.kind]
        if code <= NODE_JOINED:
            change_node(p, event.job, code == NODE_JOINED)
        elif not happen(p, e, code):
            return instants, e
        elif code == ARRIVED and at_s == np.inf:
            at_s = event.at_s
        left -= code == FINISHED
        if at_s < np.inf and (left == 0 or e + 1 == p.events.shape[0] or p.events[e + 1].at_s > at_s):
            p.series[0, instants] = at_s
            for i in range(STEPS - 1):
                p.series[1 + i, instants] = p.now[i]
            instants += 1
        if left == 0:
            break
    return instants, -1


@inlined
def let_pass(p: Pass, elapsed_s: float) -> None:
    """Add up what goes on between two instants; the ages of waiting jobs grow linearly."""
    now = p.now
    now[TOTAL_ASKED_S] += now[ASKED] * elapsed_s
    now[TOTAL_GPU_S] += now[AVAILABLE] * p.gpus_per_slot * elapsed_s
    if now[WAITING] > 0.0:
        now[TOTAL_BLOCKING_S] += (now[AGE] + 0.5 * now[AGEING] * elapsed_s) * elapsed_s / now[WAITING]
        now[BLOCKED_S] += elapsed_s
        now[AGE] += now[AGEING] * elapsed_s


@inlined
def change_node(p: Pass, node: int, joins: bool) -> None:
    """Let a node join or leave; repeating it changes nothing."""
    if joins != (p.up[node] == 1):
        p.up[node] = 1 if joins else 0
        p.now[AVAILABLE] += p.sizes[node] if joins else -p.sizes[node]


@inlined
def happen(p: Pass, e: int, code: int) -> bool:
    """Apply one event to its job; False if it is impossible in the job's state."""
    event = p.events[e]
    job, at_s = event.job, event.at_s
    if code == ARRIVED:
        if p.where[job] != ABSENT:
            return False
        arrive(p, job, at_s)
    elif code == STARTED:
        if p.where[job] != QUEUED:
            return False
        start(p, job, at_s, e)
    elif code == FINISHED and p.where[job] == QUEUED and not np.isnan(p.lives[FIRST_START_S, job]):
        dequeue(p, job, at_s)  # of a real job that was paused: what it was at then was the last of it
        end(p, job, at_s)
    elif p.where[job] < 0:
        return False
    else:
        change(p, e, code)
    if code in (STARTED, MOVED, PACED, RESIZED):
        p.lives[STEP_S, job] = event.value
    return True


@inlined
def change(p: Pass, e: int, code: int) -> None:
    """Apply one event to its job, which is on slots."""
    event = p.events[e]
    job, at_s = event.job, event.at_s
    if code == MOVED:
        vacate(p, p.where[job])
        occupy(p, e)
        p.where[job] = e
        p.lives[MIGRATIONS, job] += 1.0
    elif code == PAUSED:
        pause(p, job, at_s, event.value)
        p.lives[PREEMPTIONS, job] += 1.0
        p.lives[PAUSED_AT_S, job] = at_s
    elif code == CRASHED:
        pause(p, job, at_s, event.value)
        p.lives[FAILURES, job] += 1.0
    elif code == RESIZED:
        hold(p, job, at_s)
        p.lives[SINCE_S, job] = at_s
        vacate(p, p.where[job])
        occupy(p, e)
        p.where[job] = e
        p.lives[RESIZES, job] += 1.0
    elif code == ROLLED_BACK:
        p.lives[LOST_GPU_S, job] += event.value * p.lives[STEP_S, job] * gpus_of(p, job)
    elif code == FINISHED:
        finish(p, job, at_s)


@inlined
def arrive(p: Pass, job: int, at_s: float) -> None:
    """Let a job arrive, and wait."""
    p.now[ASKED] += p.gpus[job]
    p.lives[ASKED_S, job] = p.now[TOTAL_ASKED_S]
    p.lives[GPU_S, job] = p.now[TOTAL_GPU_S]
    enqueue(p, job, at_s)


@inlined
def start(p: Pass, job: int, at_s: float, e: int) -> None:
    """Start a job; a start in the instant of a pause makes the pause no preemption."""
    dequeue(p, job, at_s)
    if np.isnan(p.lives[FIRST_START_S, job]):
        p.lives[FIRST_START_S, job] = at_s
    if p.lives[PAUSED_AT_S, job] == at_s:
        p.lives[PREEMPTIONS, job] -= 1.0
        p.lives[PAUSED_AT_S, job] = np.nan
    p.lives[SINCE_S, job] = at_s
    p.now[RUNNING] += 1.0
    occupy(p, e)
    p.where[job] = e


@inlined
def pause(p: Pass, job: int, at_s: float, remaining: float) -> None:
    """Take a job off its slots, and let it wait with this many iterations left."""
    leave(p, job, at_s)
    p.lives[LEFT_S, job] = max(remaining, p.least[job]) * p.iteration_s[job]
    enqueue(p, job, at_s)


@inlined
def finish(p: Pass, job: int, at_s: float) -> None:
    """Take a job off its slots for good."""
    leave(p, job, at_s)
    end(p, job, at_s)


@inlined
def end(p: Pass, job: int, at_s: float) -> None:
    """Close the account of a job."""
    p.where[job] = DONE
    p.now[ASKED] -= p.gpus[job]
    p.lives[END_S, job] = at_s
    p.lives[ASKED_S, job] = p.now[TOTAL_ASKED_S] - p.lives[ASKED_S, job]
    p.lives[GPU_S, job] = p.now[TOTAL_GPU_S] - p.lives[GPU_S, job]


@inlined
def enqueue(p: Pass, job: int, at_s: float) -> None:
    """Let a job wait from now on."""
    p.where[job] = QUEUED
    p.lives[SINCE_S, job] = at_s
    p.now[WAITING] += 1.0
    p.now[AGE] += p.lives[WAITED_S, job] / p.lives[LEFT_S, job]
    p.now[AGEING] += 1.0 / p.lives[LEFT_S, job]


@inlined
def dequeue(p: Pass, job: int, at_s: float) -> None:
    """End the wait of a job."""
    p.lives[WAITED_S, job] += at_s - p.lives[SINCE_S, job]
    p.now[WAITING] -= 1.0
    p.now[AGE] -= p.lives[WAITED_S, job] / p.lives[LEFT_S, job]
    p.now[AGEING] -= 1.0 / p.lives[LEFT_S, job]
    if p.now[WAITING] == 0.0:
        p.now[AGE] = p.now[AGEING] = 0.0


@inlined
def leave(p: Pass, job: int, at_s: float) -> None:
    """Take a job off its slots."""
    vacate(p, p.where[job])
    hold(p, job, at_s)
    p.now[RUNNING] -= 1.0


@inlined
def hold(p: Pass, job: int, at_s: float) -> None:
    """Count the time that a job had its slots."""
    p.lives[RUNNING_S, job] += at_s - p.lives[SINCE_S, job]
    p.lives[HELD_GPU_S, job] += (at_s - p.lives[SINCE_S, job]) * gpus_of(p, job)


@inlined
def gpus_of(p: Pass, job: int) -> float:
    """Return how many GPUs a running job has."""
    return float(p.events[p.where[job]].gpus) * p.gpus_per_slot


@inlined
def occupy(p: Pass, e: int) -> None:
    """Put a job on the slots of an event; a slot is busy, however many jobs share it."""
    begin = p.events[e].begin
    for i in range(begin, begin + p.events[e].gpus):
        slot = p.arena[i]
        p.now[BUSY] += p.load[slot] == 0
        p.load[slot] += 1


@inlined
def vacate(p: Pass, e: int) -> None:
    """Take a job off the slots of an event."""
    begin = p.events[e].begin
    for i in range(begin, begin + p.events[e].gpus):
        slot = p.arena[i]
        p.load[slot] -= 1
        p.now[BUSY] -= p.load[slot] == 0
