"""Metrics and costs of simulated trials: equal ones, and those of recorded curves."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import inf, isnan, nan
from typing import Any

import numpy as np

from rota.core.arrays import Floats
from rota.core.errors import ConfigError, InputError, unknown
from rota.core.population.events import Hyper
from rota.core.population.outcomes import ALONG_CURVES, Outcomes
from rota.recordings.curve import Curves, CurveSetting


class Equal:
    """Trials of equal cost, whose metric is not known."""

    def __init__(self, step_s: float = 1.0, size_mb: float = 0.0) -> None:
        self._step_s, self._size_mb = step_s, size_mb
        self._outcomes = Outcomes()

    @property
    def outcomes(self) -> Outcomes:
        return self._outcomes

    def kind(self, hyper: Hyper, changes: tuple[str, ...]) -> str:
        return "equal"

    def step_s(self, kind: str) -> float:
        return self._step_s

    def size_mb(self, kind: str) -> float:
        return self._size_mb

    def begin(self, trial: int, hyper: Hyper) -> None:
        pass

    def train(self, trial: int, steps: int) -> float:
        return nan

    def clone(self, trial: int, donor: int, hyper: Hyper, changes: tuple[str, ...]) -> None:
        pass


FOURFOLD = 4.0


@dataclass(frozen=True, slots=True)
class HyperAxis:
    """The recorded values of a hyper-parameter, and their positions on its scale."""

    name: str
    values: tuple[Any, ...]
    scale: str
    """Scale: `log`, `momentum`, `linear` or `words`."""
    marks: Floats

    @classmethod
    def of(cls, name: str, recorded: Sequence[Any]) -> "HyperAxis":
        """Return the axis of a hyper-parameter with these recorded values."""
        values = tuple(sorted(set(recorded), key=lambda value: (isinstance(value, str), value)))
        scale = _scale(name, values)
        marks = range(len(values)) if scale == "words" else [_mark(scale, value) for value in values]
        return cls(name, values, scale, np.array(marks, float))

    def around(self, value: Any) -> list[tuple[int, float]]:
        """Return the positions of the recorded values on both sides, or of an equal one, with weights."""
        if value in self.values:
            return [(self.values.index(value), 1.0)]
        at = float(np.interp(self.mark(value), self.marks, np.arange(len(self.marks))))
        low = math.floor(at)
        return [(low, 1.0 - (at - low)), (low + 1, at - low)] if at > low else [(low, 1.0)]

    def mark(self, value: Any) -> float:
        """Return the position of a value on the scale, within its ends."""
        if self.scale == "words":
            if value not in self.values:
                raise InputError(unknown(f"{self.name} in the curves:", str(value), map(str, self.values)))
            return float(self.values.index(value))
        if isinstance(value, str) or math.isnan(value):
            raise InputError(f"{self.name} is {value!r}; it must be a number, as in the curves")
        return _mark(self.scale, min(max(value, self.values[0]), self.values[-1]))


class CurveGrid:
    """Curves recorded at settings of hyper-parameters, interpolated at any setting."""

    def __init__(self, names: Sequence[str], recorded: Mapping[tuple[Any, ...], Floats]) -> None:
        settings = list(recorded)
        self.axes = [HyperAxis.of(name, [each[k] for each in settings]) for k, name in enumerate(names)]
        self._curves = {self._at(setting): curve for setting, curve in recorded.items()}
        self._places = {at: self._place(at) for at in self._curves}
        full = math.prod(len(axis.values) for axis in self.axes)
        self.scattered = len(self._curves) * 2 < full

    def curve(self, setting: Sequence[Any]) -> Floats:
        """Return the curve at these values of the hyper-parameters, in the order of the axes."""
        if self.scattered:
            return self._curves[self._nearest(np.array([*map(HyperAxis.mark, self.axes, setting)]))]
        corners = list(product(*map(HyperAxis.around, self.axes, setting)))
        if len(corners) == 1:
            return self._node(tuple(at for at, _ in corners[0]))
        weights = [math.prod(weight for _, weight in corner) for corner in corners]
        curves = [self._node(tuple(at for at, _ in corner)) for corner in corners]
        return np.tensordot(np.array(weights), np.array(curves), axes=1)

    def _at(self, setting: Sequence[Any]) -> tuple[int, ...]:
        return tuple(axis.values.index(value) for axis, value in zip(self.axes, setting, strict=True))

    def _place(self, at: Sequence[int]) -> Floats:
        return np.array([axis.marks[k] for axis, k in zip(self.axes, at, strict=True)])

    def _node(self, at: tuple[int, ...]) -> Floats:
        """Return the curve recorded at a grid point, or an interpolated one."""
        if at in self._curves:
            return self._curves[at]
        lines = [line for axis in range(len(at)) if (line := self._between(at, axis)) is not None]
        return np.mean(lines, axis=0) if lines else self._curves[self._nearest(self._place(at))]

    def _between(self, at: tuple[int, ...], axis: int) -> Floats | None:
        """Return the curve interpolated between the nearest recorded settings on both sides along an axis."""
        marks = self.axes[axis].marks
        if self.axes[axis].scale == "words":
            return None
        before = self._next(at, axis, range(at[axis] - 1, -1, -1))
        after = self._next(at, axis, range(at[axis] + 1, len(marks)))
        if before is None or after is None:
            return None
        low, here, high = (float(marks[each[axis]]) for each in (before, at, after))
        weight = (here - low) / (high - low)
        return self._curves[before] * (1.0 - weight) + self._curves[after] * weight

    def _next(self, at: tuple[int, ...], axis: int, positions: range) -> tuple[int, ...] | None:
        along = ((*at[:axis], k, *at[axis + 1 :]) for k in positions)
        return next((each for each in along if each in self._curves), None)

    def _nearest(self, place: Floats) -> tuple[int, ...]:
        """Return the nearest recorded setting, the first of equals.

        All scales have equal length; different words are a whole scale apart.
        """

        def distance(at: tuple[int, ...]) -> float:
            return sum(self._apart(k, self._places[at][k], place[k]) for k in range(len(at)))

        return min(self._curves, key=distance)

    def _apart(self, axis: int, here: float, there: float) -> float:
        marks = self.axes[axis].marks
        if self.axes[axis].scale == "words":
            return float(here != there)
        return ((here - there) / (marks[-1] - marks[0] or 1.0)) ** 2


def _scale(name: str, values: Sequence[Any]) -> str:
    if any(isinstance(value, str) for value in values):
        return "words"
    if name == "momentum" and values[-1] < 1.0:
        return "momentum"
    return "log" if values[0] > 0.0 and values[-1] >= FOURFOLD * values[0] else "linear"


def _mark(scale: str, value: float) -> float:
    if scale == "momentum":
        return -math.log(1.0 - value)
    return math.log(value) if scale == "log" else float(value)


BATCH = "batch_size"


@dataclass(frozen=True, slots=True)
class CurveAssumptions:
    """Assumptions about what recordings do not contain."""

    metric: str = ""
    """Metric of trials; by default accuracy, or else the first recorded one. A loss counts negatively: higher
    is better."""
    size_mb: float = 0.0
    """Size of a checkpoint."""
    growth: float = 1.25
    """Factor on step time and checkpoint size for each change of a network."""
    gain: float = 0.0
    """Increase of the metric with each change of a network."""

    def __post_init__(self) -> None:
        if not self.size_mb >= 0.0 or not self.growth > 0.0 or isnan(self.gain):
            raise ConfigError(
                f"size_mb is {self.size_mb}, growth {self.growth}, gain {self.gain}; "
                "give 0 or more, above 0, and a number"
            )


class RecordedLandscape:
    """Metrics and costs of trials from recorded curves; `CurveGrid` interpolates between settings.

    - Between the ends of recorded intervals a metric is interpolated linearly. Before the first it is
    unknown,
      after the last it stays constant: a simulation claims nothing that was not reached.
    - A setting at which training failed at once has the worst recorded metric.
    - A cloned trial, or one with new hyper-parameters, continues on their curve from the first interval whose
      metric is not below the donor's, or else from the last.
    - Trials of one model, batch size and number of changes are of one kind. A step takes the median recorded
      with the batch size; between batch sizes it is interpolated linearly, below the smallest it is constant,
      above the largest proportional. Hyper-parameters that were not recorded have no effect.
    """

    def __init__(self, curves: Curves, assumptions: CurveAssumptions | None = None) -> None:
        self._curves, self._assumed = curves, assumptions or CurveAssumptions()
        self._metric = self._assumed.metric or curves.main_metric
        settings = list(curves.settings.values())
        if not settings:
            raise InputError(f"curves of {curves.model}: no settings were recorded; record some")
        if not any(self._metric in setting.metrics for setting in settings):
            raise InputError(
                unknown(f"metric in the curves of {curves.model}:", self._metric, curves.metrics)
            )
        self._steps = np.unique(np.concatenate([setting.steps for setting in settings])).astype(float)
        self._grid = CurveGrid(curves.hyper, _means(self._curves_of(settings), curves.hyper))
        self._batches, self._step_s = _step_times(curves.model, settings)
        self._kinds: dict[str, tuple[float, int]] = {}
        self._found: dict[tuple[Any, ...], int] = {}
        """Setting → its curve in the outcomes."""
        self.outcomes = Outcomes(ALONG_CURVES, curve_steps=self._steps, gain=self._assumed.gain)
        """Where trials are on their curves."""

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
        return float(base_s * above * self._assumed.growth**changes)

    def size_mb(self, kind: str) -> float:
        return float(self._assumed.size_mb * self._assumed.growth ** self._kinds[kind][1])

    def begin(self, trial: int, hyper: Hyper) -> None:
        self.outcomes.begin(trial, self._number(hyper))

    def train(self, trial: int, steps: int) -> float:
        return self.outcomes.train(trial, steps)

    def clone(self, trial: int, donor: int, hyper: Hyper, changes: tuple[str, ...]) -> None:
        there, number = self.outcomes, self._number(hyper)
        there.curve[trial], there.grown[trial] = number, len(changes)
        there.progress[trial], there.reached[trial] = there.progress[donor], there.reached[donor]
        if not isnan(there.reached[donor]):
            values = there.curves[number] + self._assumed.gain * len(changes)
            reached = np.flatnonzero(values >= there.reached[donor])
            there.progress[trial] = self._steps[reached[0] if len(reached) else -1]

    def curve(self, hyper: Hyper) -> Floats:
        """Return the metric at the end of each recorded interval, with these hyper-parameters."""
        number = self._number(hyper)
        found: Floats = self.outcomes.curves[number]
        return found

    def _number(self, hyper: Hyper) -> int:
        """Return the number of the curve of these hyper-parameters."""
        missing = [name for name in self._curves.hyper if name not in hyper]
        if missing:
            needed = ", ".join(self._curves.hyper)
            raise InputError(f"a trial has no {missing[0]}; the curves of {self._curves.model} need {needed}")
        setting = tuple(hyper[name] for name in self._curves.hyper)
        if setting not in self._found:
            self._found[setting] = self.outcomes.add(self._grid.curve(setting))
        return self._found[setting]

    def _curves_of(self, settings: list[CurveSetting]) -> list[tuple[Hyper, Floats]]:
        """Return hyper-parameters and curve of each setting."""
        found: list[tuple[Hyper, Floats]] = [(each.hyper, self._goodness(each)) for each in settings]
        worst = np.full(len(self._steps), min(np.nanmin(curve, initial=inf) for _, curve in found))
        at_once = self._curves.failed.keys() - self._curves.settings.keys()
        return found + [(self._curves.failed[name], worst) for name in sorted(at_once)]

    def _goodness(self, setting: CurveSetting) -> Floats:
        """Return the metric of a setting, higher being better, at the common steps of all settings."""
        values = setting.metrics.get(self._metric, np.full(len(setting), nan))
        sign = -1.0 if self._metric.endswith("loss") else 1.0
        return np.asarray(np.interp(self._steps, setting.steps, sign * values), float)


def _means(curves: list[tuple[Hyper, Floats]], names: tuple[str, ...]) -> dict[tuple[Any, ...], Floats]:
    """Return the mean curve of each combination of hyper-parameters."""
    found: dict[tuple[Any, ...], list[Floats]] = {}
    for hyper, curve in curves:
        found.setdefault(tuple(hyper[name] for name in names), []).append(curve)
    return {hyper: np.mean(curves, axis=0) for hyper, curves in found.items()}


def _step_times(model: str, settings: list[CurveSetting]) -> tuple[Floats, Floats]:
    """Return the batch sizes, and the seconds per step with each."""
    found: dict[float, list[Floats]] = {}
    for setting in settings:
        each = setting.seconds / np.diff(setting.steps, prepend=0)
        found.setdefault(float(setting.hyper.get(BATCH, 1)), []).append(each[~np.isnan(each)])
    times = {batch: np.concatenate(each) for batch, each in sorted(found.items())}
    if not all(len(each) for each in times.values()):
        raise InputError(
            f"curves of {model}: seconds were not recorded for every batch size; record them again, or give "
            "population.profiles in which the model was measured on the same device"
        )
    return np.array(list(times)), np.array([np.median(each) for each in times.values()])
