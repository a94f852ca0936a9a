"""Messages between the controller of jobs and its workers; what came of them is in its journal."""

import json
from dataclasses import dataclass
from typing import Any, NamedTuple

from rota.config.bind import facts
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
    contexts: tuple[tuple[int, float], ...] = ()
    """Lent slots and time of the assignments that made the source and its ancestors, so that damaged ones are
    made again alike."""


@dataclass(frozen=True, slots=True)
class JobAssignment:
    """An assignment: the shares of one or more jobs on a slot."""

    shares: tuple[JobShare, ...]

    def line(self) -> bytes:
        """Return the assignment as a line of JSON."""
        shares = [{**share._asdict(), "order": share.order.fields()} for share in self.shares]
        return ENCODE({SHARES: shares}).encode() + b"\n"


def parse_job_assignment(line: bytes) -> JobAssignment:
    """Return the assignment in a line of JSON."""
    found = json.loads(line)[SHARES]
    return JobAssignment(tuple(_share(each) for each in found))


def _share(found: dict[str, Any]) -> JobShare:
    contexts = tuple((room, at_s) for room, at_s in found["contexts"])
    return JobShare(**{**found, "order": assignment_from(found["order"]), "contexts": contexts})


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
        """Seconds of iterations, waiting for other jobs included."""
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
        """Return the answer as a line of JSON."""
        return ENCODE({PARTS: self.parts}).encode() + b"\n"


def parse_job_answer(found: Any) -> JobAnswer:
    """Return the answer of a record."""
    return JobAnswer(tuple(_result(*each) for each in found))


def _result(digest: str, seconds: list[float], *rest: Any) -> ShareResult:
    metric, why, no_room, again, notes, lost = rest
    return ShareResult(digest, ShareSeconds(*seconds), float(metric), why, no_room, again, tuple(notes), lost)


SLICE = "slice"
"""The kind of entry of a completed assignment."""


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
    """Return a completed assignment as plain values, as `parse_landed` reads them."""
    return {**completed._asdict(), "parts": [part._asdict() for part in completed.parts]}


def parse_landed(entry: JournalEntry) -> CompletedAssignment:
    """Return the completed assignment of a journal entry; raise InputError if it is malformed."""
    return facts(
        CompletedAssignment, entry.body, "a malformed assignment in the journal", LOST, any_number=True
    )
