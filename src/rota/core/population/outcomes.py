"""Metrics of simulated trials that come from arrays, so that a simulation need not ask Python for them."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from rota.core.arrays import Floats
from rota.core.compiled import kernel

NOTHING_MEASURED, ALONG_CURVES, TOWARDS_TARGETS, ASKED, ALONG_TREES = range(5)
"""Where metrics come from: nowhere, curves, hidden numbers of steps, Python is asked, or growth trees."""


@kernel
def metric_after(kind, trial, steps, progress, reached, curve, grown, curves, curve_steps, gain):
    """Return the metric of a trial after some more steps.

    `progress` are the steps of trials along their curves, the rows of `curves`; `reached` are the metrics
    there, `grown` changes of networks, each of which adds `gain`. A metric is NaN before the first of
    `curve_steps`, and linear between them. Towards targets, `curves` has the steps of each trial to its own.
    """
    progress[trial] += steps
    if kind == ALONG_CURVES:
        reached[trial] = np.nan
        if progress[trial] >= curve_steps[0]:
            value = between(progress[trial], curve_steps, curves[curve[trial]])
            reached[trial] = value + gain * grown[trial]
    elif kind == TOWARDS_TARGETS:
        reached[trial] = progress[trial] / curves[0, trial]
    return reached[trial]


@kernel
def between(at, steps, values):
    """Return the linear interpolation at a position from the first on, as `numpy.interp` does."""
    last = len(steps) - 1
    if at >= steps[last]:
        return values[last]
    k = np.searchsorted(steps, at, side="right") - 1
    if at == steps[k]:
        return values[k]
    slope = (values[k + 1] - values[k]) / (steps[k + 1] - steps[k])
    found = slope * (at - steps[k]) + values[k]
    if np.isnan(found):
        found = slope * (at - steps[k + 1]) + values[k + 1]
        if np.isnan(found) and values[k] == values[k + 1]:
            found = values[k]
    return found


class Outcomes:
    """Where trials are on their curves, or how far from their targets."""

    __slots__ = ("curve", "curve_steps", "curves", "gain", "grown", "kind", "progress", "reached")

    def __init__(
        self, kind: int = NOTHING_MEASURED, curve_steps: Sequence[float] | Floats = (0.0,), gain: float = 0.0
    ) -> None:
        self.kind, self.gain = kind, gain
        self.curve_steps = np.array(curve_steps, np.float64)
        self.curves: Floats = np.zeros((1, len(self.curve_steps)))
        self.curve = np.zeros(0, np.int64)
        """Trial → row of `curves`."""
        self.grown = np.zeros(0, np.int64)
        """Trial → number of changes of its network."""
        self.progress = np.zeros(0)
        """Trial → steps along its curve."""
        self.reached = np.zeros(0)
        """Trial → metric there."""

    def begin(self, trial: int, curve: int = 0) -> None:
        """Put a trial at the start of a curve."""
        old = len(self.curve)
        if trial >= old:
            for name in ("curve", "grown", "progress", "reached"):
                values = getattr(self, name)
                room = np.zeros(max(trial + 1 - old, old), values.dtype)
                setattr(self, name, np.concatenate([values, room]))
        self.curve[trial], self.grown[trial] = curve, 0
        self.progress[trial], self.reached[trial] = 0.0, np.nan

    def add(self, curve: Floats) -> int:
        """Add a curve; return its number."""
        self.curves = np.vstack([self.curves, curve])
        return len(self.curves) - 1

    def arrays(self) -> Mapping[str, NDArray[Any]]:
        """Return the arrays that compiled code sees."""
        names = ("curve", "grown", "progress", "reached", "curves", "curve_steps")
        return {name: getattr(self, name) for name in names}

    def numbers(self) -> Mapping[str, float]:
        """Return the fields of the record."""
        rows, width = self.curves.shape
        return {"gain": self.gain, "n_curves": rows, "curve_width": width}

    def train(self, trial: int, steps: int) -> float:
        """Return the metric of a trial after some more steps."""
        return float(
            metric_after(
                self.kind, trial, float(steps), self.progress, self.reached, self.curve, self.grown,
                self.curves, self.curve_steps, self.gain,
            )
        )  # fmt: skip


class TrialOutcomes(Protocol):
    """Metrics of trials in arrays."""

    kind: int

    def arrays(self) -> Mapping[str, NDArray[Any]]:
        """Return the arrays that compiled code sees."""

    def numbers(self) -> Mapping[str, float]:
        """Return the fields of the record."""


def outcomes_of(landscape: Any) -> TrialOutcomes | None:
    """Return the arrays of a landscape; None if it has none, or a subclass does something else."""
    for made in type(landscape).__mro__:
        if "outcomes" in vars(made):
            return landscape.outcomes  # type: ignore[no-any-return]
        if {"train", "clone", "begin"} & vars(made).keys():
            return None
    return None
