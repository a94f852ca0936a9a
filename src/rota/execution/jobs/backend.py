"""The backend of a real run of jobs: plans become assignments, and answers become events.

A group of jobs gets one assignment after the other until the plan changes; those in flight are waited for. So
no job is ever interrupted, and a preempted job has its checkpoint already.
"""

import logging
import math
import secrets
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from rota.core.columns import UP
from rota.core.engine import JobsEngine
from rota.core.errors import Stuck
from rota.core.instant import Instant
from rota.core.policy import Plan
from rota.execution.assignments import CheckpointInfo
from rota.execution.checkpoints import CheckpointPruner, Checkpoints, MissingStorage, earlier_than
from rota.execution.engine import Answered, Died, Message, NodeCame, NodeWent, Workers
from rota.execution.jobs.assignments import (
    SLICE,
    CompletedAssignment,
    JobAnswer,
    JobAssignment,
    JobShare,
    completed_body,
)
from rota.execution.jobs.entries import SlotGroup, rows_of, units
from rota.execution.jobs.ledger import AssignmentContext, AssignmentInFlight, JobLedger
from rota.execution.jobs.spec import JobsSpec
from rota.execution.journal import Journal, NotWritten
from rota.execution.journaled import RunClock

LOOK_EVERY_S = 0.2
"""Seconds between two checks whether the run should stop."""

log = logging.getLogger(__name__)


class JobsBackend:
    """A backend that runs jobs on workers.

    When `asked_to_stop` is true, nothing more is assigned, assignments in flight are waited for, and there
    are no more instants.
    """

    def __init__(
        self,
        spec: JobsSpec,
        ledger: JobLedger,
        workers: Workers,
        checkpoints: Checkpoints,
        journal: Journal,
        pruner: CheckpointPruner,
        past: Callable[[], dict[str, tuple[CheckpointInfo | None, AssignmentContext]]],
        *,
        anew: bool = False,
        asked_to_stop: Callable[[], bool] = lambda: False,
        completed: Callable[[CompletedAssignment], None] = lambda completed: None,
        clock: RunClock | None = None,
    ) -> None:
        self._spec, self._ledger, self._workers, self._checkpoints = spec, ledger, workers, checkpoints
        self._journal, self._asked_to_stop, self._tell = journal, asked_to_stop, completed
        self._pruner, self._past, self._anew = pruner, past, anew
        self.clock = clock or RunClock()
        self.since_s = 0.0
        """The end of the last assignment in the journal, in seconds."""
        self._kinds = spec.all_kinds
        self._meetings = checkpoints.folder.with_name("meetings")
        self._arrived = 0
        self._wake_s = math.inf
        self._units: list[SlotGroup] = []
        self._flights: dict[int, AssignmentInFlight] = {}
        """Slot → its assignment in flight."""
        self._last: dict[int, tuple[tuple[int, ...], str]] = {}
        """Job → its latest slots, and where its gang met; no slots if the gang must form again."""
        self._step_times: dict[tuple[int, tuple[str, ...]], float] = {}
        """Number of slots and kinds of a group → measured seconds per iteration."""
        self._left: set[int] = set()
        """Jobs whose progress the state does not know yet."""
        self._away: set[int] = set()
        """Slots whose node is gone."""
        self._nodes: list[NodeCame | NodeWent] = []
        """Changes of nodes since the last instant."""
        self._alone: set[int] = set()
        """Jobs that shared a worker when it died: each first gets an assignment alone."""
        self._stopping = False
        self._lineages: dict[str, tuple[CheckpointInfo | None, ...]] = {}
        """Digest of a lost checkpoint → what it can be made from, see `Assignment.earlier`."""

    # ── what the journal says ───────────────────────────────────────────────────────────────────────────────

    def recall(self, instant: Instant) -> None:
        """Apply an instant, past or present."""
        self._arrived = max(self._arrived, instant.first_job + instant.arrivals)

    def remember(self, plan: Plan, state: JobsEngine) -> None:
        """Take in a plan, past or present, that the state has committed."""
        self._wake_s = plan.wake_at_s
        self._units = units(plan, state)

    # ── what happens now ────────────────────────────────────────────────────────────────────────────────────

    def instants(self, state: JobsEngine) -> Iterator[Instant]:
        """Yield instants from the end of the journal on."""
        if self.goes_on(state):
            self._checkpoints.claim(self._ledger.run, self._ledger.needed(), anew=self._anew)
            self._pruner.settle()  # a journal that was only in memory may be needed again, with what it needs
            self._checkpoints.sweep(lambda name: not self._ledger.is_past(name))
        self._ledger.unused.clear()
        self._left = {job for job, each in enumerate(self._ledger.jobs) if each.newest or each.over}
        there = set(self._workers.nodes())
        self._nodes = _changes(there, state)
        self._away = {slot for slot, node in enumerate(self._spec.nodes) if node not in there}
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
        self._pruner.settle()
        if self._checkpoints.is_of(self._ledger.run):
            self._checkpoints.sweep(self._ledger.needed().__contains__)
        shutil.rmtree(self._meetings, ignore_errors=True)

    def goes_on(self, state: JobsEngine) -> bool:
        """Return whether there is something left to do."""
        return bool(state.active) or not self._all_arrived or self._opportunistic_goes_on()

    @property
    def _all_arrived(self) -> bool:
        return self._arrived == len(self._spec.ids)

    def perform(self, plan: Plan, state: JobsEngine) -> None:
        self.remember(plan, state)
        self._part()
        self._dispatch()

    def _part(self) -> None:
        """Let preempted gangs form again: some of their workers may have forgotten the others by then."""
        planned = {job for unit in self._units for job in unit.jobs}
        for job, (_, where) in self._last.items():
            if where and job not in planned and job < len(self._spec.ids):
                self._last[job] = (), where

    def _happened(self, state: JobsEngine) -> Instant | None:
        """Return the instant to decide about, if there is one."""
        now_s, rows = self.clock.now_s(), rows_of(state)
        first, arrived = self._arrived, self._arrived
        while arrived < len(self._spec.ids) and self._spec.submit_s[arrived] <= now_s:
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
        """Return remaining iterations, without the expected ones of an assignment in flight."""
        flights = (flight for flight in self._flights.values() if job in flight.jobs)
        done = max((flight.done_of(job, now_s) for flight in flights), default=0.0)
        return self._ledger.jobs[job].left - done

    def _listen(self, state: JobsEngine) -> None:
        """Process messages of workers until something else is due."""
        self._stopping = self._stopping or self._asked_to_stop()
        due_s = math.inf if self._stopping else min(self._arrival_s(), self._wake_s) - self.clock.now_s()
        idle = due_s == math.inf and not self._flights and not self._stopping
        if idle and state.active and state.nodes[UP].all():
            raise Stuck(
                f"at {state.now_s:g} s nothing runs and nothing will happen, but {state.active} jobs wait"
            )
        for message in self._workers.wait(min(max(due_s, 0.0), LOOK_EVERY_S)):
            self._take_in(message)
        self._pruner.tidy()

    def _arrival_s(self) -> float:
        """Return the time of the next arrival in seconds."""
        return math.inf if self._all_arrived else self._spec.submit_s[self._arrived]

    def _take_in(self, message: Message) -> None:
        match message:
            case Answered(slot, answer):
                flight = self._flights.get(slot)
                if flight is not None and isinstance(answer, JobAnswer) and flight.takes(slot, answer):
                    flight.answered(slot, answer)
                    self._complete_if_answered(flight)
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
        return [slot for slot, at in enumerate(self._spec.nodes) if at == node]

    def _lose(self, slot: int, why: str = "") -> None:
        """Handle the death of a worker; gangs that it belonged to must form again."""
        for job, (slots, _) in list(self._last.items()):
            if slot in slots:
                del self._last[job]
        flight = self._flights.get(slot)
        if flight is not None:
            flight.lost(slot, why)
            self._complete_if_answered(flight)

    # ── assignments ─────────────────────────────────────────────────────────────────────────────────────────

    def _dispatch(self) -> None:
        """Assign all planned groups that are not in flight to their slots, if these are free."""
        if self._stopping:
            return
        busy = self._under_way()
        for unit in self._units:
            slots = tuple(self._spec.places[slot] for slot in unit.slots)
            jobs = self._next_of(unit)
            if jobs and not busy & set(jobs) and not set(slots) & set(self._flights):
                self._send(jobs, slots, unit.step_s)
        if self._opportunistic_goes_on() and len(self._spec.ids) not in busy:
            self._send_opportunistic()

    def _under_way(self) -> set[int]:
        return {job for flight in self._flights.values() for job in flight.jobs}

    def _next_of(self, unit: SlotGroup) -> tuple[int, ...]:
        """Return its unfinished jobs; only one while it is unknown which of them ends workers."""
        jobs = tuple(job for job in unit.jobs if not self._ledger.jobs[job].over)
        suspects = tuple(job for job in jobs if job in self._alone)
        if suspects and len(jobs) > 1:
            return suspects[:1]
        return jobs

    def _opportunistic_goes_on(self) -> bool:
        """Return whether there is an opportunistic job that continues."""
        opportunistic = self._spec.opportunistic
        if opportunistic is None or self.clock.now_s() >= opportunistic.until_s:
            return False
        return not self._ledger.jobs[len(self._spec.ids)].over

    def _send_opportunistic(self) -> None:
        """Assign the opportunistic job its own slots, and lend it those that no plan uses."""
        opportunistic, number = self._spec.opportunistic, len(self._spec.ids)
        assert opportunistic is not None
        if set(opportunistic.home) & (self._away | set(self._flights)):
            return
        wanted = {self._spec.places[slot] for unit in self._units for slot in unit.slots}
        free = [slot for slot in self._spec.places if slot not in wanted and slot not in self._flights]
        slots = opportunistic.slots([slot for slot in free if slot not in self._away])
        self._send((number,), slots, self._spec.slice_s / 10, room=len(slots) - len(opportunistic.home))

    def _send(self, jobs: tuple[int, ...], slots: tuple[int, ...], step_s: float, room: int = 0) -> None:
        measured_s = self._step_times.get(self._alike(jobs, slots), step_s)
        count = max(1, round(self._spec.slice_s / measured_s))
        fresh = any(self._last.get(job, ((), ""))[0] != slots for job in jobs)
        now_s = self.clock.now_s()
        first = tuple(self._share(job, slots, count, room, now_s) for job in jobs)
        steps = max(share.order.make.steps for share in first)
        flight = AssignmentInFlight(first, slots, now_s, now_s + steps * measured_s, fresh)
        for rank, slot in enumerate(slots):
            self._flights[slot] = flight
            self._workers.send(slot, JobAssignment(tuple(share._replace(rank=rank) for share in first)))

    def _share(self, job: int, slots: tuple[int, ...], most: int, room: int, now_s: float) -> JobShare:
        """Return the share of the first slot."""
        standing = self._ledger.jobs[job]
        assignment = self._ledger.next_assignment(job, min(most, standing.left), self._pruner.take())
        contexts: tuple[AssignmentContext, ...] = (standing.context,)
        if assignment.source and assignment.source.digest in self._lineages:
            assignment = replace(assignment, earlier=self._lineages[assignment.source.digest])
            contexts += tuple(self._made_from[made.digest][1] for made in assignment.earlier if made)
        meeting = self._meeting(job, slots)
        return JobShare(assignment, self._kinds[job], 0, len(slots), meeting, room, now_s, contexts)

    def _meeting(self, job: int, slots: tuple[int, ...]) -> str:
        """Return where a gang meets: the same while it stays on its slots and is not preempted."""
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
        """Return the key of groups with the same step time."""
        return len(slots), tuple(sorted(self._kinds[job] for job in jobs))

    def _complete_if_answered(self, flight: AssignmentInFlight) -> None:
        if flight.awaited:
            return
        if why := flight.no_room():
            raise NotWritten(f"{why}, then go on with --resume")
        if lost := flight.lost_sources():
            self._find_again(flight, lost)
            return
        completed = flight.complete(self.clock.now_s())
        self._journal.append(SLICE, completed_body(completed), completed.ended_s)
        for slot in flight.slots:
            self._flights.pop(slot, None)
        note(self._ledger, completed)
        self._give_unused()
        self._left |= set(flight.jobs)
        if any(progress.why for progress in completed.parts):
            for job in flight.jobs:
                self._last.pop(job, None)
        self._suspect(flight, completed)
        self._measure(flight, completed)
        self._tell(completed)

    def _suspect(self, flight: AssignmentInFlight, completed: CompletedAssignment) -> None:
        """Note jobs that shared a worker when it died; clear one that ran well alone."""
        if len(flight.jobs) > 1 and flight.died:
            self._alone |= set(flight.jobs)
        elif len(flight.jobs) == 1 and not completed.parts[0].why:
            self._alone -= set(flight.jobs)

    def _measure(self, flight: AssignmentInFlight, completed: CompletedAssignment) -> None:
        """Record the step time of this group."""
        done = max(progress.iterations for progress in completed.parts)
        seconds = max(progress.seconds.training_s for progress in completed.parts)
        if done and seconds > 0.0:
            self._step_times[self._alike(flight.jobs, flight.slots)] = seconds / done

    def _give_unused(self) -> None:
        """Give the pruner what is not needed any more according to the journal."""
        self._pruner.add(self._ledger.unused)
        self._ledger.unused.clear()

    def _find_again(self, flight: AssignmentInFlight, lost: list[CheckpointInfo]) -> None:
        """Have lost sources made again in the next assignment, along their lineages.

        That is not the jobs' fault, so the assignment is not recorded. Checkpoints that others made in it
        stay.
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
    def _made_from(self) -> dict[str, tuple[CheckpointInfo | None, AssignmentContext]]:
        if self._ledger.past is None:
            self._ledger.past = self._past()
        return self._ledger.past


def note(ledger: JobLedger, completed: CompletedAssignment) -> None:
    """Apply a completed assignment to the ledger."""
    for progress in completed.parts:
        if progress.iterations:
            ledger.did(progress.job, progress.iterations, (completed.room, completed.began_s))
        elif not completed.blameless:
            ledger.failed(progress.job)


def _changes(there: set[int], state: JobsEngine) -> list[NodeCame | NodeWent]:
    """Return the nodes whose state differs from what the scheduler knows."""
    known = set(np.flatnonzero(state.nodes[UP]).tolist())
    gone: list[NodeCame | NodeWent] = [NodeWent(node) for node in sorted(known - there)]
    return gone + [NodeCame(node) for node in sorted(there - known)]
