"""The status of a run of jobs, read from its journal alone."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rota.config.bind import facts
from rota.core.errors import InputError
from rota.core.state import Decisions, Instant, JobsState
from rota.execution.entries import DECIDED, INSTANT, LOST
from rota.execution.jobs.assignments import SLICE, CompletedAssignment, JobEntries, parse_landed
from rota.execution.journal import JournalEntry, has_owner, read_journal
from rota.execution.journaled import BEGAN, ENDED
from rota.execution.status import taken_in


@dataclass(frozen=True, slots=True)
class JobsFrame:
    """What does not change during a run; plain values in the journal."""

    run: str
    """Its own name: whatever tells it from others."""
    seed: int
    scheduler: str
    ids: Sequence[str]
    kinds: Sequence[str]
    iterations: Sequence[int]
    submit_s: Sequence[float]
    slots: Sequence[str]
    """Slot → the name of its node."""
    resident: str = ""
    """The kind of the training that has slots of its own, if there is one."""
    config: str = ""
    """The digest of its configuration; older journals do not say."""

    def record(self) -> dict[str, Any]:
        lists = ("ids", "kinds", "iterations", "submit_s", "slots")
        rest = {name: list(getattr(self, name)) for name in lists}
        return {
            "run": self.run,
            "seed": self.seed,
            "scheduler": self.scheduler,
            **rest,
            "resident": self.resident,
            "config": self.config,
        }


def parse_frame(found: Mapping[str, Any]) -> JobsFrame:
    """What was written; an error if it is something else."""
    frame = facts(JobsFrame, found, "the journal has what is no beginning", LOST, any_number=True)
    jobs = {len(column) for column in (frame.ids, frame.kinds, frame.iterations, frame.submit_s)}
    if len(jobs) > 1:
        raise InputError(f"the journal has what is no beginning: columns of {sorted(jobs)} jobs; {LOST}")
    return frame


@dataclass(slots=True)
class JobLine:
    """One job as people see it."""

    status: str = "coming"
    """coming, waiting, running, finished or failed."""
    slots: tuple[int, ...] = ()
    done: int = 0
    """Iterations."""
    metric: float = math.nan
    ended_s: float = math.nan
    failures: int = 0
    why: str = ""
    """It failed last."""
    notes: list[dict[str, Any]] = field(default_factory=list)


@dataclass(slots=True)
class JobsStatus:
    """The run so far."""

    frame: JobsFrame
    jobs: list[JobLine] = field(init=False)
    at_s: float = 0.0
    slices: int = 0
    training_s: float = 0.0
    """That slots were trained on; jobs that share a slot count once."""
    held_s: float = 0.0
    """That slots were at slices."""
    pauses: int = 0
    resident: JobLine = field(default_factory=JobLine)

    def __post_init__(self) -> None:
        self.jobs = [JobLine() for _ in self.frame.ids]

    def happened(self, body: Mapping[str, Any]) -> None:
        self.at_s = max(self.at_s, body["at_s"])
        first, arrivals = body["arrived"]
        for job in range(first, first + arrivals):
            self.jobs[job].status = "waiting"
        for job in body["finished"]:
            line = self.jobs[job]
            whole = line.done == self.frame.iterations[job]
            line.status, line.slots, line.ended_s = "finished" if whole else "failed", (), self.at_s

    def decided(self, units: Sequence[Sequence[Any]]) -> None:
        runs = {job: tuple(slots) for jobs, slots, _ in units for job in jobs}
        for number, line in enumerate(self.jobs):
            if line.status in ("waiting", "running"):
                self.pauses += line.status == "running" and number not in runs
                line.status = "running" if number in runs else "waiting"
                line.slots = runs.get(number, ())

    def landed(self, landed: CompletedAssignment) -> None:
        self.at_s = max(self.at_s, landed.ended_s)
        self.slices += 1
        slots = len(landed.slots)
        self.held_s += slots * (landed.ended_s - landed.began_s)
        self.training_s += slots * max(part.seconds.training_s for part in landed.parts)
        for part in landed.parts:
            line = self.jobs[part.job] if part.job < len(self.jobs) else self.resident
            line.done += part.iterations
            line.notes += part.notes
            if part.why:
                line.failures, line.why = line.failures + (not landed.blameless), part.why
            else:
                line.metric = part.metric

    def jct_s(self, job: int) -> float:
        return self.jobs[job].ended_s - self.frame.submit_s[job]

    def record(self) -> dict[str, Any]:
        """Plain values, without NaN."""
        finished = [self.jct_s(job) for job, line in enumerate(self.jobs) if line.status == "finished"]
        found = self._whole(finished)
        return found | {"resident": self._resident()} if self.frame.resident else found

    def _resident(self) -> dict[str, Any]:
        line = self.resident
        return {
            "kind": self.frame.resident,
            "iterations": line.done,
            "metric": None if math.isnan(line.metric) else line.metric,
            "failures": line.failures,
            "why": line.why,
            "notes": line.notes,
        }

    def _whole(self, finished: list[float]) -> dict[str, Any]:
        return {
            "scheduler": self.frame.scheduler,
            "jobs": [self._line(job) for job in range(len(self.jobs))],
            "finished": len(finished),
            "failed": sum(line.status == "failed" for line in self.jobs),
            "avg_jct_s": sum(finished) / len(finished) if finished else None,
            "pauses": self.pauses,
            "slices": self.slices,
            "wall_s": self.at_s,
            "overhead_s_per_slice": (self.held_s - self.training_s) / self.slices if self.slices else None,
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
    """Tells the board what the journal is told."""

    def __init__(self, board: JobsStatus, state: JobsState) -> None:
        self._board, self._state, self._words = board, state, JobEntries()

    def see(self, instant: Instant) -> None:
        self._board.happened(self._words.happened(instant, self._state)[1])

    def decide(self, decisions: Decisions) -> None:
        self._board.decided(self._words.decided(decisions, self._state))


def is_of_jobs(file: Path) -> bool:
    """Whether a journal is of jobs, not of a population."""
    first = next(iter(read_journal(file)), None)
    return first is not None and isinstance(first.body, dict) and "scheduler" in first.body


def _see(board: JobsStatus, entry: JournalEntry) -> None:
    if entry.kind == INSTANT:
        board.happened(entry.body)
    elif entry.kind == DECIDED:
        board.decided(entry.body["decisions"])
    elif entry.kind == SLICE:
        board.landed(parse_landed(entry))


def read_jobs_status(file: Path) -> tuple[JobsStatus, str]:
    """The run so far, and whether it is `running`, `complete` or `stopped`."""
    board, phase = None, "stopped"
    for entry in read_journal(file):
        if entry.kind == BEGAN:
            board = JobsStatus(parse_frame(entry.body))
        elif board is None:
            break
        elif entry.kind == ENDED:
            phase = "complete"
        else:
            with taken_in(file, entry):
                _see(board, entry)
    if board is None:
        raise InputError(f"{file}: not the journal of jobs; name the folder of a run")
    return board, "running" if phase == "stopped" and has_owner(file) else phase
