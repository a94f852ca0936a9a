"""The status of a population's run, read from its journal alone."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from rota.config.bind import facts
from rota.core.cluster import Cluster, Slot
from rota.core.errors import InputError
from rota.core.population.events import (
    Assign,
    Clone,
    Decision,
    Event,
    Grow,
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
from rota.execution.entries import LOST, follow
from rota.execution.folder import RunPaths, last_line
from rota.execution.journal import JournalEntry, has_owner, read_journal
from rota.execution.journaled import BEGAN, ENDED
from rota.execution.ledger import Ledger


@dataclass(frozen=True, slots=True)
class PopulationFrame:
    """The facts about a run that never change, as they stand in the first entry of its journal."""

    run: str
    """A random name that distinguishes the run from all others."""
    seed: int
    hypers: Sequence[Mapping[str, object]]
    """The initial hyper-parameters of each trial."""
    slots: Sequence[int]
    """The node of each slot."""
    nodes: Sequence[str]
    """The names of the nodes."""
    terms: Terms
    config: str = ""
    """The digest of the configuration; empty in older journals."""
    mode: str = "max"
    """"max" or "min"; with "min", metrics in the journal are the reported ones times -1."""

    deadline_s: float = math.inf
    """When the run ends, whether trials are done or not."""

    @property
    def sign(self) -> float:
        """The factor that turns a metric of the journal into the reported one."""
        return -1.0 if self.mode == "min" else 1.0

    def record(self) -> dict[str, Any]:
        """Return the facts as plain values, as `parse_frame` reads them."""
        found = {**plain(self), "terms": asdict(self.terms)}
        if math.isinf(self.deadline_s):  # journals of before do not say, either
            del found["deadline_s"]
        return found


def plain(frame: Any) -> dict[str, Any]:
    """Return the fields of a frame, tuples as the lists that JSON makes of them."""
    found = {name: getattr(frame, name) for name in frame.__slots__}
    return {name: list(value) if isinstance(value, tuple) else value for name, value in found.items()}


def parse_frame(found: Mapping[str, Any]) -> PopulationFrame:
    """Return the facts that were written; raise InputError if they are malformed."""
    return facts(PopulationFrame, found, "the first entry of the journal is malformed", LOST, any_number=True)


@dataclass(slots=True)
class ShownTrial:
    """The status of one trial."""

    hyper: Hyper
    status: str = "waiting"
    """One of waiting, running, finished, stopped, failed."""
    steps: int = 0
    metric: float = math.nan
    best: float = math.nan
    node: str = ""
    """The name of the node of its latest interval."""
    changes: tuple[str, ...] = ()
    failures: int = 0
    computing_s: float = 0.0
    """Seconds of training and evaluation."""
    intervals: int = 0
    """Number of intervals that are assigned and not yet reported."""
    slot: int = -1

    @property
    def over(self) -> bool:
        """Whether the trial will not train any more."""
        return self.status in ("finished", "stopped", "failed")


@dataclass(slots=True)
class PopulationStatus:
    """The status of a run, updated by its events and decisions."""

    frame: PopulationFrame
    trials: list[ShownTrial] = field(init=False)
    at_s: float = 0.0
    reports: int = 0
    clones: int = 0
    failures: list[TrialFailed] = field(default_factory=list)
    first_s: float = math.inf
    """The time at which training first began, in seconds."""
    last_s: float = 0.0
    """The time of the latest report, in seconds."""
    computing_s: float = 0.0
    up: set[int] = field(default_factory=set)
    """The nodes that can be used."""
    retired: set[int] = field(default_factory=set)
    closed: bool = False
    """Whether the run is complete."""

    def __post_init__(self) -> None:
        self.trials = [ShownTrial(hyper) for hyper in self.frame.hypers]

    def see(self, events: Iterable[Event]) -> None:
        """Update the status by what happened."""
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
        """Update the status by what was decided."""
        for decision in decisions:
            match decision:
                case Assign(slot, intervals):
                    for interval in intervals:
                        trial = self.trials[interval.trial]
                        trial.status, trial.slot, trial.node = "running", slot, self._node(slot)
                        trial.intervals += 1
                case Clone(trial=number, donor=donor, hyper=hyper, changes=changes):
                    self.trials[number].hyper, self.trials[number].changes = hyper, changes
                    self.clones += donor != number
                case Grow(trial=number, change=change):
                    self.trials[number].changes = (*self.trials[number].changes, change)
                case Stop(trial=number):
                    self._end(self.trials[number], "stopped")
                case Retire(slot):
                    self.retired.add(slot)

    @property
    def left_s(self) -> float:
        """Seconds until the deadline at the latest event; infinite if there is none."""
        return max(0.0, self.frame.deadline_s - self.at_s)

    def close(self) -> None:
        """Show what was assigned and not trained as waiting, when the run is complete."""
        self.closed = True
        for trial in self.trials:
            if trial.status == "running":
                self._end(trial, "waiting")

    @property
    def busy(self) -> set[int]:
        """The slots that are training."""
        return {trial.slot for trial in self.trials if trial.status == "running"}

    @property
    def unused(self) -> int:
        """The number of slots that can train but have nothing to do."""
        there = {slot for slot, node in enumerate(self.frame.slots) if node in self.up}
        return len(there - self.retired - self.busy)

    @property
    def best(self) -> int | None:
        """The trial with the best metric, the first among equals; None if no metric is a number."""
        measured = [number for number, trial in enumerate(self.trials) if not math.isnan(trial.best)]
        return max(measured, key=lambda number: self.trials[number].best, default=None)

    @property
    def fruitless(self) -> str:
        """The reason why a complete run has no best trial; empty if it has one."""
        count = len(self.trials)
        failed = sum(trial.status == "failed" for trial in self.trials)
        if failed == count:
            return f"all {count} trials failed, at last with {last_line(self.failures[-1].why)}"
        if self.best is not None:
            return ""
        if not self.reports and math.isfinite(self.frame.deadline_s):
            return (
                "no trial has reported until the deadline; give more time (population.deadline_s), or a "
                "smaller population.interval"
            )
        first = f"{failed} of {count} trials failed, and " if failed else ""
        return f"{first}all metrics are NaN, so no trial is the best; return a number from `evaluate`"

    @property
    def overhead_s_per_report(self) -> float | None:
        """(slots × (last report − first start) − seconds of training and evaluation) ÷ reports."""
        if not self.reports:
            return None
        whole_s = len(self.frame.slots) * (self.last_s - self.first_s)
        return (whole_s - self.computing_s) / self.reports

    def record(self) -> dict[str, Any]:
        """Return the status as plain values, as `--json` prints them."""
        best = self.best
        return {
            "trials": [self._trial(number) for number in range(len(self.trials))],
            "best": None if best is None else self._trial(best),
            "reports": self.reports,
            "clones": self.clones,
            "failures": len(self.failures),
            "failed": [failed._asdict() for failed in self.failures],
            "wall_s": self.at_s,
            **({} if math.isinf(self.frame.deadline_s) else {"deadline_s": self.frame.deadline_s}),
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
        trial.intervals -= 1
        if event.at_s > self.frame.deadline_s:  # it was under way, and does not count
            if trial.intervals < 1:
                self._end(trial, "waiting")
            return
        trial.steps += event.steps
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
        elif trial.intervals < 1:
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
        trial.status, trial.slot, trial.intervals = status, -1, 0


@contextmanager
def taken_in(file: Path, entry: JournalEntry) -> Iterator[None]:
    """Turn errors about an entry's content into an InputError that names the entry."""
    try:
        yield
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        what = f"entry {entry.number} ({entry.kind}) is malformed"
        raise InputError(f"{file}: {what} ({error!r}); {LOST}") from None


Observer = TypeVar("Observer")


def read_into(
    file: Path,
    begun: Callable[[Mapping[str, Any]], Observer],
    take: Callable[[Observer, JournalEntry], object] = follow,
    of: str = "a population",
) -> tuple[Observer, str]:
    """Return what `begun` makes of the first entry of a journal, after it took all others, and the phase.

    The phase is `running`, `complete` or `stopped`. Raises InputError if it is no journal of a run.
    """
    observer, phase = None, "stopped"
    for entry in read_journal(file):
        if entry.kind == BEGAN:
            observer = begun(entry.body)
        elif observer is None:
            break
        elif entry.kind == ENDED:
            phase = "complete"
        else:
            with taken_in(file, entry):
                take(observer, entry)
    if observer is None:
        raise InputError(f"{file}: not the journal of {of}; name the folder of a run")
    return observer, "running" if phase == "stopped" and has_owner(file) else phase


def read_status(file: Path) -> tuple[PopulationStatus, str]:
    """Return the status, and whether the run is `running`, `complete` or `stopped`."""
    status, phase = read_into(file, lambda body: PopulationStatus(parse_frame(body)))
    if phase == "complete":
        status.close()
    return status, phase


def _ledger(body: Mapping[str, Any]) -> Ledger:
    frame = parse_frame(body)
    cluster = Cluster.of_slots(tuple(Slot(node) for node in frame.slots), tuple(frame.nodes))
    return Ledger(frame.run, cluster, frame.hypers, frame.terms.target, deadline_s=frame.deadline_s)


def best_checkpoint(journal: Path) -> CheckpointInfo:
    """Return the checkpoint of the best report, the first among equals.

    Raises InputError if no trial has reported a number.
    """
    ledger, _ = read_into(journal, _ledger)
    if ledger.best is None:
        raise InputError(f"{journal}: no trial has reported a number, so none is best")
    return ledger.best


def read_best(paths: RunPaths) -> CheckpointContents:
    """Return the content of the best checkpoint of a run; raise InputError if it cannot be read."""
    try:
        return paths.checkpoints.read(best_checkpoint(paths.journal))
    except DamagedCheckpoint as error:
        raise InputError(f"{error}; bring it back, or train it again: rota run --retrain-best DIR") from None
