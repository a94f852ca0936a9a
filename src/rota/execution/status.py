"""The status of a population's run, read from its journal alone."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rota.config.bind import facts
from rota.core.errors import InputError
from rota.core.population.cluster import PopulationCluster, Slot
from rota.core.population.events import (
    Assign,
    Clone,
    Decision,
    Event,
    Hyper,
    Joined,
    NodeFailed,
    Reported,
    Retire,
    Stop,
    TrialFailed,
)
from rota.core.population.view import Terms
from rota.execution.assignments import CheckpointInfo
from rota.execution.checkpoints import CheckpointContents, DamagedCheckpoint
from rota.execution.entries import DECIDED, INSTANT, LOST, parse_decisions, parse_events
from rota.execution.folder import RunPaths, last_line
from rota.execution.journal import JournalEntry, has_owner, read_journal
from rota.execution.journaled import BEGAN, ENDED
from rota.execution.ledger import Ledger


@dataclass(frozen=True, slots=True)
class PopulationFrame:
    """What does not change during a run; plain values in the journal."""

    run: str
    """Its own name: whatever tells it from others."""
    seed: int
    hypers: Sequence[Mapping[str, object]]
    """What trials begin with."""
    slots: Sequence[int]
    """Slot → node."""
    nodes: Sequence[str]
    """Their names."""
    terms: Terms
    config: str = ""
    """The digest of its configuration; older journals do not say."""
    mode: str = "max"
    """With "min", metrics in the journal are what trials reported times -1."""

    @property
    def sign(self) -> float:
        """What a metric of the journal is multiplied by for people."""
        return -1.0 if self.mode == "min" else 1.0

    def record(self) -> dict[str, Any]:
        terms = {name: getattr(self.terms, name) for name in Terms.__slots__}
        rest = {name: list(getattr(self, name)) for name in ("hypers", "slots", "nodes")}
        more = {"config": self.config, "mode": self.mode}
        return {"run": self.run, "seed": self.seed, **rest, "terms": terms, **more}


def parse_frame(found: Mapping[str, Any]) -> PopulationFrame:
    return facts(PopulationFrame, found, "the journal has what is no beginning", LOST, any_number=True)


@dataclass(slots=True)
class ShownTrial:
    """One trial as people see it."""

    hyper: Hyper
    status: str = "waiting"
    """waiting, running, finished, stopped or failed."""
    steps: int = 0
    metric: float = math.nan
    best: float = math.nan
    node: str = ""
    """Where it was trained last, or is being trained."""
    changes: tuple[str, ...] = ()
    failures: int = 0
    computing_s: float = 0.0
    """That it was trained and evaluated."""
    parts: int = 0
    """That it was handed and has not reported."""
    slot: int = -1

    @property
    def over(self) -> bool:
        return self.status in ("finished", "stopped", "failed")


@dataclass(slots=True)
class PopulationStatus:
    """A run so far."""

    frame: PopulationFrame
    trials: list[ShownTrial] = field(init=False)
    at_s: float = 0.0
    reports: int = 0
    clones: int = 0
    failures: list[TrialFailed] = field(default_factory=list)
    first_s: float = math.inf
    """When training first began."""
    last_s: float = 0.0
    """When a trial last reported."""
    computing_s: float = 0.0
    up: set[int] = field(default_factory=set)
    """Nodes that are there."""
    retired: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.trials = [ShownTrial(hyper) for hyper in self.frame.hypers]

    def see(self, events: Iterable[Event]) -> None:
        """What happened."""
        for event in events:
            self.at_s = event.at_s
            match event:
                case Reported():
                    self._report(event)
                case TrialFailed():
                    self._fail(event)
                case NodeFailed(node=node):
                    self._lose(node)
                case Joined(node=node):
                    self.up.add(node)

    def decide(self, decisions: Iterable[Decision]) -> None:
        """What was decided."""
        for decision in decisions:
            match decision:
                case Assign(slot, parts):
                    for part in parts:
                        trial = self.trials[part.trial]
                        trial.status, trial.slot, trial.node = "running", slot, self._node(slot)
                        trial.parts += 1
                case Clone(trial=number, donor=donor, hyper=hyper, changes=changes):
                    self.trials[number].hyper, self.trials[number].changes = hyper, changes
                    self.clones += donor != number
                case Stop(trial=number):
                    self._end(self.trials[number], "stopped")
                case Retire(slot):
                    self.retired.add(slot)

    @property
    def busy(self) -> set[int]:
        """Slots that train."""
        return {trial.slot for trial in self.trials if trial.status == "running"}

    @property
    def unused(self) -> int:
        """Slots that could train, and do not."""
        there = {slot for slot, node in enumerate(self.frame.slots) if node in self.up}
        return len(there - self.retired - self.busy)

    @property
    def best(self) -> int | None:
        """The trial that was best; the first of equals."""
        measured = [number for number, trial in enumerate(self.trials) if not math.isnan(trial.best)]
        return max(measured, key=lambda number: self.trials[number].best, default=None)

    @property
    def fruitless(self) -> str:
        """Why nothing came of it, in a sentence; nothing if something did."""
        count = len(self.trials)
        failed = sum(trial.status == "failed" for trial in self.trials)
        if failed == count:
            return f"all {count} trials failed, at last with {last_line(self.failures[-1].why)}"
        if self.best is not None:
            return ""
        first = f"{failed} of {count} trials failed, and " if failed else ""
        return f"{first}all metrics are NaN, so no trial is the best; return a number from `evaluate`"

    @property
    def overhead_s_per_report(self) -> float | None:
        """(slots × (last report − first start) − seconds of training and evaluating) ÷ reports."""
        if not self.reports:
            return None
        whole_s = len(self.frame.slots) * (self.last_s - self.first_s)
        return (whole_s - self.computing_s) / self.reports

    def record(self) -> dict[str, Any]:
        """Plain values, as `--json` prints them."""
        best = self.best
        return {
            "trials": [self._trial(number) for number in range(len(self.trials))],
            "best": None if best is None else self._trial(best),
            "reports": self.reports,
            "clones": self.clones,
            "failures": len(self.failures),
            "failed": [failed._asdict() for failed in self.failures],
            "wall_s": self.at_s,
            "overhead_s_per_report": self.overhead_s_per_report,
        }

    def _trial(self, number: int) -> dict[str, Any]:
        trial = self.trials[number]
        return {
            "id": number,
            "status": trial.status,
            "steps": trial.steps,
            "best_metric": None if math.isnan(trial.best) else self.frame.sign * trial.best,
            "hyper": dict(trial.hyper),
            "changes": list(trial.changes),
            "node": trial.node,
        }

    def _node(self, slot: int) -> str:
        return self.frame.nodes[self.frame.slots[slot]]

    def _report(self, event: Reported) -> None:
        trial, terms = self.trials[event.trial], self.frame.terms
        trial.steps += event.steps
        trial.parts -= 1
        trial.metric = event.metric
        if not math.isnan(event.metric) and not event.metric <= trial.best:
            trial.best = event.metric
        computing_s = event.ended_s - event.began_s - event.moved_s
        trial.computing_s += computing_s
        self.reports += 1
        self.computing_s += computing_s
        self.first_s = min(self.first_s, event.ended_s - computing_s)
        self.last_s = max(self.last_s, event.at_s)
        if trial.steps >= terms.steps or event.metric >= terms.target or event.ended:
            self._end(trial, "finished")
        elif trial.parts < 1:
            self._end(trial, "waiting")

    def _fail(self, event: TrialFailed) -> None:
        trial = self.trials[event.trial]
        trial.failures += 1
        self.failures.append(event)
        self._end(trial, "failed" if trial.failures >= self.frame.terms.attempts else "waiting")

    def _lose(self, node: int) -> None:
        self.up.discard(node)
        for trial in self.trials:
            if trial.status == "running" and self.frame.slots[trial.slot] == node:
                self._end(trial, "waiting")

    def _end(self, trial: ShownTrial, status: str) -> None:
        trial.status, trial.slot, trial.parts = status, -1, 0


@contextmanager
def taken_in(file: Path, entry: JournalEntry) -> Iterator[None]:
    """While an entry is understood: one that names what the run does not have is an error that says so."""
    try:
        yield
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        what = f"entry {entry.number} ({entry.kind}) is not what a run writes"
        raise InputError(f"{file}: {what} ({error!r}); {LOST}") from None


def _see(picture: PopulationStatus, entry: JournalEntry) -> None:
    if entry.kind == INSTANT:
        picture.see(parse_events(entry.body["events"]))
    elif entry.kind == DECIDED:
        picture.decide(parse_decisions(entry.body["decisions"]))


def read_status(file: Path) -> tuple[PopulationStatus, str]:
    """The run so far, and whether it is `running`, `complete` or `stopped`."""
    picture, phase = None, "stopped"
    for entry in read_journal(file):
        if entry.kind == BEGAN:
            picture = PopulationStatus(parse_frame(entry.body))
        elif picture is None:
            break
        elif entry.kind == ENDED:
            phase = "complete"
        else:
            with taken_in(file, entry):
                _see(picture, entry)
    if picture is None:
        raise InputError(f"{file}: not the journal of a population; name the folder of a run")
    return picture, "running" if phase == "stopped" and has_owner(file) else phase


def best_checkpoint(journal: Path) -> CheckpointInfo:
    """Return the checkpoint of the best report, the first of equals.

    Raises InputError if no trial has reported a number.
    """
    ledger = None
    for entry in read_journal(journal):
        if entry.kind == BEGAN:
            frame = parse_frame(entry.body)
            fleet = PopulationCluster(tuple(Slot(node) for node in frame.slots), tuple(frame.nodes))
            ledger = Ledger(frame.run, fleet, frame.hypers, frame.terms.target)
        elif ledger is not None:
            with taken_in(journal, entry):
                if entry.kind == INSTANT:
                    ledger.note(parse_events(entry.body["events"]))
                elif entry.kind == DECIDED:
                    ledger.take(parse_decisions(entry.body["decisions"]))
    if ledger is None or ledger.best is None:
        raise InputError(f"{journal}: no trial has reported how good it is, so none is best")
    return ledger.best


def read_best(books: RunPaths) -> CheckpointContents:
    """Return what is in the best checkpoint of a run; an error if it cannot be read."""
    try:
        return books.checkpoints.read(best_checkpoint(books.journal))
    except DamagedCheckpoint as error:
        raise InputError(f"{error}; bring it back, or train it again: rota run --replay DIR") from None
