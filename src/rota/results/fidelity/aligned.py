"""Timelines of trials and of jobs in one form, to be aligned and compared."""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from rota.core.grouped import grouped
from rota.core.population.events import Event, Grown, Reported
from rota.core.timeline import EventKind, Timeline
from rota.results.jobs import JobColumns
from rota.results.population.run import PopulationRecord
from rota.results.run import RunRecord

TRIALS, JOBS = "trials", "jobs"
PER_INTERVAL, PER_ITERATION = "s per interval", "s per iteration"
STRETCHES = (
    *(EventKind.STARTED, EventKind.PAUSED),
    *(EventKind.FINISHED, EventKind.FAILED, EventKind.ATTEMPT_FAILED),
)
LEAST_ITERATIONS = 1e-6
"""Fewest iterations that count; fewer are a rounding error."""


class TimedInterval(NamedTuple):
    """An interval of a trial that reported, or a job from a start to the next pause or its end."""

    began_s: float
    slots: tuple[int, ...]
    """Slots; empty if they are not known."""
    amount: float
    """Amount of work; only equal amounts are compared: steps of a trial; for jobs, 1 average iteration."""
    whole_s: float
    """Seconds that this amount took."""
    computing_s: float | None
    """Seconds without dispatch and transfer, where known."""
    weight: float = 1.0
    """Weight in means: its number of iterations. One of a single iteration may mostly have waited."""


@dataclass(frozen=True, slots=True)
class Life:
    """The times and intervals of a trial or a job."""

    first_start_s: float
    end_s: float
    jct_s: float
    """Seconds from submission to end."""
    intervals: tuple[TimedInterval, ...]


@dataclass(frozen=True, slots=True)
class AlignedTimeline:
    """A timeline to be compared; times count from the first submission."""

    what: str
    """`trials` or `jobs`."""
    unit: str
    """Unit of the time of an interval."""
    lives: Mapping[str, Life]
    """The life of each trial or job, by number or id."""
    has_deadline: bool = False
    """Whether it ends at a deadline, so that not all trials need have reported."""
    accuracy: float | None = None
    """Best of the last metrics of trials, at the deadline if there is one; None if nothing was measured."""
    changes: tuple[tuple[float, int], ...] = ()
    """Time of each change of a network, and how many steps its trial had trained."""

    @property
    def makespan_s(self) -> float:
        """The seconds from the first submission to the last end."""
        return max(life.end_s for life in self.lives.values())


def population_timeline(run: PopulationRecord, seed: int) -> AlignedTimeline:
    """Return the timeline of a population with one seed, until its deadline."""
    found = next(each for each in run.summary.repetitions if each.seed == seed)
    until_s = math.inf if found.deadline_s is None else found.deadline_s
    events = [event for event in run.events(seed) if event.at_s <= until_s]
    accuracy = found.final_accuracy
    return AlignedTimeline(
        TRIALS,
        PER_INTERVAL,
        lives_of_trials(events),
        found.deadline_s is not None,
        None if accuracy is None else run.summary.sign * accuracy,
        tuple(changes_of_networks(events)),
    )


def changes_of_networks(events: Iterable[Event]) -> Iterator[tuple[float, int]]:
    """Yield the time of each change of a network, and the steps that its trial had reported."""
    steps: Counter[int] = Counter()
    for event in events:
        if isinstance(event, Reported):
            steps[event.trial] += event.steps
        elif isinstance(event, Grown):
            yield event.at_s, steps[event.trial]


def jobs_timeline(run: RunRecord) -> AlignedTimeline:
    """Return the timeline of the jobs of a trace under one scheduler."""
    return AlignedTimeline(JOBS, PER_ITERATION, lives_of_jobs(run))


def lives_of_trials(events: Iterable[Event]) -> dict[str, Life]:
    """Return the lives of all trials that reported: from 0 to their last report."""
    reports = grouped((event.trial, event) for event in events if isinstance(event, Reported))
    return {str(trial): _life(reports[trial]) for trial in sorted(reports)}


def lives_of_jobs(run: RunRecord) -> dict[str, Life]:
    """Return the lives of all jobs, on a clock that starts with the first submit."""
    jobs, times, origin_s = run.jobs, run.times, float(run.jobs.submit_s.min())
    stretches = _stretches(run.timeline(), jobs)
    columns = (times.first_start_s - origin_s, times.end_s - origin_s, times.jct_s, times.running_s)
    rows = zip(jobs.ids, jobs.iterations.tolist(), *(column.tolist() for column in columns), strict=True)
    return {
        name: Life(first_s, end_s, jct_s, stretches.get(job) or _whole(first_s, running_s, iterations))
        for job, (name, iterations, first_s, end_s, jct_s, running_s) in enumerate(rows)
    }


def _life(reports: Sequence[Reported]) -> Life:
    last_s = reports[-1].at_s
    return Life(min(each.began_s for each in reports), last_s, last_s, tuple(map(_interval, reports)))


def _interval(report: Reported) -> TimedInterval:
    whole_s = report.ended_s - report.began_s
    return TimedInterval(report.began_s, (report.slot,), report.steps, whole_s, whole_s - report.moved_s)


def _stretches(timeline: Timeline, jobs: JobColumns) -> dict[int, tuple[TimedInterval, ...]]:
    """Return the intervals of each job in which iterations were done; a migration does not end one."""
    left, origin_s = jobs.iterations.tolist(), float(jobs.submit_s.min())
    open_: dict[int, tuple[float, tuple[int, ...]]] = {}
    found: dict[int, list[TimedInterval]] = {}
    for at_s, kind, job, value, slots in _changes(timeline):
        if kind == EventKind.STARTED:
            open_[job] = at_s, slots
        elif job in open_:  # a real job may end where it was paused
            began_s, on = open_.pop(job)
            remaining = 0.0 if kind == EventKind.FINISHED else value
            done, left[job] = left[job] - remaining, remaining
            if done > LEAST_ITERATIONS:
                step_s = (at_s - began_s) / done
                found.setdefault(job, []).append(
                    TimedInterval(began_s - origin_s, on, 1.0, step_s, None, done)
                )
    return {job: tuple(intervals) for job, intervals in found.items()}


def _changes(timeline: Timeline) -> Iterable[tuple[float, int, int, float, tuple[int, ...]]]:
    """Yield starts, pauses and ends: time, kind, job, value and slots."""
    slots = timeline.slots.tolist()
    names = ("at_s", "kind", "job", "value", "begin", "gpus")
    rows = zip(*(timeline.events[name].tolist() for name in names), strict=True)
    for at_s, kind, job, value, begin, gpus in rows:
        if kind in STRETCHES:
            yield at_s, kind, job, value, tuple(sorted(slots[begin : begin + gpus]))


def _whole(began_s: float, running_s: float, iterations: float) -> tuple[TimedInterval, ...]:
    """Return all of a job's running time as one interval, where no interval is known."""
    count = max(iterations, LEAST_ITERATIONS)
    return (TimedInterval(began_s, (), 1.0, running_s / count, None, count),)
