"""Metrics of a population: how slots spent their time, and comparisons with other tools."""

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import fmean, median
from typing import NamedTuple

from rota.config.bind import facts
from rota.core.cluster import Cluster
from rota.core.errors import InputError
from rota.core.files import read_json, write_file
from rota.core.population.events import (
    Assigned,
    Event,
    Idled,
    Joined,
    NodeFailed,
    Reported,
    Retired,
    TrialFailed,
)
from rota.core.text import aligned

LEAST_S = 1e-9
"""Lower bound if nothing was ever reported: others divide by it."""


class MeasuredBound:
    """The lower bound of the work done: no slot ever waits, and no trial is on two slots at once."""

    def __init__(self, slots: int) -> None:
        self._slots = slots
        self._trials: dict[int, float] = {}

    def see(self, event: Event) -> None:
        """Count an event."""
        if isinstance(event, Reported):
            computing_s = event.ended_s - event.began_s - event.moved_s
            self._trials[event.trial] = self._trials.get(event.trial, 0.0) + computing_s

    @property
    def seconds(self) -> float:
        """The lower bound in seconds."""
        return max(sum(self._trials.values()) / self._slots, *self._trials.values(), LEAST_S)


@dataclass(slots=True)
class SlotUse:
    """How one slot spent its time."""

    there_s: float = 0.0
    """Seconds in which its node was up and the slot not retired."""
    computing_s: float = 0.0
    communicating_s: float = 0.0
    """Seconds of dispatch and of transferring checkpoints."""
    lost_s: float = 0.0
    """Seconds of work that had to be repeated, because the node or the trial failed."""
    lists: int = 0
    """Number of assignments."""
    parts: int = 0
    """Number of intervals trained."""

    @property
    def idle_s(self) -> float:
        """The seconds in which the slot was there and did nothing."""
        return max(0.0, self.there_s - self.computing_s - self.communicating_s - self.lost_s)

    @property
    def idle_share(self) -> float:
        """The idle share of the time in which the slot was there."""
        return self.idle_s / self.there_s if self.there_s > 0.0 else 0.0


@dataclass(slots=True)
class _Watch:
    """The state of a slot between two events."""

    use: SlotUse = field(default_factory=SlotUse)
    since_s: float | None = None
    """When the slot last became available; None while it is not."""
    busy_since_s: float | None = None
    """When its present work began; None while it is idle."""
    retires: bool = False
    """Whether it retires once it is idle."""

    def leave(self, at_s: float) -> None:
        if self.since_s is not None:
            self.use.there_s += at_s - self.since_s
            self.since_s = None

    def join(self, at_s: float) -> None:
        if self.since_s is None and not self.retires:
            self.since_s = at_s

    def lose(self, at_s: float, busy_since_s: float | None) -> None:
        """Count the present work as lost; what follows it began at `busy_since_s`."""
        if self.busy_since_s is not None:
            self.use.lost_s += at_s - self.busy_since_s
            self.busy_since_s = busy_since_s

    def follow(self, event: Event) -> None:
        """Follow an event of the slot, or of its node."""
        match event:
            case Joined():
                self.join(event.at_s)
            case NodeFailed():
                self.lose(event.at_s, None)
                self.leave(event.at_s)
            case TrialFailed():
                self.lose(event.at_s, event.at_s)
            case Assigned():  # a retired slot that gets an assignment is available again
                self.retires = False
                self.join(event.at_s)
                self.use.lists += 1
                self.busy_since_s = event.at_s
            case Reported():
                self.use.parts += 1
                self.use.communicating_s += event.moved_s
                self.use.computing_s += event.ended_s - event.began_s - event.moved_s
                self.busy_since_s = event.at_s
            case Idled() | Retired():
                self.retires |= isinstance(event, Retired)
                self.busy_since_s = None if isinstance(event, Idled) else self.busy_since_s
                if self.retires and self.busy_since_s is None:
                    self.leave(event.at_s)


class Usage:
    """The use of each slot, counted event by event from the beginning of a run."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._watches = [_Watch() for _ in cluster.all_slots]

    def see(self, event: Event) -> None:
        """Count an event."""
        if isinstance(event, NodeFailed | Joined):
            for watch, slot in zip(self._watches, self._cluster.all_slots, strict=True):
                if slot.node == event.node:
                    watch.follow(event)
        elif isinstance(event, Assigned | Reported | Idled | TrialFailed | Retired):
            self._watches[event.slot].follow(event)

    def until(self, end_s: float, *, cut: bool = False) -> list[SlotUse]:
        """Return the use of each slot until the end of the run; if it was cut, what was under way is lost."""
        for watch in self._watches:
            if cut:
                watch.lose(end_s, None)
            watch.leave(end_s)
        return [watch.use for watch in self._watches]


FILE = "compare.json"
FORMAT = 1
AGAIN = "compare again: bash scripts/compare-tune.sh"


class ReportedInterval(NamedTuple):
    """An interval of a trial, and the metric at its end."""

    began_s: float
    ended_s: float
    """When it had been evaluated."""
    steps: int
    metric: float
    process: int
    """Number of the process that trained it."""
    fresh: int | None = None
    """The trial, if it is its first interval; None if a checkpoint was continued."""


@dataclass(frozen=True, slots=True)
class SideRun:
    """One run of one side of a comparison."""

    side: str
    seed: int
    slots: int
    parts: Sequence[ReportedInterval]
    finals: Sequence[float]
    """Last reported metric of each trial."""
    process_s: float
    """Seconds from the start of its process to the end, start-up and clean-up included."""
    cpu_s: float
    """CPU seconds of its process and all that it started."""

    def __post_init__(self) -> None:
        if not self.parts or not self.finals or not self.training_s > 0.0:
            raise InputError(f"{self.side}, seed {self.seed}: a run without reports")
        if min(part.ended_s for part in self.parts) <= self.first_s:
            raise InputError(f"{self.side}, seed {self.seed}: a report that came before any training")

    @property
    def reports(self) -> int:
        """The number of reports."""
        return len(self.parts)

    @property
    def steps(self) -> int:
        """The steps trained, over all trials."""
        return sum(part.steps for part in self.parts)

    @property
    def first_s(self) -> float:
        """When the first interval began."""
        return min(part.began_s for part in self.parts)

    @property
    def training_s(self) -> float:
        """The seconds from the first start to the last report."""
        return max(part.ended_s for part in self.parts) - self.first_s

    @property
    def work_s(self) -> float:
        """The seconds of training and evaluation, added up over the slots."""
        return sum(part.ended_s - part.began_s for part in self.parts)

    @property
    def overhead_s(self) -> float:
        """The seconds per report in which slots did not train or evaluate."""
        return (self.slots * self.training_s - self.work_s) / self.reports

    @property
    def used(self) -> float:
        """The mean number of slots in use: each process from its first interval to its last."""
        return sum(last_s - first_s for first_s, last_s in self._spans()) / self.training_s

    @property
    def gap_s(self) -> float | None:
        """The mean seconds between two intervals of a process; None if each trained only one."""
        spans = self._spans()
        pairs = self.reports - len(spans)
        return (sum(last_s - first_s for first_s, last_s in spans) - self.work_s) / pairs if pairs else None

    def _spans(self) -> list[tuple[float, float]]:
        found: dict[int, tuple[float, float]] = {}
        for part in self.parts:
            first_s, last_s = found.get(part.process, (part.began_s, part.ended_s))
            found[part.process] = min(first_s, part.began_s), max(last_s, part.ended_s)
        return list(found.values())

    @property
    def best(self) -> float:
        """The best metric of all reports."""
        return max(part.metric for part in self.parts)

    @property
    def final(self) -> float:
        """The mean of the last metrics of all trials."""
        return fmean(self.finals)

    @property
    def processes(self) -> int:
        """The number of processes that trained."""
        return len({part.process for part in self.parts})

    @property
    def beginnings(self) -> dict[int, float]:
        """The metric of each trial after its first interval: equal on all sides if they train the same."""
        return {part.fresh: part.metric for part in self.parts if part.fresh is not None}


@dataclass(frozen=True, slots=True)
class Sides:
    """All runs of a comparison."""

    about: str
    """What was trained, and on what."""
    command: str
    """Command that compared them."""
    runs: Sequence[SideRun]

    def __post_init__(self) -> None:
        if not self.runs:
            raise InputError("runs: there are none")

    @property
    def names(self) -> list[str]:
        """The sides, in order of first appearance."""
        return list(dict.fromkeys(run.side for run in self.runs))

    def of(self, side: str) -> list[SideRun]:
        """Return the runs of one side."""
        return [run for run in self.runs if run.side == side]

    @property
    def begin_alike(self) -> bool:
        """Whether each trial had the same metric after its first interval on every side, seed by seed."""
        found: dict[int, dict[int, float]] = {}
        return all(run.beginnings == found.setdefault(run.seed, run.beginnings) for run in self.runs)


class Spread(NamedTuple):
    """The median and the range of several values."""

    median: float
    least: float
    most: float


def spread(values: Iterable[float]) -> Spread:
    """Return the median and the range of some values."""
    found = list(values)
    return Spread(median(found), min(found), max(found))


Say = Callable[[float], str]


class Measure(NamedTuple):
    """A line of the table."""

    name: str
    value: Callable[[SideRun], float | None]
    say: Say


def _milli(seconds: float | None) -> float | None:
    return None if seconds is None else 1000 * seconds


MEASURES = (
    Measure("first start to last report, s", lambda run: run.training_s, "{:.2f}".format),
    Measure("the whole process, s", lambda run: run.process_s, "{:.1f}".format),
    Measure("training and evaluating, s", lambda run: run.work_s, "{:.2f}".format),
    Measure("overhead per report, ms", lambda run: 1000 * run.overhead_s, "{:,.1f}".format),
    Measure("… slots in use, on average", lambda run: run.used, "{:.2f}".format),
    Measure("… between intervals of a process, ms", lambda run: _milli(run.gap_s), "{:,.1f}".format),
    Measure("reports", lambda run: run.reports, "{:.0f}".format),
    Measure("steps trained", lambda run: run.steps, "{:,.0f}".format),
    Measure("best accuracy", lambda run: run.best, "{:.1%}".format),
    Measure("mean accuracy in the end", lambda run: run.final, "{:.1%}".format),
    Measure("CPU seconds", lambda run: run.cpu_s, "{:.1f}".format),
    Measure("processes that trained", lambda run: run.processes, "{:.0f}".format),
)


def table(sides: Sides) -> str:
    """Return a table with a column per side: medians, with ranges in brackets."""
    rows = [["", *sides.names]]
    for measure in MEASURES:
        rows.append([measure.name, *(_said(measure, sides.of(side)) for side in sides.names)])
    return "\n".join(aligned(rows, left=len(rows[0])))


def _said(measure: Measure, runs: Sequence[SideRun]) -> str:
    values = [value for value in map(measure.value, runs) if value is not None]
    if not values:
        return "–"
    middle, least, most = map(measure.say, spread(values))
    return middle if least == most else f"{middle} ({least} to {most})"


def write_sides(folder: Path, sides: Sides) -> None:
    """Write a comparison to `compare.json`."""
    runs = [asdict(run) for run in sides.runs]
    found = {"format": FORMAT, "about": sides.about, "command": sides.command, "runs": runs}
    write_file(folder / FILE, json.dumps(found, allow_nan=False) + "\n")


def read_sides(folder: Path) -> Sides:
    """Read a comparison from `compare.json`. Raises InputError if it is damaged or of another format."""
    file = folder / FILE
    found = read_json(file, AGAIN)
    if isinstance(found, dict) and found.get("format") != FORMAT:
        raise InputError(f"{file}: format {found.get('format')!r}, this version reads {FORMAT}; {AGAIN}")
    return facts(Sides, found, file, AGAIN, others=True)
