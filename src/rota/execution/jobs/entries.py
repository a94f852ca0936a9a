"""What happened and what was decided, as the journal of a run of jobs has it.

Workers do not need this: the state compiles, which takes longer than all else that a worker does to begin.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from rota.core import columns as c
from rota.core.engine import JobsEngine
from rota.core.errors import InputError
from rota.core.grouped import grouped
from rota.core.instant import Instant
from rota.core.policy import Plan
from rota.execution.entries import LOST


class SlotGroup(NamedTuple):
    """Jobs of a plan that run on the same slots."""

    jobs: tuple[int, ...]
    slots: tuple[int, ...]
    step_s: float
    """Seconds per iteration that the policy expects."""


def units(plan: Plan, state: JobsEngine) -> list[SlotGroup]:
    """Return the groups of a plan."""
    found = grouped((int(plan.index[c.UNIT, position]), position) for position in range(plan.jobs))
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

    def happened(self, instant: Instant, state: JobsEngine) -> tuple[float, dict[str, Any]]:
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

    def instant(self, body: Mapping[str, Any], state: JobsEngine) -> Instant:
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

    def decided(self, plan: Plan, state: JobsEngine) -> list[Any]:
        return [[list(unit.jobs), list(unit.slots), unit.step_s] for unit in units(plan, state)]


def rows_of(state: JobsEngine) -> dict[int, int]:
    """Return job → its row in the state."""
    return {int(state.columns[c.JOB, row]): int(row) for row in state.order[: state.active]}
