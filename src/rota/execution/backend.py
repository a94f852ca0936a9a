"""The backend of a population's real run: decisions become assignments, and answers become events."""

import logging
from collections import defaultdict, deque
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from rota.core.errors import Stuck
from rota.core.population.events import Decision, Event, Idled, Joined, NodeFailed, Reported, TrialFailed
from rota.core.population.state import PopulationState
from rota.execution.assignments import CheckpointInfo, Done, FailedAnswer
from rota.execution.checkpoints import CheckpointPruner, Checkpoints, MissingStorage, earlier_than
from rota.execution.engine import Answered, Died, Message, NodeCame, NodeWent, Workers
from rota.execution.jobs.assignments import JobAnswer
from rota.execution.journal import NotWritten
from rota.execution.journaled import RunClock
from rota.execution.ledger import Ledger, QueuedInterval, RunningAssignment

AHEAD = 2
"""Orders that a worker may have at a time: it goes on with the next one without being told."""
LOOK_EVERY_S = 0.2
"""Whether somebody wants the run to stop."""

log = logging.getLogger(__name__)

LEAST_S = 1e-9
"""That a part takes: policies divide by it."""


class PopulationBackend:
    """Trains a population on workers. `asked_to_stop` is looked at again and again.

    When it is so, what workers are at is waited for, nothing more is sent, and there are no more instants.
    `past` says what each checkpoint that was reported was made from; it is asked if some are lost. If all of
    them are, they are made `anew` only if that is wanted.
    """

    def __init__(
        self,
        ledger: Ledger,
        workers: Workers,
        checkpoints: Checkpoints,
        spares: CheckpointPruner,
        past: Callable[[], dict[str, CheckpointInfo | None]],
        *,
        anew: bool = False,
        report_each: bool = True,
        asked_to_stop: Callable[[], bool] = lambda: False,
        clock: RunClock | None = None,
    ) -> None:
        self._ledger, self._workers, self._checkpoints = ledger, workers, checkpoints
        self._spares, self._past, self._anew = spares, past, anew
        self._report_each, self._asked_to_stop = report_each, asked_to_stop
        self.clock = clock or RunClock()
        self._messages: deque[Message] = deque()
        """What was heard and not taken in yet."""
        self._later_s: defaultdict[int, float] = defaultdict(float)
        """Slot → seconds that its answers among these took."""
        self._awaited: set[int] | None = None
        """Slots whose present part is waited for before the run stops; None while nobody asked for it."""
        self._lineages: dict[str, tuple[CheckpointInfo | None, ...]] = {}
        """Digest of a checkpoint that is lost → what it can be made again from, see `Order.earlier`."""

    # ── what the journal says ───────────────────────────────────────────────────────────────────────────────

    def recall(self, events: list[Event]) -> None:
        """This happened before, or happens now."""
        self._ledger.note(events)

    def remember(self, decisions: list[Decision], state: PopulationState) -> None:
        """This was decided before, or is decided now."""
        self._ledger.take(decisions)
        for decision in decisions:
            state.confirm(decision)

    # ── what happens now ────────────────────────────────────────────────────────────────────────────────────

    def instants(self, state: PopulationState) -> Iterator[list[Event]]:
        """From where the journal ends."""
        self.clock.go_on_from(state.now_s)
        if state.left:
            self._checkpoints.claim(self._ledger.run, self._ledger.needed(), anew=self._anew)
            self._spares.settle()  # a journal that was only in memory may be needed again, with what it needs
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
            events += self._emptied(events[0].at_s if events else self.clock.now_s())
            if events:
                yield events
        self._spares.settle()
        if not state.left and self._checkpoints.is_of(self._ledger.run):
            self._checkpoints.sweep(self._ledger.needed().__contains__)

    def perform(self, decisions: list[Decision], state: PopulationState) -> None:
        self.remember(decisions, state)
        self._spares.add(self._ledger.unused)
        self._ledger.unused.clear()
        self._spares.tidy()
        if self._awaited is None:
            self._send_all()

    def _emptied(self, at_s: float) -> list[Event]:
        """The lists that have come to their end."""
        events: list[Event] = [Idled(at_s, slot) for slot in self._ledger.finished()]
        self.recall(events)
        return events

    def _changes_of_nodes(self, state: PopulationState) -> list[Event]:
        """Since the journal ends; all of them come if it has just begun."""
        now, before = set(self._workers.nodes()), set(state.node[np.flatnonzero(state.up)].tolist())
        gone: list[Event] = [NodeFailed(state.now_s, node) for node in sorted(before - now)]
        return gone + [Joined(state.now_s, node) for node in sorted(now - before)]

    def _send_all(self) -> None:
        now_s = self.clock.now_s()
        for slot, running in self._ledger.lists.items():
            if running.current is None:
                running.free_s = now_s
            self._send(slot, running)

    def _send(self, slot: int, running: RunningAssignment) -> None:
        """As many orders as a worker may have. What becomes of a trial is decided before it goes on."""
        waiting: set[int] = set()
        for piece in [piece for piece in running.pieces if piece.done is None][:AHEAD]:
            trial = piece.part.trial
            if trial in waiting:
                break
            waiting.add(trial)
            if piece.order is None:
                order = self._ledger.order(slot, piece.part, self._spares.take())
                if order.source and order.source.digest in self._lineages:
                    order = replace(order, earlier=self._lineages[order.source.digest])
                piece.order = order
                self._workers.send(slot, order)

    def _is_over(self) -> bool:
        """Whether the run was asked to stop, and nothing is waited for."""
        if self._awaited is None and self._asked_to_stop():
            self._awaited = {slot for slot, running in self._ledger.lists.items() if running.current}
        elif self._awaited is not None:
            self._awaited &= set(self._ledger.lists)  # nothing more is heard of a node that went
        return self._awaited is not None and not self._awaited

    def _heard(self, state: PopulationState) -> list[Event]:
        """All that workers said until now; waits for something."""
        if not any(running.pieces for running in self._ledger.lists.values()) and state.up.all():
            raise Stuck(
                f"at {state.now_s:g} s nothing runs and nothing will happen, but {state.left} trials are not "
                f"done and {len(state.idle)} slots are idle"
            )
        if not self._messages:
            self._messages.extend(self._workers.wait(LOOK_EVERY_S))
            self._spares.tidy()
            self._count_seconds()
        at_s = self.clock.now_s()
        events: list[Event] = []
        for message in self._next():
            heard = self._take_in(message, at_s)
            self.recall(heard)  # before the next message, which may be about the same list
            events += heard
        return events

    def _next(self) -> Iterator[Message]:
        """Messages of one instant: what becomes of a report is decided before the next of the same slot."""
        slots: set[int] = set()
        while self._messages:
            message = self._messages[0]
            if isinstance(message, Answered):
                if message.slot in slots:
                    return
                slots.add(message.slot)
            yield self._messages.popleft()

    def _count_seconds(self) -> None:
        """What was trained after the last entry of the journal took time that the clock has not seen."""
        self._later_s.clear()
        for message in self._messages:
            if isinstance(message, Answered) and isinstance(message.answer, Done):
                running = self._ledger.lists.get(message.slot)
                if running and any(piece.awaits(message.answer.digest) for piece in running.pieces):
                    self._later_s[message.slot] += message.answer.spent.whole_s
        for slot, spent_s in self._later_s.items():
            self.clock.at_least(self._ledger.lists[slot].free_s + spent_s)

    def _take_in(self, message: Message, at_s: float) -> list[Event]:
        match message:
            case NodeCame(node):
                return [Joined(at_s, node)]
            case NodeWent(node):
                return [NodeFailed(at_s, node)]
            case Died(slot, why):
                return self._died(slot, why, at_s)
            case Answered(slot):
                return self._answered(message, self._ledger.lists.get(slot), at_s)
        return []

    def _died(self, slot: int, why: str, at_s: float) -> list[Event]:
        """Whoever it was at is blamed; what it had besides is sent again."""
        self._no_longer_awaited(slot)
        running = self._ledger.lists.get(slot)
        if running is None or running.current is None:
            return []
        blamed = running.current
        running.forget_orders()
        return self._failed(slot, running, blamed, why, at_s)

    def _answered(self, message: Answered, running: RunningAssignment | None, at_s: float) -> list[Event]:
        slot, answer = message
        piece = running.current if running else None
        if (
            running is None
            or piece is None
            or isinstance(answer, JobAnswer)
            or not piece.awaits(answer.digest)
        ):
            return []  # of an order that is of no interest any more
        self._no_longer_awaited(slot)
        if isinstance(answer, FailedAnswer):
            if answer.no_room:
                raise NotWritten(f"{answer.why}, then go on with --resume")
            if answer.lost:
                self._find_again(slot, running, piece)
                return []
            return self._failed(slot, running, piece, answer.why, at_s)
        self._later_s[slot] -= answer.spent.whole_s
        ended_s = max(running.free_s, at_s - self._later_s[slot])
        piece.done, piece.began_s, piece.ended_s = answer, running.free_s, ended_s
        running.free_s = piece.ended_s
        if self._report_each:
            return [self._report(slot, piece, at_s)]
        if answer.metric >= self._ledger.target or answer.ended is not None:
            running.without(piece.part.trial, only_to_do=True)
        if self._awaited is None:
            self._send(slot, running)
        return self._whole_list(slot, running, at_s)

    def _find_again(self, slot: int, running: RunningAssignment, piece: QueuedInterval) -> None:
        """Have what a part goes on from trained again, along its lineage. It is not the trial's fault."""
        assert piece.order is not None
        assert piece.order.source is not None
        lost = piece.order.source
        if self._ledger.past is None:
            self._ledger.past = self._past()
        sources = {**self._ledger.past, **self._ledger.sources()}
        lineage = earlier_than(lost, sources, self._checkpoints.is_intact)
        if lineage == piece.order.earlier or not self._checkpoints.is_of(self._ledger.run):
            raise MissingStorage(self._checkpoints.folder)
        self._lineages[lost.digest] = lineage
        log.warning("%s is lost; it is trained again", self._checkpoints.file(lost.trial, lost.version))
        running.forget_orders()
        if self._awaited is None:
            self._send(slot, running)

    def _failed(
        self, slot: int, running: RunningAssignment, piece: QueuedInterval, why: str, at_s: float
    ) -> list[Event]:
        """The list goes on without that trial; it may have come to its end with it."""
        running.without(piece.part.trial)
        log.info("trial %d failed on slot %d:\n%s", piece.part.trial, slot, why.rstrip())
        return [TrialFailed(at_s, slot, piece.part.trial, why), *self._whole_list(slot, running, at_s)]

    def _whole_list(self, slot: int, running: RunningAssignment, at_s: float) -> list[Event]:
        """The reports of a list, once all of it has been answered."""
        if any(piece.done is None for piece in running.pieces):
            return []
        return [self._report(slot, piece, at_s) for piece in running.pieces]

    def _report(self, slot: int, piece: QueuedInterval, at_s: float) -> Reported:
        """What was not computing was waiting: for the order, for the checkpoint, for the answer."""
        assert piece.done is not None
        began_s, ended_s = piece.began_s, piece.ended_s
        computing_s = max(piece.done.spent.computing_s, LEAST_S)
        moved_s = max(0.0, ended_s - began_s - computing_s)
        trial, steps = piece.part
        metric, ended = piece.done.metric, piece.done.ended
        trained = steps if ended is None else ended
        return Reported(at_s, slot, trial, trained, began_s, ended_s, moved_s, metric, ended is not None)

    def _no_longer_awaited(self, slot: int) -> None:
        if self._awaited is not None:
            self._awaited.discard(slot)
