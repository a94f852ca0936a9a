"""Trials that train as recorded curves say."""

from dataclasses import dataclass
from math import inf, isnan, nan
from typing import Any

import numpy as np

from rota.core.arrays import Floats
from rota.core.errors import ConfigError, InputError, unknown
from rota.core.population.decisions import Hyper
from rota.recordings.curve import Curves, Setting
from rota.replay.population.grid import Grid

BATCH = "batch_size"


@dataclass(frozen=True, slots=True)
class Liberties:
    """What recordings do not say."""

    metric: str = ""
    """How good a trial is; accuracy, or else the first that was recorded, if not given. A loss counts
    negatively: more is better."""
    size_mb: float = 0.0
    """Of a checkpoint."""
    growth: float = 1.25
    """How many times as long a step takes, and as large a checkpoint is, with each change of a network."""
    gain: float = 0.0
    """What each change of a network adds to the metric."""

    def __post_init__(self) -> None:
        if not self.size_mb >= 0.0 or not self.growth > 0.0 or isnan(self.gain):
            raise ConfigError(
                f"size_mb is {self.size_mb}, growth {self.growth}, gain {self.gain}; "
                "give 0 or more, above 0, and a number"
            )


@dataclass(slots=True)
class Progress:
    """Where a trial is on which curve."""

    curve: Floats
    changes: int = 0
    steps: float = 0.0
    metric: float = nan


class Recorded:
    """Metrics and costs of trials from curves; how they are found between settings is said in `grid.py`.

    - Between the ends of recorded intervals a metric is on the straight line; before the first it is not
      known, after the last it is held: a rehearsal claims nothing that was not reached.
    - A setting at which training failed at once has the worst metric of all that were recorded.
    - A trial that is cloned, or goes on with other hyper-parameters, goes on along their curve from the
      first interval whose metric is not below the donor's, or else from the last.
    - Trials of one model, batch size and number of changes are of one kind. A step takes the median of what
      was recorded with the batch size; with one in between it is on the straight line, below the smallest as
      with that, above the largest in proportion. Hyper-parameters that were not recorded have no effect.
    """

    def __init__(self, curves: Curves, liberties: Liberties | None = None) -> None:
        self._curves, self._free = curves, liberties or Liberties()
        self._metric = self._free.metric or curves.main_metric
        settings = list(curves.settings.values())
        if not settings:
            raise InputError(f"curves of {curves.model}: no settings were recorded; record some")
        if not any(self._metric in setting.metrics for setting in settings):
            raise InputError(
                unknown(f"metric in the curves of {curves.model}:", self._metric, curves.metrics)
            )
        self._steps = np.unique(np.concatenate([setting.steps for setting in settings])).astype(float)
        self._grid = Grid(curves.hyper, _means(self._curves_of(settings), curves.hyper))
        self._batches, self._step_s = _paces(curves.model, settings)
        self._kinds: dict[str, tuple[float, int]] = {}
        self._found: dict[tuple[Any, ...], Floats] = {}
        self._trials: dict[int, Progress] = {}

    def kind(self, hyper: Hyper, changes: tuple[str, ...]) -> str:
        batch = float(hyper.get(BATCH, self._batches[0]))
        words = [self._curves.model, f"{batch:g}"] if BATCH in self._curves.hyper else [self._curves.model]
        name = " ".join([*words, *([f"+{len(changes)}"] if changes else [])])
        self._kinds[name] = batch, len(changes)
        return name

    def step_s(self, kind: str) -> float:
        batch, changes = self._kinds[kind]
        above = max(1.0, batch / self._batches[-1])
        base_s = float(np.interp(batch, self._batches, self._step_s))
        return float(base_s * above * self._free.growth**changes)

    def size_mb(self, kind: str) -> float:
        return float(self._free.size_mb * self._free.growth ** self._kinds[kind][1])

    def begin(self, trial: int, hyper: Hyper) -> None:
        self._trials[trial] = Progress(self.curve(hyper))

    def train(self, trial: int, steps: int) -> float:
        progress = self._trials[trial]
        progress.steps += steps
        progress.metric = self._at(progress)
        return progress.metric

    def clone(self, trial: int, donor: int, hyper: Hyper, changes: tuple[str, ...]) -> None:
        giver = self._trials[donor]
        progress = Progress(self.curve(hyper), len(changes), giver.steps, giver.metric)
        if not isnan(giver.metric):
            reached = np.flatnonzero(progress.curve + self._free.gain * len(changes) >= giver.metric)
            progress.steps = float(self._steps[reached[0] if len(reached) else -1])
        self._trials[trial] = progress

    def curve(self, hyper: Hyper) -> Floats:
        """The metric at the end of each recorded interval, with these hyper-parameters."""
        missing = [name for name in self._curves.hyper if name not in hyper]
        if missing:
            needed = ", ".join(self._curves.hyper)
            raise InputError(f"a trial has no {missing[0]}; the curves of {self._curves.model} need {needed}")
        setting = tuple(hyper[name] for name in self._curves.hyper)
        if setting not in self._found:
            self._found[setting] = self._grid.curve(setting)
        return self._found[setting]

    def _curves_of(self, settings: list[Setting]) -> list[tuple[Hyper, Floats]]:
        """Hyper-parameters and curve of each setting."""
        found: list[tuple[Hyper, Floats]] = [(each.hyper, self._goodness(each)) for each in settings]
        worst = np.full(len(self._steps), min(np.nanmin(curve, initial=inf) for _, curve in found))
        at_once = self._curves.failed.keys() - self._curves.settings.keys()
        return found + [(self._curves.failed[name], worst) for name in sorted(at_once)]

    def _goodness(self, setting: Setting) -> Floats:
        """The metric of a setting, more being better, at the steps that all settings are put to."""
        values = setting.metrics.get(self._metric, np.full(len(setting), nan))
        sign = -1.0 if self._metric.endswith("loss") else 1.0
        return np.asarray(np.interp(self._steps, setting.steps, sign * values), float)

    def _at(self, progress: Progress) -> float:
        if progress.steps < self._steps[0]:
            return nan  # how good it was by then was not recorded
        value = float(np.interp(progress.steps, self._steps, progress.curve))
        return value + self._free.gain * progress.changes


def _means(curves: list[tuple[Hyper, Floats]], names: tuple[str, ...]) -> dict[tuple[Any, ...], Floats]:
    """Hyper-parameters → the mean of what was recorded with them."""
    found: dict[tuple[Any, ...], list[Floats]] = {}
    for hyper, curve in curves:
        found.setdefault(tuple(hyper[name] for name in names), []).append(curve)
    return {hyper: np.mean(curves, axis=0) for hyper, curves in found.items()}


def _paces(model: str, settings: list[Setting]) -> tuple[Floats, Floats]:
    """Batch sizes, and seconds per step with each."""
    found: dict[float, list[Floats]] = {}
    for setting in settings:
        each = setting.seconds / np.diff(setting.steps, prepend=0)
        found.setdefault(float(setting.hyper.get(BATCH, 1)), []).append(each[~np.isnan(each)])
    paces = {batch: np.concatenate(each) for batch, each in sorted(found.items())}
    if not all(len(each) for each in paces.values()):
        raise InputError(
            f"curves of {model}: seconds were not recorded for every batch size; record them again"
        )
    return np.array(list(paces)), np.array([np.median(each) for each in paces.values()])
