"""Messages between the controller of jobs and its workers, and the entries of its journal."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from rota.config.bind import facts
from rota.core import columns as c
from rota.core.errors import InputError
from rota.core.plan import Plan
from rota.core.state import Decisions, Instant, JobsState
from rota.execution.assignments import ENCODE, Assignment, order_of
from rota.execution.entries import LOST
from rota.execution.journal import JournalEntry

SHARES, PARTS = "shares", "parts"
"""By these an order and an answer are told from others."""


class JobShare(NamedTuple):
    """What the worker of one slot does for one job."""

    order: Assignment
    """From which checkpoint to which; its steps are iterations."""
    kind: str
    """What is trained."""
    rank: int = 0
    size: int = 1
    """How many slots train it together."""
    meeting: str = ""
    """A file in which they meet, if there are several."""
    room: int = 0
    """Of the slots, those that were idle and are lent for now."""
    at_s: float = 0.0
    """The time of the run."""
    told: tuple[tuple[int, float], ...] = ()
    """Room and time of the slices that made the source of the order and what came before it: what is damaged
    is made again so."""


@dataclass(frozen=True, slots=True)
class JobAssignment:
    """An order."""

    shares: tuple[JobShare, ...]

    def line(self) -> bytes:
        shares = [{**share._asdict(), "order": share.order.fields()} for share in self.shares]
        return ENCODE({SHARES: shares}).encode() + b"\n"


def parse_slice(line: bytes) -> JobAssignment:
    found = json.loads(line)[SHARES]
    return JobAssignment(tuple(_share(each) for each in found))


def _share(found: dict[str, Any]) -> JobShare:
    told = tuple((room, at_s) for room, at_s in found["told"])
    return JobShare(**{**found, "order": order_of(found["order"]), "told": told})


class ShareSeconds(NamedTuple):
    """Where the time of a part went."""

    fetch_s: float = 0.0
    compute_s: float = 0.0
    exchange_s: float = 0.0
    waiting_s: float = 0.0
    """For others on the same slot."""
    restore_s: float = 0.0
    """Before the first iteration: the checkpoint, the network, the meeting."""
    save_s: float = 0.0

    @property
    def training_s(self) -> float:
        return self.fetch_s + self.compute_s + self.exchange_s + self.waiting_s


class JobTimes(NamedTuple):
    """How it went with one job."""

    digest: str
    """Of what was to be made."""
    seconds: ShareSeconds = ShareSeconds()
    metric: float = float("nan")
    """The loss of the last batch, or whatever the job says of itself."""
    why: str = ""
    """Why it could not be done: a traceback."""
    no_room: bool = False
    """There is no room for its checkpoint, which has nothing to do with the job."""
    again: bool = False
    """It was there already."""
    notes: tuple[dict[str, Any], ...] = ()
    """What a job wants to be kept: plain values."""
    lost: bool = False
    """Nothing that it could go on from can be read, which has nothing to do with the job."""


@dataclass(frozen=True, slots=True)
class JobAnswer:
    """An answer: as many parts as the slice had jobs."""

    parts: tuple[JobTimes, ...]

    def line(self) -> bytes:
        return ENCODE({PARTS: self.parts}).encode() + b"\n"


def sliced(found: Any) -> JobAnswer:
    """From its record."""
    return JobAnswer(tuple(_took(*each) for each in found))


def _took(digest: str, seconds: list[float], *rest: Any) -> JobTimes:
    metric, why, no_room, again, notes, lost = rest
    return JobTimes(digest, ShareSeconds(*seconds), float(metric), why, no_room, again, tuple(notes), lost)


SLICE = "slice"
"""The kind of such an entry."""


class SlotGroup(NamedTuple):
    """Jobs of a plan that share slots."""

    jobs: tuple[int, ...]
    slots: tuple[int, ...]
    pace_s: float
    """Seconds per iteration that the policy expects."""


def units(plan: Plan, state: JobsState) -> list[SlotGroup]:
    """What a plan says, by jobs."""
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
    """Jobs are told by their numbers: rows of the state are its own affair."""

    def happened(self, instant: Instant, state: JobsState) -> tuple[float, dict[str, Any]]:
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

    def instant(self, body: Mapping[str, Any], state: JobsState) -> Instant:
        try:
            rows = rows_of(state)
            finished = np.array([rows[job] for job in body["finished"]], np.int32)
            first, arrivals = body["arrived"]
            left = {rows[job]: value for job, value in body["left"]}
            return Instant(
                body["at_s"], finished, len(finished), first, arrivals, body["joined"], body["lost"], left
            )
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(
                f"the journal has what is no instant ({error!r}); the run cannot be resumed"
            ) from None

    def decided(self, decisions: Decisions, state: JobsState) -> list[Any]:
        return [[list(unit.jobs), list(unit.slots), unit.pace_s] for unit in units(decisions.plan, state)]


def rows_of(state: JobsState) -> dict[int, int]:
    """Job → its row in the state."""
    return {int(state.columns[c.JOB, row]): int(row) for row in state.order[: state.active]}


class JobProgress(NamedTuple):
    """How it went with a job in a slice."""

    job: int
    iterations: int
    """That were done; 0 if it failed."""
    seconds: ShareSeconds
    metric: float
    why: str = ""
    """Why it failed."""
    notes: tuple[dict[str, object], ...] = ()


class CompletedAssignment(NamedTuple):
    """A slice that has been answered by all its slots."""

    began_s: float
    ended_s: float
    slots: tuple[int, ...]
    parts: tuple[JobProgress, ...]
    blameless: bool = False
    """A node was lost, or a worker at several jobs has died: whatever failed is nobody's fault."""
    fresh: bool = False
    """Somebody in it had just started or moved, or was paused and met anew."""
    room: int = 0
    """Of the slots, those that were lent to a resident."""


def slice_body(landed: CompletedAssignment) -> dict[str, Any]:
    return {**landed._asdict(), "parts": [part._asdict() for part in landed.parts]}


def parse_landed(entry: JournalEntry) -> CompletedAssignment:
    return facts(CompletedAssignment, entry.body, "the journal has what is no slice", LOST, any_number=True)
