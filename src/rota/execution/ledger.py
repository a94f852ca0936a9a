"""The assignments and checkpoints of a population, which follow from its events and decisions alone."""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from rota.core.cluster import Cluster
from rota.core.population.events import (
    Assign,
    Clone,
    Decision,
    Event,
    Grow,
    Hyper,
    Idled,
    Interval,
    NodeFailed,
    Reported,
    Stop,
    TrialFailed,
)
from rota.execution.assignments import Assignment, CheckpointInfo, Done, checkpoint_info
from rota.execution.checkpoints import Name


@dataclass(slots=True)
class QueuedInterval:
    """An interval of an assignment, until it is reported."""

    interval: Interval
    assignment: Assignment | None = None
    """The message to the worker, once it is sent."""
    done: Done | None = None
    """The answer, once there is one."""
    began_s: float = 0.0
    ended_s: float = 0.0

    def awaits(self, digest: str) -> bool:
        """Return whether it was sent, and an answer about this checkpoint is due."""
        return self.done is None and self.assignment is not None and self.assignment.make.digest == digest


@dataclass(slots=True)
class RunningAssignment:
    """The intervals of a slot that are not yet reported."""

    queue: list[QueuedInterval]
    free_s: float = 0.0
    """The time since which the slot works on its first unanswered interval, in seconds."""

    @property
    def current(self) -> QueuedInterval | None:
        """The interval that the worker is training."""
        queued = next((queued for queued in self.queue if queued.done is None), None)
        return queued if queued is not None and queued.assignment is not None else None

    def forget_sent(self) -> None:
        """Mark all unanswered intervals as not sent."""
        for queued in self.queue:
            if queued.done is None:
                queued.assignment = None

    def without(self, trial: int, *, only_to_do: bool = False) -> None:
        """Drop the intervals of a trial, or only the unanswered ones."""
        self.queue = [
            queued for queued in self.queue if queued.interval.trial != trial or (only_to_do and queued.done)
        ]


@dataclass(slots=True)
class TrialStanding:
    """The hyper-parameters, network and checkpoints of a trial."""

    hyper: Hyper
    changes: tuple[str, ...] = ()
    reports: int = 0
    """Number of intervals that it has reported."""
    newest: CheckpointInfo | None = None
    """The checkpoint that it continues from; the donor's after a clone."""
    before: CheckpointInfo | None = None
    """The checkpoint that the newest was made from."""


@dataclass(slots=True)
class Ledger:
    """The assignments and checkpoints of a run; the same after a resume as before."""

    run: str
    """The name that distinguishes the checkpoints of this run from those of others."""
    cluster: Cluster
    hypers: Sequence[Hyper]
    target: float
    assignments: dict[int, RunningAssignment] = field(default_factory=dict)
    """Slot → its unreported intervals."""
    unused: list[Name] = field(default_factory=list)
    """Checkpoints that are no longer needed."""
    past: dict[str, CheckpointInfo | None] | None = None
    """Digest of each reported checkpoint → its source; only recorded if it is not None."""
    standings: list[TrialStanding] = field(init=False)
    best: CheckpointInfo | None = None
    """The checkpoint of the best report, the first among equals; it is kept."""
    best_metric: float = -math.inf
    deadline_s: float = math.inf
    """What is reported after it is not the best, however good."""
    _uses: Counter[Name] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.standings = [TrialStanding(hyper) for hyper in self.hypers]

    def see(self, events: Iterable[Event]) -> None:
        """Update the ledger by what happened."""
        for event in events:
            match event:
                case Reported():
                    self._report(event)
                case TrialFailed(slot=slot, trial=trial):
                    self.assignments[slot].without(trial)
                case Idled(slot=slot):
                    del self.assignments[slot]
                case NodeFailed(node=node):
                    for slot in [
                        slot for slot in self.assignments if self.cluster.all_slots[slot].node == node
                    ]:
                        del self.assignments[slot]

    def decide(self, decisions: Iterable[Decision]) -> None:
        """Update the ledger by what was decided."""
        for decision in decisions:
            match decision:
                case Assign(slot, intervals):
                    self.assignments[slot] = RunningAssignment([QueuedInterval(each) for each in intervals])
                case Clone(trial, donor, hyper, changes):
                    standing, giver = self.standings[trial], self.standings[donor]
                    standing.hyper, standing.changes = hyper, changes
                    self._stand(standing, giver.newest, giver.before)
                case Grow(trial, change):
                    standing = self.standings[trial]
                    standing.changes = (*standing.changes, change)
                case Stop(trial):
                    for running in self.assignments.values():
                        running.without(trial)

    def next_assignment(self, slot: int, interval: Interval, over: Name | None = None) -> Assignment:
        """Return the message for the next interval of a trial on this slot."""
        standing, kept = self.standings[interval.trial], None
        for queued in self.assignments[slot].queue:
            if queued.interval.trial == interval.trial and queued.done:  # answered, not reported yet
                kept = queued.assignment
        return self._assignment(standing, interval, kept, over)

    def _assignment(
        self, standing: TrialStanding, interval: Interval, kept: Assignment | None, over: Name | None
    ) -> Assignment:
        """Continue from the trial's newest checkpoint, or from an answered one that is not reported."""
        newest, before, version = standing.newest, standing.before, standing.reports + 1
        if kept is not None:
            newest, before, version = kept.make, kept.source, kept.make.version + 1
        make = checkpoint_info(
            interval.trial, version, interval.steps, standing.hyper, standing.changes, newest, self.run
        )
        return Assignment(make, newest, (before,) if newest else (), over)

    def finished(self) -> list[int]:
        """Return the slots whose assignments are complete."""
        return [slot for slot, running in self.assignments.items() if not running.queue]

    def needed(self) -> set[Name]:
        """Return the checkpoints that a trial continues from, or may have to."""
        return set(self._uses)

    def is_past(self, name: Name) -> bool:
        """Return whether a checkpoint is not needed and never will be.

        Newer ones than the reported will be needed: they are being made, or a power cut took back the entries
        about them, and then they need not be made again.
        """
        trial, version = name
        known = trial < len(self.standings) and version <= self.standings[trial].reports
        return known and name not in self._uses

    def sources(self) -> dict[str, CheckpointInfo | None]:
        """Return the source of each checkpoint that is being made, by digest."""
        queue = (queued.assignment for running in self.assignments.values() for queued in running.queue)
        return {sent.make.digest: sent.source for sent in queue if sent}

    def _report(self, event: Reported) -> None:
        standing, running = self.standings[event.trial], self.assignments[event.slot]
        at = next(at for at, queued in enumerate(running.queue) if queued.interval.trial == event.trial)
        queued = running.queue.pop(at)
        assignment = queued.assignment or self._assignment(standing, queued.interval, None, None)
        standing.reports += 1
        self._stand(standing, assignment.make, assignment.source)
        if event.metric > self.best_metric and event.at_s <= self.deadline_s:
            before, self.best, self.best_metric = self.best, assignment.make, event.metric
            self._need([self.best], [before])
        if self.past is not None:
            self.past[assignment.make.digest] = assignment.source
        if event.metric >= self.target or event.ended:
            running.without(event.trial)

    def _stand(
        self, standing: TrialStanding, newest: CheckpointInfo | None, before: CheckpointInfo | None
    ) -> None:
        """Let a trial continue from another checkpoint, and update which ones are needed."""
        had = [standing.newest, standing.before]
        standing.newest, standing.before = newest, before
        self._need([newest, before], had)

    def _need(self, now: Iterable[CheckpointInfo | None], before: Iterable[CheckpointInfo | None]) -> None:
        """Count one more use of each checkpoint in `now`, and one less of each in `before`."""
        freed = [(made.trial, made.version) for made in before if made]
        self._uses.update((made.trial, made.version) for made in now if made)
        self._uses.subtract(freed)
        for name in freed:
            if not self._uses[name]:
                del self._uses[name]
                self.unused.append(name)
