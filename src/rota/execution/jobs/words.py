"""How a journal speaks of jobs: what happened at an instant, which plan was made, how a slice went."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from rota.config.bind import facts
from rota.core import columns as c
from rota.core.errors import InputError
from rota.core.plan import Plan
from rota.core.state import Decisions, Instant, State
from rota.execution.entries import LOST
from rota.execution.jobs.slices import Seconds
from rota.execution.journal import Entry

SLICE = "slice"
"""The kind of such an entry."""


class Unit(NamedTuple):
    """Jobs of a plan that share slots."""

    jobs: tuple[int, ...]
    slots: tuple[int, ...]
    pace_s: float
    """Seconds per iteration that the policy expects."""


def units(plan: Plan, state: State) -> list[Unit]:
    """What a plan says, by jobs."""
    found: dict[int, list[int]] = {}
    for position in range(plan.jobs):
        found.setdefault(int(plan.index[c.UNIT, position]), []).append(position)
    return [
        Unit(
            tuple(int(state.columns[c.JOB, plan.index[c.ROW, position]]) for position in positions),
            tuple(plan.slots_of(positions[0]).tolist()),
            float(plan.pace_s[positions[0]]),
        )
        for positions in found.values()
    ]


class JobWords:
    """Jobs are told by their numbers: rows of the state are its own affair."""

    def happened(self, instant: Instant, state: State) -> tuple[float, dict[str, Any]]:
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

    def instant(self, body: Mapping[str, Any], state: State) -> Instant:
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

    def decided(self, decisions: Decisions, state: State) -> list[Any]:
        return [[list(unit.jobs), list(unit.slots), unit.pace_s] for unit in units(decisions.plan, state)]


def rows_of(state: State) -> dict[int, int]:
    """Job → its row in the state."""
    return {int(state.columns[c.JOB, row]): int(row) for row in state.order[: state.active]}


class Part(NamedTuple):
    """How it went with a job in a slice."""

    job: int
    iterations: int
    """That were done; 0 if it failed."""
    seconds: Seconds
    metric: float
    why: str = ""
    """Why it failed."""
    notes: tuple[dict[str, object], ...] = ()


class Landed(NamedTuple):
    """A slice that has been answered by all its slots."""

    began_s: float
    ended_s: float
    slots: tuple[int, ...]
    parts: tuple[Part, ...]
    blameless: bool = False
    """A node was lost, or a worker at several jobs has died: whatever failed is nobody's fault."""
    fresh: bool = False
    """Somebody in it had just started or moved, or was paused and met anew."""
    room: int = 0
    """Of the slots, those that were lent to a resident."""


def slice_body(landed: Landed) -> dict[str, Any]:
    return {**landed._asdict(), "parts": [part._asdict() for part in landed.parts]}


def parse_landed(entry: Entry) -> Landed:
    return facts(Landed, entry.body, "the journal has what is no slice", LOST, any_number=True)
