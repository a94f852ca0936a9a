"""Who is at what, and which checkpoints there are: what follows from events and decisions alone."""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from rota.core.population.cluster import PopulationCluster
from rota.core.population.events import (
    Assign,
    Clone,
    Decision,
    Event,
    Hyper,
    Idled,
    Interval,
    NodeFailed,
    Reported,
    Stop,
    TrialFailed,
)
from rota.execution.assignments import Assignment, CheckpointInfo, Done, made
from rota.execution.checkpoints import Name


@dataclass(slots=True)
class QueuedInterval:
    """A part on a list."""

    part: Interval
    order: Assignment | None = None
    """Once it was sent."""
    done: Done | None = None
    """Once it was answered; it is on the list until it is reported."""
    began_s: float = 0.0
    ended_s: float = 0.0

    def awaits(self, digest: str) -> bool:
        """Whether it was ordered, and this is what comes of it."""
        return self.done is None and self.order is not None and self.order.make.digest == digest


@dataclass(slots=True)
class RunningAssignment:
    """A list on a slot."""

    pieces: list[QueuedInterval]
    free_s: float = 0.0
    """Since when the slot is at its first piece that was not answered."""

    @property
    def current(self) -> QueuedInterval | None:
        """What the worker is at."""
        piece = next((piece for piece in self.pieces if piece.done is None), None)
        return piece if piece is not None and piece.order is not None else None

    def forget_orders(self) -> None:
        """What was not answered is to be sent again."""
        for piece in self.pieces:
            if piece.done is None:
                piece.order = None

    def without(self, trial: int, *, only_to_do: bool = False) -> None:
        """Drop the parts of a trial, or those of them that are still to be trained."""
        self.pieces = [
            piece for piece in self.pieces if piece.part.trial != trial or (only_to_do and piece.done)
        ]


@dataclass(slots=True)
class TrialStanding:
    """Where a trial stands."""

    hyper: Hyper
    changes: tuple[str, ...] = ()
    parts: int = 0
    """That it has reported."""
    newest: CheckpointInfo | None = None
    """What it goes on from; another's after it was cloned."""
    before: CheckpointInfo | None = None
    """What that was made from."""


@dataclass(slots=True)
class Ledger:
    """The books of a run. They are the same after the journal was read as they were when it was written."""

    run: str
    """Whatever tells the checkpoints of this run from those of others."""
    fleet: PopulationCluster
    hypers: Sequence[Hyper]
    target: float
    lists: dict[int, RunningAssignment] = field(default_factory=dict)
    """Slot → what it was handed and has not reported."""
    unused: list[Name] = field(default_factory=list)
    """Checkpoints that nobody needs any more."""
    past: dict[str, CheckpointInfo | None] | None = None
    """Digest of what was reported → what it was made from; only kept if it is asked for."""
    lines: list[TrialStanding] = field(init=False)
    best: CheckpointInfo | None = None
    """The checkpoint of the best report, the first of equals; it is kept."""
    best_metric: float = -math.inf
    _uses: Counter[Name] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.lines = [TrialStanding(hyper) for hyper in self.hypers]

    def note(self, events: Iterable[Event]) -> None:
        """What happened."""
        for event in events:
            match event:
                case Reported():
                    self._report(event)
                case TrialFailed(slot=slot, trial=trial):
                    self.lists[slot].without(trial)
                case Idled(slot=slot):
                    del self.lists[slot]
                case NodeFailed(node=node):
                    for slot in [slot for slot in self.lists if self.fleet.slots[slot].node == node]:
                        del self.lists[slot]

    def take(self, decisions: Iterable[Decision]) -> None:
        """What was decided."""
        for decision in decisions:
            match decision:
                case Assign(slot, parts):
                    self.lists[slot] = RunningAssignment([QueuedInterval(part) for part in parts])
                case Clone(trial, donor, hyper, changes):
                    line, giver = self.lines[trial], self.lines[donor]
                    line.hyper, line.changes = hyper, changes
                    self._stand(line, giver.newest, giver.before)
                case Stop(trial):
                    for running in self.lists.values():
                        running.without(trial)

    def order(self, slot: int, part: Interval, over: Name | None = None) -> Assignment:
        """What a worker has to do for the next part of a trial."""
        line, kept = self.lines[part.trial], None
        for piece in self.lists[slot].pieces:
            if piece.part.trial == part.trial and piece.done:  # answered, not reported yet
                kept = piece.order
        return self._order(line, part, kept, over)

    def _order(
        self, line: TrialStanding, part: Interval, kept: Assignment | None = None, over: Name | None = None
    ) -> Assignment:
        """From where the trial stands, or from what it has come to since."""
        newest, before, version = line.newest, line.before, line.parts + 1
        if kept is not None:
            newest, before, version = kept.make, kept.source, kept.make.version + 1
        make = made(part.trial, version, part.steps, line.hyper, line.changes, newest, self.run)
        return Assignment(make, newest, (before,) if newest else (), over)

    def finished(self) -> list[int]:
        """Slots that have nothing left on their lists."""
        return [slot for slot, running in self.lists.items() if not running.pieces]

    def needed(self) -> set[Name]:
        """The checkpoints that somebody goes on from, or may have to."""
        return set(self._uses)

    def is_past(self, name: Name) -> bool:
        """Whether a checkpoint is not needed, and will not be.

        Those that are newer than what was reported will: they are being made, or they are from before a power
        cut that took back the newest entries of the journal, and need not be made again.
        """
        trial, version = name
        return trial < len(self.lines) and version <= self.lines[trial].parts and name not in self._uses

    def sources(self) -> dict[str, CheckpointInfo | None]:
        """Digest of what was ordered and is not reported yet → what it is made from."""
        pieces = (piece for running in self.lists.values() for piece in running.pieces)
        return {piece.order.make.digest: piece.order.source for piece in pieces if piece.order}

    def _report(self, event: Reported) -> None:
        line, running = self.lines[event.trial], self.lists[event.slot]
        at = next(at for at, piece in enumerate(running.pieces) if piece.part.trial == event.trial)
        piece = running.pieces.pop(at)
        order = piece.order or self._order(line, piece.part)
        line.parts += 1
        self._stand(line, order.make, order.source)
        if event.metric > self.best_metric:
            before, self.best, self.best_metric = self.best, order.make, event.metric
            self._need([self.best], [before])
        if self.past is not None:
            self.past[order.make.digest] = order.source
        if event.metric >= self.target or event.ended:
            running.without(event.trial)

    def _stand(
        self, line: TrialStanding, newest: CheckpointInfo | None, before: CheckpointInfo | None
    ) -> None:
        """A trial goes on from here: from now on others than before are needed."""
        had = [line.newest, line.before]
        line.newest, line.before = newest, before
        self._need([newest, before], had)

    def _need(self, now: Iterable[CheckpointInfo | None], before: Iterable[CheckpointInfo | None]) -> None:
        """Of these, the first ones are needed from now on, and the others no more by what needed them."""
        freed = [(made.trial, made.version) for made in before if made]
        self._uses.update((made.trial, made.version) for made in now if made)
        self._uses.subtract(freed)
        for name in freed:
            if not self._uses[name]:
                del self._uses[name]
                self.unused.append(name)
