"""Curves between those that were recorded, for any hyper-parameters.

Where a setting was recorded the answer is what was recorded; the mean, if it was more than once. In between,
on a grid, it is multilinear: each hyper-parameter on its own scale, each moment of the curves by itself.

- A scale is the logarithm of the number if all that was recorded is above 0 and spans at least fourfold,
  that of 1 − it for what is called momentum, else the number itself. Beyond its ends the scale's end holds.
- A setting that a grid lacks is filled in: the mean, over the hyper-parameters that have recorded settings
  on both sides of it, of what lies on the straight line between the nearest two; else the nearest setting.
- Recordings that fill less than half of the grid they span are taken as scattered: the nearest one counts.
- Words have no in-between; one that was not recorded is an error.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from rota.core.arrays import Floats
from rota.core.errors import InputError, unknown

FOURFOLD = 4.0


@dataclass(frozen=True, slots=True)
class Axis:
    """The recorded values of a hyper-parameter, and where they lie on its scale."""

    name: str
    values: tuple[Any, ...]
    scale: str
    """`log`, `momentum`, `linear` or `words`."""
    marks: Floats

    @classmethod
    def of(cls, name: str, recorded: Sequence[Any]) -> "Axis":
        values = tuple(sorted(set(recorded), key=lambda value: (isinstance(value, str), value)))
        scale = _scale(name, values)
        marks = range(len(values)) if scale == "words" else [_mark(scale, value) for value in values]
        return cls(name, values, scale, np.array(marks, float))

    def around(self, value: Any) -> list[tuple[int, float]]:
        """Positions of recorded values on both sides, or of the one it is, with their weights."""
        if value in self.values:
            return [(self.values.index(value), 1.0)]
        at = float(np.interp(self.mark(value), self.marks, np.arange(len(self.marks))))
        low = math.floor(at)
        return [(low, 1.0 - (at - low)), (low + 1, at - low)] if at > low else [(low, 1.0)]

    def mark(self, value: Any) -> float:
        """Where a value is on the scale, at most at its ends."""
        if self.scale == "words":
            if value not in self.values:
                raise InputError(unknown(f"{self.name} in the curves:", str(value), map(str, self.values)))
            return float(self.values.index(value))
        if isinstance(value, str) or math.isnan(value):
            raise InputError(f"{self.name} is {value!r}; it must be a number, as in the curves")
        return _mark(self.scale, min(max(value, self.values[0]), self.values[-1]))


class Grid:
    """Curves at settings of hyper-parameters, found again at any setting."""

    def __init__(self, names: Sequence[str], recorded: Mapping[tuple[Any, ...], Floats]) -> None:
        settings = list(recorded)
        self.axes = [Axis.of(name, [each[k] for each in settings]) for k, name in enumerate(names)]
        self._curves = {self._at(setting): curve for setting, curve in recorded.items()}
        self._places = {at: self._place(at) for at in self._curves}
        full = math.prod(len(axis.values) for axis in self.axes)
        self.scattered = len(self._curves) * 2 < full

    def curve(self, setting: Sequence[Any]) -> Floats:
        """At the values of the hyper-parameters, in the order of the axes."""
        if self.scattered:
            return self._curves[self._nearest(np.array([*map(Axis.mark, self.axes, setting)]))]
        corners = list(product(*map(Axis.around, self.axes, setting)))
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
        """What was recorded there, or what it is filled in with."""
        if at in self._curves:
            return self._curves[at]
        lines = [line for axis in range(len(at)) if (line := self._between(at, axis)) is not None]
        return np.mean(lines, axis=0) if lines else self._curves[self._nearest(self._place(at))]

    def _between(self, at: tuple[int, ...], axis: int) -> Floats | None:
        """On the line between the nearest recorded settings before and after it on an axis."""
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
        """On scales of equal length; words that differ are a whole scale apart; the first of equals."""

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
