"""Prediction of step times that were never measured, from parameter count, batch size and device.

    ln(seconds) = device + a·ln(parameters) + b·ln(batch size) + own

is fitted by least squares in two steps. The effect of batch size (b) is found by comparing each network with
itself on one device: large networks tend to have small batches, which would otherwise hide it. Then a plane
is fitted to the means of networks: device and a. `own` is the residual of a network, since its parameter
count is not all that matters. So a network that was measured with another batch size, or on another device,
is predicted much better than an unseen one, for which `own` is 0.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import exp, log
from typing import NamedTuple

import numpy as np

from rota.core.arrays import Floats
from rota.core.errors import InputError


class StepTimeQuery(NamedTuple):
    """A network, batch size and device whose step time is predicted or was measured."""

    network: str
    parameters: int
    batch_size: int
    device: str


Where = tuple[str, str]
"""Network and device."""


@dataclass(frozen=True, slots=True)
class Predictor:
    """A fitted model of step times."""

    batch: float
    """The exponent b of the batch size."""
    parameters: float
    """The exponent a of the parameter count."""
    devices: Mapping[str, float]
    own: Mapping[Where, float]

    @classmethod
    def fit(cls, measured: Iterable[tuple[StepTimeQuery, float]]) -> "Predictor":
        """Return a model fitted to seconds per step. Raises InputError without measurements."""
        rows = [(asked, log(_checked(asked, step_s))) for asked, step_s in measured]
        if not rows:
            raise InputError("step times cannot be predicted without measurements; give some")
        groups: dict[Where, list[tuple[StepTimeQuery, float]]] = {}
        for asked, seconds in rows:
            groups.setdefault((asked.network, asked.device), []).append((asked, seconds))
        batch = _within(groups.values())
        means = {where: _mean([seconds - batch * log(asked.batch_size) for asked, seconds in group])
                 for where, group in groups.items()}  # fmt: skip
        return cls._plane(batch, [group[0][0] for group in groups.values()], means)

    @classmethod
    def _plane(
        cls, batch: float, asked: Sequence[StepTimeQuery], means: Mapping[Where, float]
    ) -> "Predictor":
        """Fit the plane through the means; of many equally good ones, that with the smallest weights."""
        names = sorted({each.device for each in asked})
        table = [[log(each.parameters), *(float(each.device == name) for name in names)] for each in asked]
        weights: Floats = np.linalg.lstsq(np.array(table), np.array(list(means.values())))[0]
        off = np.array(list(means.values())) - np.array(table) @ weights
        devices = dict(zip(names, weights[1:].tolist(), strict=True))
        return cls(batch, float(weights[0]), devices, dict(zip(means, off.tolist(), strict=True)))

    def step_s(self, asked: StepTimeQuery) -> float:
        """Return predicted seconds per step; an unknown device counts as the mean of the others."""
        device = self.devices.get(asked.device, _mean(list(self.devices.values())))
        plane = device + self.parameters * log(asked.parameters) + self.batch * log(asked.batch_size)
        return exp(plane + self._own(asked))

    def _own(self, asked: StepTimeQuery) -> float:
        """Return the residual of a network on this device, or else its mean on others."""
        here = self.own.get((asked.network, asked.device))
        anywhere = [off for (network, _), off in self.own.items() if network == asked.network]
        return here if here is not None else _mean(anywhere or [0.0])


def _within(groups: Iterable[Sequence[tuple[StepTimeQuery, float]]]) -> float:
    """Return the exponent of batch size within groups; 1 if no group has two batch sizes."""
    products = squares = 0.0
    for group in groups:
        sizes = np.log([asked.batch_size for asked, _ in group])
        products += float((sizes - sizes.mean()) @ np.array([seconds for _, seconds in group]))
        squares += float(((sizes - sizes.mean()) ** 2).sum())
    return products / squares if squares > 0.0 else 1.0


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _checked(asked: StepTimeQuery, step_s: float) -> float:
    if asked.parameters < 1 or asked.batch_size < 1 or not step_s > 0.0:
        raise InputError(f"{asked}, {step_s} s: parameters and batch size must be 1 or more, seconds above 0")
    return step_s
