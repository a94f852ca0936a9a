"""Curves: the course of training, interval by interval, at each setting of the hyper-parameters."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rota.core.arrays import Floats
from rota.core.errors import InputError
from rota.core.grouped import grouped
from rota.core.table import Table
from rota.recordings.folder import CsvSheet, Provenance, facts_of, read_about, write_recording
from rota.recordings.profile import unit_of

SHAPE = "curves"
ROWS = "curves.csv"
USUAL = ("loss", "accuracy")
"""Metrics for which every recording of curves has a column."""

Plain = int | float | str


class CurvePoint(NamedTuple):
    """The measurements at the end of an interval."""

    number: int
    """Number of the interval, from 0."""
    steps: int
    """Steps since the start of training."""
    seconds: float
    """Seconds that this interval took; NaN if not measured."""
    metrics: Mapping[str, float]


@dataclass(frozen=True, slots=True, eq=False)
class CurveSetting:
    """One setting of the hyper-parameters and its run, as arrays over the intervals."""

    name: str
    hyper: Mapping[str, Plain]
    device: str
    seed: int
    interval: NDArray[np.int64]
    steps: NDArray[np.int64]
    """Steps since the start of training."""
    seconds: Floats
    """Seconds that each interval took."""
    metrics: Mapping[str, Floats]

    def __len__(self) -> int:
        return len(self.interval)

    @classmethod
    def of(
        cls, name: str, hyper: Mapping[str, Plain], device: str, seed: int, intervals: Sequence[CurvePoint]
    ) -> "CurveSetting":
        """Return a setting from its points; missing metrics are NaN."""
        names = dict.fromkeys((*USUAL, *(metric for each in intervals for metric in each.metrics)))
        metrics = {m: np.array([each.metrics.get(m, math.nan) for each in intervals], float) for m in names}
        numbers = np.array([each.number for each in intervals], np.int64)
        steps = np.array([each.steps for each in intervals], np.int64)
        seconds = np.array([each.seconds for each in intervals], float)
        return cls(name, dict(hyper), device, seed, numbers, steps, seconds, metrics)


@dataclass(frozen=True, slots=True, eq=False)
class Curves:
    """Settings of the same hyper-parameters, of one model on one data set."""

    model: str
    data: str
    hyper: tuple[str, ...]
    """Names of the hyper-parameters."""
    intervals: int
    """Number of intervals that each setting should have; 0 if not known."""
    settings: Mapping[str, CurveSetting]
    provenance: Provenance
    planned: tuple[str, ...] = ()
    """Settings that should be there; empty if not known."""
    failed: Mapping[str, Mapping[str, Plain]] = field(default_factory=dict)
    """Settings that failed before the last interval → their hyper-parameters."""
    metrics: tuple[str, ...] = USUAL
    details: Mapping[str, Any] = field(default_factory=dict)
    """Further facts, as plain values."""

    def __post_init__(self) -> None:
        for name, hyper in self.failed.items():
            if set(hyper) != set(self.hyper):
                found = ", ".join(hyper) or "no hyper-parameters"
                raise InputError(
                    f"curves of {self.model}: failed setting {name!r} has {found}; expected {self.hyper}"
                )
        for name, setting in self.settings.items():
            if setting.name != name or set(setting.hyper) != set(self.hyper):
                found = f"{setting.name!r} with {', '.join(setting.hyper) or 'no hyper-parameters'}"
                raise InputError(
                    f"curves of {self.model}: setting {name!r} is {found}; expected {self.hyper}"
                )
            if not set(setting.metrics) <= {*USUAL, *self.metrics}:
                more = ", ".join(sorted(set(setting.metrics) - {*USUAL, *self.metrics}))
                raise InputError(
                    f"curves of {self.model}: setting {name!r} also has {more}; name it in metrics"
                )

    @property
    def main_metric(self) -> str:
        """The accuracy, or else the first metric that was measured."""
        for metric in ("accuracy", *self.metrics):
            found = (setting.metrics.get(metric) for setting in self.settings.values())
            if any(values is not None and not np.isnan(values).all() for values in found):
                return metric
        return "accuracy"

    @property
    def tried(self) -> tuple[Mapping[str, Plain], ...]:
        """The hyper-parameters of all settings, including failed ones."""
        found = {name: setting.hyper for name, setting in self.settings.items()}
        return tuple({**found, **self.failed}.values())

    def missing(self) -> tuple[str, ...]:
        """Return the settings that are absent or incomplete, although they did not fail."""
        names = dict.fromkeys((*self.planned, *self.settings))
        short = (n for n in names if n not in self.settings or len(self.settings[n]) < self.intervals)
        return tuple(name for name in short if name not in self.failed)


def write_curves(folder: Path, curves: Curves) -> None:
    """Write curves, complete or not; replace what is there."""
    metrics = tuple(dict.fromkeys((*USUAL, *curves.metrics)))
    columns = _columns(curves.hyper, metrics)
    what = facts_of(curves, _CurvesFacts) | {"metrics": metrics}
    if not curves.failed:
        del what["failed"]
    rows = (row for setting in curves.settings.values() for row in _written(setting, curves.hyper, metrics))
    write_recording(folder, SHAPE, what, curves.provenance, {ROWS: CsvSheet(columns, rows)})


def read_curves(folder: Path) -> Curves:
    """Return the curves in a folder."""
    about = read_about(folder, SHAPE)
    table, what = about.table(ROWS), about.facts(_CurvesFacts)
    table.require(list(_columns(what.hyper, what.metrics)))
    settings = _settings(table, what.hyper, what.metrics)
    return Curves(**facts_of(what, _CurvesFacts), settings=settings, provenance=about.provenance)


@dataclass(frozen=True, slots=True)
class _CurvesFacts:
    """The facts on curves in `recording.json`."""

    model: str
    data: str
    hyper: tuple[str, ...]
    intervals: int
    planned: tuple[str, ...]
    metrics: tuple[str, ...]
    details: dict[str, object]
    failed: dict[str, dict[str, Plain]] = field(default_factory=dict)


def _columns(hyper: Sequence[str], metrics: Sequence[str]) -> dict[str, str]:
    before = {"setting": "", "device": "", "seed": "", "interval": "", "steps": "", "seconds": "s"}
    free = (*hyper, *metrics)
    wrong = [name for name in free if name in before or free.count(name) > 1]
    if wrong:
        raise InputError(f"curves: two columns would be called {wrong[0]!r}; name one of them differently")
    middle = {name: unit_of(name) for name in hyper}
    return {"setting": "", **middle, **before, **{name: unit_of(name) for name in metrics}}


def _written(
    setting: CurveSetting, hyper: Sequence[str], metrics: Sequence[str]
) -> Iterable[tuple[Plain, ...]]:
    before = (setting.name, *(setting.hyper[name] for name in hyper), setting.device, setting.seed)
    empty = np.full(len(setting), math.nan)
    columns = (setting.interval, setting.steps, setting.seconds)
    values = (*columns, *(setting.metrics.get(name, empty) for name in metrics))
    return ((*before, *row) for row in zip(*(each.tolist() for each in values), strict=True))


def _settings(table: Table, hyper: Sequence[str], metrics: Sequence[str]) -> dict[str, CurveSetting]:
    names = table.texts("setting")
    given = {name: table.optional(name) for name in hyper}
    devices, seeds = table.optional("device"), table.wholes("seed").astype(int).tolist()
    interval, steps = (table.wholes(name).astype(np.int64) for name in ("interval", "steps"))
    seconds, values = table.floats("seconds"), {name: table.floats(name) for name in metrics}
    rows = grouped((name, row) for row, name in enumerate(names))
    return {
        name: CurveSetting(
            name,
            {key: _plain(texts[at[0]]) for key, texts in given.items()},
            devices[at[0]],
            seeds[at[0]],
            interval[at],
            steps[at],
            seconds[at],
            {metric: column[at] for metric, column in values.items()},
        )
        for name, at in rows.items()
    }


def _plain(text: str) -> Plain:
    """Return an integer, a number, or else the text itself."""
    for convert in (int, float):
        try:
            return convert(text)
        except ValueError:
            continue
    return text
