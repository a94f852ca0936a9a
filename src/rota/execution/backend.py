"""The backend of a population's real run: decisions become assignments, and answers become events."""

import logging
from collections import defaultdict, deque
from collections.abc import Callable, Iterator
from dataclasses import replace
from math import inf

import numpy as np

from rota.core.errors import Stuck
from rota.core.population.engine import PopulationEngine
from rota.core.population.events import Decision, Event, Idled, Joined, NodeFailed, Reported, TrialFailed
from rota.execution.assignments import CheckpointInfo, Done, FailedAnswer
from rota.execution.checkpoints import CheckpointPruner, Checkpoints, MissingStorage, earlier_than
from rota.execution.engine import Answered, Died, Message, NodeCame, NodeWent, Workers
from rota.execution.jobs.assignments import JobAnswer
from rota.execution.journal import NotWritten
from rota.execution.journaled import RunClock
from rota.execution.ledger import Ledger, QueuedInterval, RunningAssignment

AHEAD = 2
"""Maximal number of unanswered assignments of a worker: it continues without waiting for the controller."""
LOOK_EVERY_S = 0.2
"""Seconds between two checks whether the run should stop."""

log = logging.getLogger(__name__)

LEAST_S = 1e-9
"""Minimal seconds of an interval: policies divide by it."""


class PopulationBackend:
    """A backend that trains a population on workers.

    When `asked_to_stop` is true, or at the deadline, nothing more is sent, what workers are training is
    waited for, and there are no more instants. `past` returns the source of each reported checkpoint; it is
    called if some are lost. If all are, they are trained again only if `anew`.
    """

    def __init__(
        self,
        ledger: Ledger,
        workers: Workers,
        checkpoints: Checkpoints,
        pruner: CheckpointPruner,
        past: Callable[[], dict[str, CheckpointInfo | None]],
        *,
        anew: bool = False,
        report_each: bool = True,
        asked_to_stop: Callable[[], bool] = lambda: False,
        deadline_s: float = inf,
        clock: RunClock | None = None,
    ) -> None:
        self._ledger, self._workers, self._checkpoints = ledger, workers, checkpoints
        self._pruner, self._past, self._anew = pruner, past, anew
        self._report_each, self._asked_to_stop = report_each, asked_to_stop
        self.clock, self._deadline_s = clock or RunClock(), deadline_s
        self._messages: deque[Message] = deque()
        """Messages that are not yet processed."""
        self._later_s: defaultdict[int, float] = defaultdict(float)
        """Slot → seconds that its unprocessed answers took."""
        self._awaited: set[int] | None = None
        """Slots whose present interval is waited for before the run stops; None while it goes on."""
        self._lineages: dict[str, tuple[CheckpointInfo | None, ...]] = {}
        """Digest of a lost checkpoint → what it can be made from, see `Assignment.earlier`."""

    # ── what the journal says ───────────────────────────────────────────────────────────────────────────────

    def recall(self, events: list[Event]) -> None:
        """Apply events, past or present, to the ledger."""
        self._ledger.see(events)

    def remember(self, decisions: list[Decision], state: PopulationEngine) -> None:
        """Apply decisions, past or present, to the ledger."""
        self._ledger.decide(decisions)

    # ── what happens now ────────────────────────────────────────────────────────────────────────────────────

    def instants(self, state: PopulationEngine) -> Iterator[list[Event]]:
        """Yield events from the end of the journal on."""
        self.clock.go_on_from(state.now_s)
        if state.left and not self.is_at_deadline:
            self._checkpoints.claim(self._ledger.run, self._ledger.needed(), anew=self._anew)
            self._pruner.settle()  # a journal that was only in memory may be needed again, with what it needs
            self._checkpoints.sweep(lambda name: not self._ledger.is_past(name))
            self._ledger.unused.clear()
            events = self._changes_of_nodes(state)
            self.clock.go_on_from(state.now_s)  # it took a while until workers were there
            self._send_all()
            self.recall(events)
            if events:
                yield events
        while state.left and not self._is_over():
            events = self._heard(state) if not self._ledger.finished() else []
            events += self._completed(events[0].at_s if events else self.clock.now_s())
            if events:
                yield events
        self._pruner.settle()
        if not state.left and self._checkpoints.is_of(self._ledger.run):
            self._checkpoints.sweep(self._ledger.needed().__contains__)

    def perform(self, decisions: list[Decision], state: PopulationEngine) -> None:
        self.remember(decisions, state)
        self._pruner.add(self._ledger.unused)
        self._ledger.unused.clear()
        self._pruner.tidy()
        if self._awaited is None:
            self._send_all()

    def _completed(self, at_s: float) -> list[Event]:
        """Return an event for each assignment that is complete."""
        events: list[Event] = [Idled(at_s, slot) for slot in self._ledger.finished()]
        self.recall(events)
        return events

    def _changes_of_nodes(self, state: PopulationEngine) -> list[Event]:
        """Return the nodes lost and joined since the end of the journal; all join at the beginning."""
        now, before = set(self._workers.nodes()), set(state.node[np.flatnonzero(state.up)].tolist())
        gone: list[Event] = [NodeFailed(state.now_s, node) for node in sorted(before - now)]
        return gone + [Joined(state.now_s, node) for node in sorted(now - before)]

    def _send_all(self) -> None:
        now_s = self.clock.now_s()
        for slot, running in self._ledger.assignments.items():
            if running.current is None:
                running.free_s = now_s
            self._send(slot, running)

    def _send(self, slot: int, running: RunningAssignment) -> None:
        """Send as many intervals as a worker may have; a trial is reviewed before its next one."""
        waiting: set[int] = set()
        for queued in [queued for queued in running.queue if queued.done is None][:AHEAD]:
            trial = queued.interval.trial
            if trial in waiting:
                break
            waiting.add(trial)
            if queued.assignment is None:
                assignment = self._ledger.next_assignment(slot, queued.interval, self._pruner.take())
                if assignment.source and assignment.source.digest in self._lineages:
                    assignment = replace(assignment, earlier=self._lineages[assignment.source.digest])
                queued.assignment = assignment
                self._workers.send(slot, assignment)

    @property
    def is_at_deadline(self) -> bool:
        """Whether the run has had all its time."""
        return self.clock.now_s() >= self._deadline_s

    def _is_over(self) -> bool:
        """Return whether the run ends here, by request or at the deadline, and no interval is waited for."""
        if self._awaited is None and (self._asked_to_stop() or self.is_at_deadline):
            self._awaited = {slot for slot, running in self._ledger.assignments.items() if running.current}
        elif self._awaited is not None:
            self._awaited &= set(self._ledger.assignments)  # nothing more is heard of a node that went
        return self._awaited is not None and not self._awaited

    def _heard(self, state: PopulationEngine) -> list[Event]:
        """Wait for messages; return the events of one instant."""
        if not any(running.queue for running in self._ledger.assignments.values()) and state.up.all():
            if self._deadline_s < inf:  # slots are left idle until then
                self._deadline_s = -inf
                return []
            raise Stuck(
                f"at {state.now_s:g} s nothing runs and nothing will happen, but {state.left} trials are not "
                f"done and {len(state.idle)} slots are idle"
            )
        if not self._messages:
            left_s = self._deadline_s - self.clock.now_s() if self._awaited is None else inf
            self._messages.extend(self._workers.wait(min(LOOK_EVERY_S, max(0.0, left_s))))
            self._pruner.tidy()
            self._count_seconds()
        at_s = self.clock.now_s()
        events: list[Event] = []
        for message in self._next():
            heard = self._take_in(message, at_s)
            self.recall(heard)  # before the next message, which may be about the same list
            events += heard
        return events

    def _next(self) -> Iterator[Message]:
        """Yield the messages of one instant, at most one answer per slot: each report is reviewed first."""
        slots: set[int] = set()
        while self._messages:
            message = self._messages[0]
            if isinstance(message, Answered):
                if message.slot in slots:
                    return
                slots.add(message.slot)
            yield self._messages.popleft()

    def _count_seconds(self) -> None:
        """Advance the clock by intervals that were trained after the last entry of the journal."""
        self._later_s.clear()
        for message in self._messages:
            if isinstance(message, Answered) and isinstance(message.answer, Done):
                running = self._ledger.assignments.get(message.slot)
                if running and any(queued.awaits(message.answer.digest) for queued in running.queue):
                    self._later_s[message.slot] += message.answer.spent.whole_s
        for slot, spent_s in self._later_s.items():
            self.clock.at_least(self._ledger.assignments[slot].free_s + spent_s)

    def _take_in(self, message: Message, at_s: float) -> list[Event]:
        match message:
            case NodeCame(node):
                return [Joined(at_s, node)]
            case NodeWent(node):
                return [NodeFailed(at_s, node)]
            case Died(slot, why):
                return self._died(slot, why, at_s)
            case Answered(slot):
                return self._answered(message, self._ledger.assignments.get(slot), at_s)
        return []

    def _died(self, slot: int, why: str, at_s: float) -> list[Event]:
        """Fail the trial that a dead worker was training; its other intervals are sent again."""
        self._no_longer_awaited(slot)
        running = self._ledger.assignments.get(slot)
        if running is None or running.current is None:
            return []
        blamed = running.current
        running.forget_sent()
        return self._failed(slot, running, blamed, why, at_s)

    def _answered(self, message: Answered, running: RunningAssignment | None, at_s: float) -> list[Event]:
        slot, answer = message
        queued = running.current if running else None
        if (
            running is None
            or queued is None
            or isinstance(answer, JobAnswer)
            or not queued.awaits(answer.digest)
        ):
            return []  # to an assignment that was dropped
        self._no_longer_awaited(slot)
        if isinstance(answer, FailedAnswer):
            if answer.no_room:
                raise NotWritten(f"{answer.why}, then go on with --resume")
            if answer.lost:
                self._find_again(slot, running, queued)
                return []
            return self._failed(slot, running, queued, answer.why, at_s)
        self._later_s[slot] -= answer.spent.whole_s
        ended_s = max(running.free_s, at_s - self._later_s[slot])
        queued.done, queued.began_s, queued.ended_s = answer, running.free_s, ended_s
        running.free_s = queued.ended_s
        if self._report_each:
            return [self._report(slot, queued, at_s)]
        if answer.metric >= self._ledger.target or answer.ended is not None:
            running.without(queued.interval.trial, only_to_do=True)
        if self._awaited is None:
            self._send(slot, running)
        return self._reports_if_complete(slot, running, at_s)

    def _find_again(self, slot: int, running: RunningAssignment, queued: QueuedInterval) -> None:
        """Have a lost source trained again along its lineage. It is not the trial's fault."""
        assert queued.assignment is not None
        assert queued.assignment.source is not None
        lost = queued.assignment.source
        if self._ledger.past is None:
            self._ledger.past = self._past()
        sources = {**self._ledger.past, **self._ledger.sources()}
        lineage = earlier_than(lost, sources, self._checkpoints.is_intact)
        if lineage == queued.assignment.earlier or not self._checkpoints.is_of(self._ledger.run):
            raise MissingStorage(self._checkpoints.folder)
        self._lineages[lost.digest] = lineage
        log.warning("%s is lost; it is trained again", self._checkpoints.file(lost.trial, lost.version))
        running.forget_sent()
        if self._awaited is None:
            self._send(slot, running)

    def _failed(
        self, slot: int, running: RunningAssignment, queued: QueuedInterval, why: str, at_s: float
    ) -> list[Event]:
        """Continue the assignment without the failed trial; it may be complete then."""
        running.without(queued.interval.trial)
        log.info("trial %d failed on slot %d:\n%s", queued.interval.trial, slot, why.rstrip())
        return [
            TrialFailed(at_s, slot, queued.interval.trial, why),
            *self._reports_if_complete(slot, running, at_s),
        ]

    def _reports_if_complete(self, slot: int, running: RunningAssignment, at_s: float) -> list[Event]:
        """Return the reports of an assignment once all of it is answered."""
        if any(queued.done is None for queued in running.queue):
            return []
        return [self._report(slot, queued, at_s) for queued in running.queue]

    def _report(self, slot: int, queued: QueuedInterval, at_s: float) -> Reported:
        """Return the report of an interval; all time but computing is overhead."""
        assert queued.done is not None
        began_s, ended_s = queued.began_s, queued.ended_s
        computing_s = max(queued.done.spent.computing_s, LEAST_S)
        moved_s = max(0.0, ended_s - began_s - computing_s)
        trial, steps = queued.interval
        metric, ended = queued.done.metric, queued.done.ended
        trained = steps if ended is None else ended
        return Reported(at_s, slot, trial, trained, began_s, ended_s, moved_s, metric, ended is not None)

    def _no_longer_awaited(self, slot: int) -> None:
        if self._awaited is not None:
            self._awaited.discard(slot)
