"""Messages between the controller of jobs and its workers, and the entries of its journal."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from rota.config.bind import facts
from rota.core import columns as c
from rota.core.engine import Engine
from rota.core.errors import InputError
from rota.core.instant import Instant
from rota.core.policy import Plan
from rota.execution.assignments import ENCODE, Assignment, assignment_from
from rota.execution.entries import LOST
from rota.execution.journal import JournalEntry

SHARES, PARTS = "shares", "parts"
"""The keys that distinguish assignments and answers of jobs from those of trials."""


class JobShare(NamedTuple):
    """What the worker of one slot does for one job."""

    order: Assignment
    """From which checkpoint to which; its steps are iterations."""
    kind: str
    """The kind of the job: what is trained."""
    rank: int = 0
    size: int = 1
    """Number of slots in the gang."""
    meeting: str = ""
    """The file in which the members of a gang meet."""
    room: int = 0
    """Number of slots that were idle and are lent."""
    at_s: float = 0.0
    """The time of the run in seconds."""
    told: tuple[tuple[int, float], ...] = ()
    """Lent slots and time of the assignments that made the source and its ancestors, so that damaged ones are
    made again alike."""


@dataclass(frozen=True, slots=True)
class JobAssignment:
    """An assignment: the shares of one or more jobs on a slot."""

    shares: tuple[JobShare, ...]

    def line(self) -> bytes:
        shares = [{**share._asdict(), "order": share.order.fields()} for share in self.shares]
        return ENCODE({SHARES: shares}).encode() + b"\n"


def parse_job_assignment(line: bytes) -> JobAssignment:
    found = json.loads(line)[SHARES]
    return JobAssignment(tuple(_share(each) for each in found))


def _share(found: dict[str, Any]) -> JobShare:
    told = tuple((room, at_s) for room, at_s in found["told"])
    return JobShare(**{**found, "order": assignment_from(found["order"]), "told": told})


class ShareSeconds(NamedTuple):
    """The seconds of a share, by what they were spent on."""

    fetch_s: float = 0.0
    compute_s: float = 0.0
    exchange_s: float = 0.0
    waiting_s: float = 0.0
    """Seconds of waiting for other jobs on the same slot."""
    restore_s: float = 0.0
    """Seconds before the first iteration: for the checkpoint, the network, the gang."""
    save_s: float = 0.0

    @property
    def training_s(self) -> float:
        return self.fetch_s + self.compute_s + self.exchange_s + self.waiting_s


class ShareResult(NamedTuple):
    """The result of one share."""

    digest: str
    """The digest of the checkpoint to make."""
    seconds: ShareSeconds = ShareSeconds()
    metric: float = float("nan")
    """The loss of the last batch, or whatever the job measures."""
    why: str = ""
    """The traceback of a failure."""
    no_room: bool = False
    """Whether its checkpoint could not be written, which is not the job's fault."""
    again: bool = False
    """Whether the checkpoint existed already."""
    notes: tuple[dict[str, Any], ...] = ()
    """Plain values that the job wants to be kept."""
    lost: bool = False
    """Whether no checkpoint to start from can be read, which is not the job's fault."""


@dataclass(frozen=True, slots=True)
class JobAnswer:
    """An answer: one result for each share of the assignment."""

    parts: tuple[ShareResult, ...]

    def line(self) -> bytes:
        return ENCODE({PARTS: self.parts}).encode() + b"\n"


def parse_job_answer(found: Any) -> JobAnswer:
    """Return the answer of a record."""
    return JobAnswer(tuple(_result(*each) for each in found))


def _result(digest: str, seconds: list[float], *rest: Any) -> ShareResult:
    metric, why, no_room, again, notes, lost = rest
    return ShareResult(digest, ShareSeconds(*seconds), float(metric), why, no_room, again, tuple(notes), lost)


SLICE = "slice"
"""The kind of entry of a completed assignment."""


class SlotGroup(NamedTuple):
    """Jobs of a plan that run on the same slots."""

    jobs: tuple[int, ...]
    slots: tuple[int, ...]
    step_s: float
    """Seconds per iteration that the policy expects."""


def units(plan: Plan, state: Engine) -> list[SlotGroup]:
    """Return the groups of a plan."""
    found: dict[int, list[int]] = {}
    for position in range(plan.jobs):
        found.setdefault(int(plan.index[c.UNIT, position]), []).append(position)
    return [
        SlotGroup(
            tuple(int(state.columns[c.JOB, plan.index[c.ROW, position]]) for position in positions),
            tuple(plan.slots_of(positions[0]).tolist()),
            float(plan.pace_s[positions[0]]),
        )
        for positions in found.values()
    ]


class JobEntries:
    """The format of instants and decisions in a journal: jobs by number, not by row of the state."""

    def happened(self, instant: Instant, state: Engine) -> tuple[float, dict[str, Any]]:
        job = state.columns[c.JOB]
        left = [[int(job[row]), value] for row, value in (instant.measured or {}).items()]
        return instant.at_s, {
            "at_s": instant.at_s,
            "finished": [int(job[row]) for row in instant.finished[: instant.ends]],
            "arrived": [instant.first_job, instant.arrivals],
            "joined": list(instant.joined),
            "lost": list(instant.lost),
            "left": left,
        }

    def instant(self, body: Mapping[str, Any], state: Engine) -> Instant:
        try:
            rows = rows_of(state)
            finished = np.array([rows[job] for job in body["finished"]], np.int32)
            first, arrivals = body["arrived"]
            left = {rows[job]: value for job, value in body["left"]}
            return Instant(
                body["at_s"], finished, len(finished), first, arrivals, body["joined"], body["lost"], left
            )
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(f"the journal has a malformed instant ({error!r}); {LOST}") from None

    def decided(self, plan: Plan, state: Engine) -> list[Any]:
        return [[list(unit.jobs), list(unit.slots), unit.step_s] for unit in units(plan, state)]


def rows_of(state: Engine) -> dict[int, int]:
    """Return job → its row in the state."""
    return {int(state.columns[c.JOB, row]): int(row) for row in state.order[: state.active]}


class JobProgress(NamedTuple):
    """The progress of a job in one assignment."""

    job: int
    iterations: int
    """Number of iterations done; 0 if it failed."""
    seconds: ShareSeconds
    metric: float
    why: str = ""
    """The traceback of a failure."""
    notes: tuple[dict[str, object], ...] = ()


class CompletedAssignment(NamedTuple):
    """An assignment that all its slots have answered."""

    began_s: float
    ended_s: float
    slots: tuple[int, ...]
    parts: tuple[JobProgress, ...]
    blameless: bool = False
    """Whether a node was lost, or a worker with several jobs died: no job is blamed for it."""
    fresh: bool = False
    """Whether a job in it had just started or migrated, or its gang was paused and formed again."""
    room: int = 0
    """Number of the slots that were lent to the opportunistic job."""


def completed_body(completed: CompletedAssignment) -> dict[str, Any]:
    return {**completed._asdict(), "parts": [part._asdict() for part in completed.parts]}


def parse_landed(entry: JournalEntry) -> CompletedAssignment:
    return facts(
        CompletedAssignment, entry.body, "a malformed assignment in the journal", LOST, any_number=True
    )
