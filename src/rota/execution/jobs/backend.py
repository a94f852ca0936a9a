"""The backend of a real run of jobs: plans become assignments, and answers become events."""

import logging
import math
import secrets
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from rota.core.columns import UP
from rota.core.errors import Stuck
from rota.core.state import Decisions, Instant, JobsState
from rota.execution.assignments import CheckpointInfo
from rota.execution.checkpoints import CheckpointPruner, Checkpoints, MissingStorage, earlier_than
from rota.execution.engine import Answered, Died, Message, NodeCame, NodeWent, Workers
from rota.execution.jobs.assignments import (
    SLICE,
    CompletedAssignment,
    JobAnswer,
    JobAssignment,
    JobShare,
    SlotGroup,
    rows_of,
    slice_body,
    units,
)
from rota.execution.jobs.ledger import AssignmentInFlight, JobLedger, Told
from rota.execution.jobs.spec import JobsSpec
from rota.execution.journal import Journal, NotWritten
from rota.execution.journaled import RunClock

LOOK_EVERY_S = 0.2
"""Whether somebody wants the run to stop."""

log = logging.getLogger(__name__)


class JobsBackend:
    """Runs the jobs of a venture. `asked_to_stop` is looked at again and again.

    When it is so, what is under way is waited for, nothing more is begun, and there are no more instants.
    """

    def __init__(
        self,
        venture: JobsSpec,
        ledger: JobLedger,
        workers: Workers,
        checkpoints: Checkpoints,
        journal: Journal,
        spares: CheckpointPruner,
        past: Callable[[], dict[str, tuple[CheckpointInfo | None, Told]]],
        *,
        anew: bool = False,
        asked_to_stop: Callable[[], bool] = lambda: False,
        landed: Callable[[CompletedAssignment], None] = lambda landed: None,
        clock: RunClock | None = None,
    ) -> None:
        self._venture, self._ledger, self._workers, self._checkpoints = venture, ledger, workers, checkpoints
        self._journal, self._asked_to_stop, self._tell = journal, asked_to_stop, landed
        self._spares, self._past, self._anew = spares, past, anew
        self.clock = clock or RunClock()
        self.since_s = 0.0
        """When the last slice ended that the journal knows of."""
        self._kinds = venture.all_kinds
        self._meetings = checkpoints.folder.with_name("meetings")
        self._arrived = 0
        self._wake_s = math.inf
        self._units: list[SlotGroup] = []
        self._flights: dict[int, AssignmentInFlight] = {}
        """Slot → what it is at."""
        self._last: dict[int, tuple[tuple[int, ...], str]] = {}
        """Job → the slots that it was on last, and where its gang met; no slots if that is to meet anew."""
        self._paces: dict[tuple[int, tuple[str, ...]], float] = {}
        """Slots and kinds of a unit → seconds per iteration, as they were measured last."""
        self._left: set[int] = set()
        """Jobs of which more is known than the state knows."""
        self._away: set[int] = set()
        """Slots whose node is gone."""
        self._nodes: list[NodeCame | NodeWent] = []
        """What has happened to nodes since the last instant."""
        self._alone: set[int] = set()
        """Jobs that were together when a worker died: each has a slice of its own first."""
        self._stopping = False
        self._lineages: dict[str, tuple[CheckpointInfo | None, ...]] = {}
        """Digest of a checkpoint that is lost → what it can be made again from, see `Order.earlier`."""

    # ── what the journal says ───────────────────────────────────────────────────────────────────────────────

    def recall(self, instant: Instant) -> None:
        """This happened before, or happens now."""
        self._arrived = max(self._arrived, instant.first_job + instant.arrivals)

    def remember(self, decisions: Decisions, state: JobsState) -> None:
        """This was decided before, or is decided now."""
        state.confirm(decisions)
        self._wake_s = decisions.plan.wake_at_s
        self._units = units(decisions.plan, state)

    # ── what happens now ────────────────────────────────────────────────────────────────────────────────────

    def instants(self, state: JobsState) -> Iterator[Instant]:
        """From where the journal ends."""
        if self.goes_on(state):
            self._checkpoints.claim(self._ledger.run, self._ledger.needed(), anew=self._anew)
            self._spares.settle()  # a journal that was only in memory may be needed again, with what it needs
            self._checkpoints.sweep(lambda name: not self._ledger.is_past(name))
        self._ledger.unused.clear()
        self._left = {job for job, stands in enumerate(self._ledger.jobs) if stands.newest or stands.over}
        there = set(self._workers.nodes())
        self._nodes = _changes(there, state)
        self._away = {slot for slot, node in enumerate(self._venture.nodes) if node not in there}
        self.clock.go_on_from(max(state.now_s, self.since_s))  # it took a while until workers were there
        while self.goes_on(state):
            if instant := self._happened(state):
                self.recall(instant)
                yield instant
                continue
            self._dispatch()
            if self._stopping and not self._flights:
                return
            self._listen(state)
        self._give_unused()
        self._spares.settle()
        if self._checkpoints.is_of(self._ledger.run):
            self._checkpoints.sweep(self._ledger.needed().__contains__)
        shutil.rmtree(self._meetings, ignore_errors=True)

    def goes_on(self, state: JobsState) -> bool:
        """Whether something is left to do."""
        return bool(state.active) or not self._all_arrived or self._resides()

    @property
    def _all_arrived(self) -> bool:
        return self._arrived == len(self._venture.ids)

    def perform(self, decisions: Decisions, state: JobsState) -> None:
        self.remember(decisions, state)
        self._part()
        self._dispatch()

    def _part(self) -> None:
        """A gang that is paused meets anew: of its workers, some may have forgotten the others by then."""
        planned = {job for unit in self._units for job in unit.jobs}
        for job, (_, where) in self._last.items():
            if where and job not in planned and job < len(self._venture.ids):
                self._last[job] = (), where

    def _happened(self, state: JobsState) -> Instant | None:
        """What there is to be decided about, if anything."""
        now_s, rows = self.clock.now_s(), rows_of(state)
        first, arrived = self._arrived, self._arrived
        while arrived < len(self._venture.ids) and self._venture.submit_s[arrived] <= now_s:
            arrived += 1
        ended = [job for job in sorted(self._left) if job in rows and self._ledger.jobs[job].over]
        if not (ended or arrived > first or self._nodes or now_s >= self._wake_s) or self._stopping:
            return None
        self._wake_s = math.inf
        known = self._left | self._under_way() | {job for unit in self._units for job in unit.jobs}
        left = {rows[job]: self._left_of(job, now_s) for job in sorted(known) if job in rows}
        nodes, self._nodes, self._left = self._nodes, [], set()
        return Instant(
            max(now_s, state.now_s),
            np.array([rows[job] for job in ended], np.int32),
            len(ended),
            first,
            arrived - first,
            [each.node for each in nodes if isinstance(each, NodeCame)],
            [each.node for each in nodes if isinstance(each, NodeWent)],
            left,
        )

    def _left_of(self, job: int, now_s: float) -> float:
        """Iterations, without those that a slice which is under way should have done by now."""
        flights = (flight for flight in self._flights.values() if job in flight.jobs)
        done = max((flight.done_of(job, now_s) for flight in flights), default=0.0)
        return self._ledger.jobs[job].left - done

    def _listen(self, state: JobsState) -> None:
        """To workers, until something else is due."""
        self._stopping = self._stopping or self._asked_to_stop()
        due_s = math.inf if self._stopping else min(self._arrival_s(), self._wake_s) - self.clock.now_s()
        idle = due_s == math.inf and not self._flights and not self._stopping
        if idle and state.active and state.nodes[UP].all():
            raise Stuck(
                f"at {state.now_s:g} s nothing runs and nothing will happen, but {state.active} jobs wait"
            )
        for message in self._workers.wait(min(max(due_s, 0.0), LOOK_EVERY_S)):
            self._take_in(message)
        self._spares.tidy()

    def _arrival_s(self) -> float:
        """Of the next job."""
        return math.inf if self._all_arrived else self._venture.submit_s[self._arrived]

    def _take_in(self, message: Message) -> None:
        match message:
            case Answered(slot, answer):
                flight = self._flights.get(slot)
                if flight is not None and isinstance(answer, JobAnswer) and flight.takes(slot, answer):
                    flight.answered(slot, answer)
                    self._land_if_done(flight)
            case Died(slot, why):
                self._lose(slot, why)
            case NodeWent(node):
                for slot in self._slots_of(node):
                    self._away.add(slot)
                    self._lose(slot)
                self._nodes.append(message)
            case NodeCame(node):
                self._away -= set(self._slots_of(node))
                self._nodes.append(message)

    def _slots_of(self, node: int) -> list[int]:
        return [slot for slot, at in enumerate(self._venture.nodes) if at == node]

    def _lose(self, slot: int, why: str = "") -> None:
        """A worker is gone, and with it what it was at; whoever meets with it has to meet anew."""
        for job, (slots, _) in list(self._last.items()):
            if slot in slots:
                del self._last[job]
        flight = self._flights.get(slot)
        if flight is not None:
            flight.lost(slot, why)
            self._land_if_done(flight)

    # ── slices ──────────────────────────────────────────────────────────────────────────────────────────────

    def _dispatch(self) -> None:
        """Whatever should run and is not under way, on slots that are free."""
        if self._stopping:
            return
        busy = self._under_way()
        for unit in self._units:
            slots = tuple(self._venture.places[slot] for slot in unit.slots)
            jobs = self._next_of(unit)
            if jobs and not busy & set(jobs) and not set(slots) & set(self._flights):
                self._send(jobs, slots, unit.pace_s)
        if self._resides() and len(self._venture.ids) not in busy:
            self._send_resident()

    def _under_way(self) -> set[int]:
        return {job for flight in self._flights.values() for job in flight.jobs}

    def _next_of(self, unit: SlotGroup) -> tuple[int, ...]:
        """Its jobs that are not over; but only one of them while it is not known who ends workers."""
        jobs = tuple(job for job in unit.jobs if not self._ledger.jobs[job].over)
        suspects = tuple(job for job in jobs if job in self._alone)
        if suspects and len(jobs) > 1:
            return suspects[:1]
        return jobs

    def _resides(self) -> bool:
        """Whether the resident is there, and goes on."""
        resident = self._venture.resident
        if resident is None or self.clock.now_s() >= resident.until_s:
            return False
        return not self._ledger.jobs[len(self._venture.ids)].over

    def _send_resident(self) -> None:
        """It is lent the slots that no plan asks for, until its slice is over."""
        resident, number = self._venture.resident, len(self._venture.ids)
        assert resident is not None
        if set(resident.home) & (self._away | set(self._flights)):
            return
        wanted = {self._venture.places[slot] for unit in self._units for slot in unit.slots}
        free = [slot for slot in self._venture.places if slot not in wanted and slot not in self._flights]
        slots = resident.slots([slot for slot in free if slot not in self._away])
        self._send((number,), slots, self._venture.slice_s / 10, room=len(slots) - len(resident.home))

    def _send(self, jobs: tuple[int, ...], slots: tuple[int, ...], pace_s: float, room: int = 0) -> None:
        measured_s = self._paces.get(self._alike(jobs, slots), pace_s)
        count = max(1, round(self._venture.slice_s / measured_s))
        fresh = any(self._last.get(job, ((), ""))[0] != slots for job in jobs)
        now_s = self.clock.now_s()
        first = tuple(self._share(job, slots, count, room, now_s) for job in jobs)
        steps = max(share.order.make.steps for share in first)
        flight = AssignmentInFlight(first, slots, now_s, now_s + steps * measured_s, fresh)
        for rank, slot in enumerate(slots):
            self._flights[slot] = flight
            self._workers.send(slot, JobAssignment(tuple(share._replace(rank=rank) for share in first)))

    def _share(self, job: int, slots: tuple[int, ...], most: int, room: int, now_s: float) -> JobShare:
        """Of the first slot."""
        stands = self._ledger.jobs[job]
        order = self._ledger.order(job, min(most, stands.left), self._spares.take())
        told: tuple[Told, ...] = (stands.told,)
        if order.source and order.source.digest in self._lineages:
            order = replace(order, earlier=self._lineages[order.source.digest])
            told += tuple(self._made_from[made.digest][1] for made in order.earlier if made)
        meeting = self._meeting(job, slots)
        return JobShare(order, self._kinds[job], 0, len(slots), meeting, room, now_s, told)

    def _meeting(self, job: int, slots: tuple[int, ...]) -> str:
        """The same for as long as a job is on the same slots, with the same workers, and not paused."""
        before, where = self._last.get(job, ((), ""))
        if before != slots:
            if where:
                Path(where).unlink(missing_ok=True)
            where = ""
            if len(slots) > 1:
                self._meetings.mkdir(mode=0o700, exist_ok=True)
                where = str(self._meetings.absolute() / f"{job}-{secrets.token_hex(8)}")
            self._last[job] = slots, where
        return where

    def _alike(self, jobs: tuple[int, ...], slots: tuple[int, ...]) -> tuple[int, tuple[str, ...]]:
        """What units that are equally fast have in common."""
        return len(slots), tuple(sorted(self._kinds[job] for job in jobs))

    def _land_if_done(self, flight: AssignmentInFlight) -> None:
        if flight.awaited:
            return
        if why := flight.no_room():
            raise NotWritten(f"{why}, then go on with --resume")
        if lost := flight.lost_sources():
            self._find_again(flight, lost)
            return
        landed = flight.land(self.clock.now_s())
        self._journal.append(SLICE, slice_body(landed), landed.ended_s)
        for slot in flight.slots:
            self._flights.pop(slot, None)
        note(self._ledger, landed)
        self._give_unused()
        self._left |= set(flight.jobs)
        if any(part.why for part in landed.parts):
            for job in flight.jobs:
                self._last.pop(job, None)
        self._suspect(flight, landed)
        self._measure(flight, landed)
        self._tell(landed)

    def _suspect(self, flight: AssignmentInFlight, landed: CompletedAssignment) -> None:
        """Those whose worker died while it was at several; no longer one that went well alone."""
        if len(flight.jobs) > 1 and flight.died:
            self._alone |= set(flight.jobs)
        elif len(flight.jobs) == 1 and not landed.parts[0].why:
            self._alone -= set(flight.jobs)

    def _measure(self, flight: AssignmentInFlight, landed: CompletedAssignment) -> None:
        """How long an iteration of this unit takes."""
        done = max(part.iterations for part in landed.parts)
        seconds = max(part.seconds.training_s for part in landed.parts)
        if done and seconds > 0.0:
            self._paces[self._alike(flight.jobs, flight.slots)] = seconds / done

    def _give_unused(self) -> None:
        """What the journal says is not needed any more may go once that is on the disk."""
        self._spares.add(self._ledger.unused)
        self._ledger.unused.clear()

    def _find_again(self, flight: AssignmentInFlight, lost: list[CheckpointInfo]) -> None:
        """Have what jobs go on from trained again in their next slice, along their lineages.

        That is not their fault, so it is as if there had been no slice. What others in it have made is there.
        """
        sources = {digest: source for digest, (source, _) in self._made_from.items()}
        for made in lost:
            lineage = earlier_than(made, sources, self._checkpoints.is_intact)
            if lineage == self._lineages.get(made.digest) or not self._checkpoints.is_of(self._ledger.run):
                raise MissingStorage(self._checkpoints.folder)
            self._lineages[made.digest] = lineage
            log.warning("%s is lost; it is made again", self._checkpoints.file(made.trial, made.version))
        for slot in flight.slots:
            self._flights.pop(slot, None)
        for job in flight.jobs:
            self._last.pop(job, None)

    @property
    def _made_from(self) -> dict[str, tuple[CheckpointInfo | None, Told]]:
        if self._ledger.past is None:
            self._ledger.past = self._past()
        return self._ledger.past


def note(ledger: JobLedger, landed: CompletedAssignment) -> None:
    """What a slice did to its jobs."""
    for part in landed.parts:
        if part.iterations:
            ledger.did(part.job, part.iterations, (landed.room, landed.began_s))
        elif not landed.blameless:
            ledger.failed(part.job)


def _changes(there: set[int], state: JobsState) -> list[NodeCame | NodeWent]:
    """Nodes that are not what the state takes them for."""
    known = set(np.flatnonzero(state.nodes[UP]).tolist())
    gone: list[NodeCame | NodeWent] = [NodeWent(node) for node in sorted(known - there)]
    return gone + [NodeCame(node) for node in sorted(there - known)]
