"""The same population under several schedulers, its sides: what each of them took, and what came of it."""

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean, median
from typing import NamedTuple

from rota.config.bind import facts
from rota.core.atomic import written
from rota.core.errors import InputError
from rota.core.facts import parsed

FILE = "compare.json"
FORMAT = 1
AGAIN = "compare again: bash scripts/compare-tune.sh"


class Part(NamedTuple):
    """What was trained between two reports, and how good it was then."""

    began_s: float
    ended_s: float
    """When it had been evaluated."""
    steps: int
    metric: float
    process: int
    """In which it was trained."""
    fresh: int | None = None
    """The trial, where it was its first part; nothing where a checkpoint went on."""


@dataclass(frozen=True, slots=True)
class SideRun:
    """One run of one side."""

    side: str
    seed: int
    slots: int
    parts: Sequence[Part]
    finals: Sequence[float]
    """How good each trial was when it last reported."""
    process_s: float
    """From the start of its process to the end: start-up and clearing up, too."""
    cpu_s: float
    """Of its process and all that it started."""

    def __post_init__(self) -> None:
        if not self.parts or not self.finals or not self.training_s > 0.0:
            raise InputError(f"{self.side}, seed {self.seed}: a run without reports")
        if min(part.ended_s for part in self.parts) <= self.first_s:
            raise InputError(f"{self.side}, seed {self.seed}: a report that came before any training")

    @property
    def reports(self) -> int:
        return len(self.parts)

    @property
    def steps(self) -> int:
        return sum(part.steps for part in self.parts)

    @property
    def first_s(self) -> float:
        return min(part.began_s for part in self.parts)

    @property
    def training_s(self) -> float:
        """From the first start to the last report."""
        return max(part.ended_s for part in self.parts) - self.first_s

    @property
    def work_s(self) -> float:
        """Training and evaluating, added up over the slots."""
        return sum(part.ended_s - part.began_s for part in self.parts)

    @property
    def overhead_s(self) -> float:
        """Per report: what slots did besides work."""
        return (self.slots * self.training_s - self.work_s) / self.reports

    @property
    def used(self) -> float:
        """Slots in use on average: each process from its first part to its last."""
        return sum(last_s - first_s for first_s, last_s in self._spans()) / self.training_s

    @property
    def gap_s(self) -> float | None:
        """Between two parts of the same process, on average; None if each trained only one."""
        spans = self._spans()
        pairs = self.reports - len(spans)
        return (sum(last_s - first_s for first_s, last_s in spans) - self.work_s) / pairs if pairs else None

    def _spans(self) -> list[tuple[float, float]]:
        """From when to when each process trained."""
        found: dict[int, tuple[float, float]] = {}
        for part in self.parts:
            first_s, last_s = found.get(part.process, (part.began_s, part.ended_s))
            found[part.process] = min(first_s, part.began_s), max(last_s, part.ended_s)
        return list(found.values())

    @property
    def best(self) -> float:
        return max(part.metric for part in self.parts)

    @property
    def final(self) -> float:
        return fmean(self.finals)

    @property
    def processes(self) -> int:
        """In which anything was trained."""
        return len({part.process for part in self.parts})

    @property
    def beginnings(self) -> dict[int, float]:
        """Trial → how good it was after its first part: the same on all sides, if they train the same."""
        return {part.fresh: part.metric for part in self.parts if part.fresh is not None}


@dataclass(frozen=True, slots=True)
class Sides:
    """All runs of a comparison."""

    about: str
    """What was trained, and on what."""
    command: str
    """That compared them."""
    runs: Sequence[SideRun]

    def __post_init__(self) -> None:
        if not self.runs:
            raise InputError("runs: there are none")

    @property
    def names(self) -> list[str]:
        return list(dict.fromkeys(run.side for run in self.runs))

    def of(self, side: str) -> list[SideRun]:
        return [run for run in self.runs if run.side == side]

    @property
    def begin_alike(self) -> bool:
        """Whether each trial was as good after its first part on every side, seed by seed."""
        found: dict[int, dict[int, float]] = {}
        return all(run.beginnings == found.setdefault(run.seed, run.beginnings) for run in self.runs)


class Spread(NamedTuple):
    """One number of several runs."""

    median: float
    least: float
    most: float


def spread(values: Iterable[float]) -> Spread:
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
    Measure("… between parts in a process, ms", lambda run: _milli(run.gap_s), "{:,.1f}".format),
    Measure("reports", lambda run: run.reports, "{:.0f}".format),
    Measure("steps trained", lambda run: run.steps, "{:,.0f}".format),
    Measure("best accuracy", lambda run: run.best, "{:.1%}".format),
    Measure("mean accuracy in the end", lambda run: run.final, "{:.1%}".format),
    Measure("CPU seconds", lambda run: run.cpu_s, "{:.1f}".format),
    Measure("processes that trained", lambda run: run.processes, "{:.0f}".format),
)


def table(sides: Sides) -> str:
    """A column per side, a line per measure: medians, and in brackets from the least to the most."""
    rows = [["", *sides.names]]
    for measure in MEASURES:
        rows.append([measure.name, *(_said(measure, sides.of(side)) for side in sides.names)])
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join("   ".join(map(str.ljust, row, widths)).rstrip() for row in rows)


def _said(measure: Measure, runs: Sequence[SideRun]) -> str:
    values = [value for value in map(measure.value, runs) if value is not None]
    if not values:
        return "–"
    middle, least, most = map(measure.say, spread(values))
    return middle if least == most else f"{middle} ({least} to {most})"


def write_sides(folder: Path, sides: Sides) -> None:
    """`compare.json`."""
    runs = [asdict(run) for run in sides.runs]
    found = {"format": FORMAT, "about": sides.about, "command": sides.command, "runs": runs}
    with written(folder / FILE) as stream:
        stream.write(json.dumps(found, allow_nan=False).encode() + b"\n")


def read_sides(folder: Path) -> Sides:
    file = folder / FILE
    try:
        found = parsed(file.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"{file}: cannot be read ({error}); {AGAIN}") from None
    if isinstance(found, dict) and found.get("format") != FORMAT:
        raise InputError(f"{file}: format {found.get('format')!r}, this version reads {FORMAT}; {AGAIN}")
    return facts(Sides, found, file, AGAIN, others=True)
