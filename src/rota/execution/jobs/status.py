"""The status of a run of jobs, read from its journal alone."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rota.config.bind import facts
from rota.core.engine import JobsEngine
from rota.core.errors import InputError
from rota.core.instant import Instant
from rota.core.policy import Plan
from rota.execution.entries import DECIDED, INSTANT, LOST
from rota.execution.jobs.assignments import SLICE, CompletedAssignment, parse_landed
from rota.execution.jobs.entries import JobEntries
from rota.execution.journal import JournalEntry, read_journal
from rota.execution.status import plain, read_into

OPPORTUNISTIC = "resident"
"""The key of the opportunistic job in journals and results, from before it was called so."""


@dataclass(frozen=True, slots=True)
class JobsFrame:
    """The facts about a run that never change, as they stand in the first entry of its journal."""

    run: str
    """A random name that distinguishes the run from all others."""
    seed: int
    scheduler: str
    ids: Sequence[str]
    kinds: Sequence[str]
    iterations: Sequence[int]
    submit_s: Sequence[float]
    slots: Sequence[str]
    """The name of the node of each slot."""
    opportunistic: str = ""
    """The kind of the opportunistic job; empty if there is none."""
    config: str = ""
    """The digest of the configuration; empty in older journals."""

    def record(self) -> dict[str, Any]:
        """Return the facts as plain values, as `parse_frame` reads them."""
        found = plain(self)
        found[OPPORTUNISTIC] = found.pop("opportunistic")
        return found


def parse_frame(found: Mapping[str, Any]) -> JobsFrame:
    """Return the facts that were written; raise InputError if they are malformed."""
    found = {"opportunistic" if key == OPPORTUNISTIC else key: value for key, value in found.items()}
    frame = facts(JobsFrame, found, "the first entry of the journal is malformed", LOST, any_number=True)
    jobs = {len(column) for column in (frame.ids, frame.kinds, frame.iterations, frame.submit_s)}
    if len(jobs) > 1:
        raise InputError(f"the first entry of the journal has columns of {sorted(jobs)} jobs; {LOST}")
    return frame


@dataclass(slots=True)
class JobLine:
    """The status of one job."""

    status: str = "coming"
    """One of coming, waiting, running, finished, failed."""
    slots: tuple[int, ...] = ()
    done: int = 0
    """Number of iterations done."""
    metric: float = math.nan
    ended_s: float = math.nan
    failures: int = 0
    why: str = ""
    """The traceback of its latest failure."""
    notes: list[dict[str, Any]] = field(default_factory=list)


@dataclass(slots=True)
class JobsStatus:
    """The status of a run, updated by its events, decisions and completed assignments."""

    frame: JobsFrame
    jobs: list[JobLine] = field(init=False)
    at_s: float = 0.0
    assignments: int = 0
    training_s: float = 0.0
    """Slot-seconds of training; jobs that share a slot count once."""
    held_s: float = 0.0
    """Slot-seconds of assignments."""
    pauses: int = 0
    opportunistic: JobLine = field(default_factory=JobLine)

    def __post_init__(self) -> None:
        self.jobs = [JobLine() for _ in self.frame.ids]

    def happened(self, body: Mapping[str, Any]) -> None:
        """Update the status by an instant, as it is in the journal."""
        self.at_s = max(self.at_s, body["at_s"])
        first, arrivals = body["arrived"]
        for job in range(first, first + arrivals):
            self.jobs[job].status = "waiting"
        for job in body["finished"]:
            line = self.jobs[job]
            whole = line.done == self.frame.iterations[job]
            line.status, line.slots, line.ended_s = "finished" if whole else "failed", (), self.at_s

    def decided(self, units: Sequence[Sequence[Any]]) -> None:
        """Update the status by a plan: jobs, slots and expected step time of each group."""
        runs = {job: tuple(slots) for jobs, slots, _ in units for job in jobs}
        for number, line in enumerate(self.jobs):
            if line.status in ("waiting", "running"):
                self.pauses += line.status == "running" and number not in runs
                line.status = "running" if number in runs else "waiting"
                line.slots = runs.get(number, ())

    def completed(self, completed: CompletedAssignment) -> None:
        """Update the status by a completed assignment."""
        self.at_s = max(self.at_s, completed.ended_s)
        self.assignments += 1
        slots = len(completed.slots)
        self.held_s += slots * (completed.ended_s - completed.began_s)
        self.training_s += slots * max(progress.seconds.training_s for progress in completed.parts)
        for progress in completed.parts:
            line = self.jobs[progress.job] if progress.job < len(self.jobs) else self.opportunistic
            line.done += progress.iterations
            line.notes += progress.notes
            if progress.why:
                line.failures, line.why = line.failures + (not completed.blameless), progress.why
            else:
                line.metric = progress.metric

    def jct_s(self, job: int) -> float:
        """Return the completion time of a job in seconds; NaN while it is not over."""
        return self.jobs[job].ended_s - self.frame.submit_s[job]

    def record(self) -> dict[str, Any]:
        """Return the status as plain values, without NaN."""
        finished = [self.jct_s(job) for job, line in enumerate(self.jobs) if line.status == "finished"]
        return {
            "scheduler": self.frame.scheduler,
            "jobs": [self._line(job) for job in range(len(self.jobs))],
            "finished": len(finished),
            "failed": sum(line.status == "failed" for line in self.jobs),
            "avg_jct_s": sum(finished) / len(finished) if finished else None,
            "pauses": self.pauses,
            "slices": self.assignments,
            "wall_s": self.at_s,
            "overhead_s_per_slice": (self.held_s - self.training_s) / self.assignments
            if self.assignments
            else None,
            **({OPPORTUNISTIC: self._opportunistic()} if self.frame.opportunistic else {}),
        }

    def _opportunistic(self) -> dict[str, Any]:
        line = self.opportunistic
        return {
            "kind": self.frame.opportunistic,
            "iterations": line.done,
            "metric": None if math.isnan(line.metric) else line.metric,
            "failures": line.failures,
            "why": line.why,
            "notes": line.notes,
        }

    def _line(self, job: int) -> dict[str, Any]:
        line, frame = self.jobs[job], self.frame
        return {
            "id": frame.ids[job],
            "kind": frame.kinds[job],
            "status": line.status,
            "done": line.done,
            "iterations": frame.iterations[job],
            "metric": None if math.isnan(line.metric) else line.metric,
            "jct_s": None if math.isnan(line.ended_s) else self.jct_s(job),
            "failures": line.failures,
            "why": line.why,
        }


class StatusObserver:
    """An observer that updates a status as the journal grows."""

    def __init__(self, status: JobsStatus, state: JobsEngine) -> None:
        self._status, self._state, self._format = status, state, JobEntries()

    def see(self, instant: Instant) -> None:
        self._status.happened(self._format.happened(instant, self._state)[1])

    def decide(self, plan: Plan) -> None:
        self._status.decided(self._format.decided(plan, self._state))


def is_of_jobs(file: Path) -> bool:
    """Return whether a journal is of jobs, not of a population."""
    first = next(iter(read_journal(file)), None)
    return first is not None and isinstance(first.body, dict) and "scheduler" in first.body


def _see(status: JobsStatus, entry: JournalEntry) -> None:
    if entry.kind == INSTANT:
        status.happened(entry.body)
    elif entry.kind == DECIDED:
        status.decided(entry.body["decisions"])
    elif entry.kind == SLICE:
        status.completed(parse_landed(entry))


def read_jobs_status(file: Path) -> tuple[JobsStatus, str]:
    """Return the status, and whether the run is `running`, `complete` or `stopped`."""
    return read_into(file, lambda body: JobsStatus(parse_frame(body)), _see, "jobs")
