"""Hyper-parameters, and the decay of the learning rate."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from itertools import product
from typing import Literal

import torch
from torch import nn
from torch.optim import Optimizer

from rota.core.errors import ConfigError, unknown
from rota.core.limits import above, at_least


@dataclass(frozen=True, slots=True)
class Hyperparameters:
    """Hyper-parameters that may change between the intervals of a trial."""

    lr: float = 0.01
    """Learning rate after a change, before it decays."""
    momentum: float = 0.9
    """Momentum of SGD, or Adam's first decay rate."""
    batch_size: int = 64

    def __post_init__(self) -> None:
        above(0, finite=True, lr=self.lr)
        if not 0 <= self.momentum < 1:
            raise ConfigError(f"momentum is {self.momentum:g}; it must be at least 0 and below 1")
        if not float(self.batch_size).is_integer():
            raise ConfigError(
                f"batch_size is {self.batch_size:g}; it must be a whole number: if it is drawn, give "
                "values = [16, 32, …] in place of a range"
            )
        at_least(1, batch_size=self.batch_size)
        object.__setattr__(self, "batch_size", int(self.batch_size))  # 32.0 is as good


HYPER = tuple(field.name for field in fields(Hyperparameters))


def grid_settings(first: Hyperparameters, grid: Mapping[str, Sequence[float]]) -> dict[str, Hyperparameters]:
    """Return name → hyper-parameters of each point of a grid, the last of it varying fastest.

    `first` has those that are not in the grid. Raises ConfigError for values that cannot be.
    """
    for name, values in grid.items():
        if name not in HYPER:
            raise ConfigError(f"grid: {unknown('hyper-parameter', name, HYPER)}")
        if not values or len(set(values)) < len(values):
            raise ConfigError(f"grid: {name}: give one or more values, each of them once")
    if any(not float(size).is_integer() for size in grid.get("batch_size", ())):
        raise ConfigError("grid: batch_size: give whole numbers")
    found = {}
    for point in product(*grid.values()):
        given = dict(zip(grid, point, strict=True))
        name = ",".join(f"{key}={value:.12g}" for key, value in given.items()) or "only"
        found[name] = Hyperparameters(**{**asdict(first), **given})
    return found


@dataclass(frozen=True, slots=True)
class Decay:
    """Decay of the learning rate by a factor per epoch, down to a floor; each change resets it."""

    factor: float = 0.9
    floor: float = 1e-8

    def __post_init__(self) -> None:
        if not 0 < self.factor <= 1:
            raise ConfigError(f"factor is {self.factor:g}; it must be above 0 and at most 1")
        at_least(0, finite=True, floor=self.floor)

    def lr(self, first: float, epochs: int) -> float:
        """Return the learning rate `epochs` whole epochs after the last change."""
        return max(min(first, self.floor), first * self.factor**epochs)


OptimizerName = Literal["adam", "sgd"]


def optimizer(name: OptimizerName, parameters: Iterable[nn.Parameter], hyper: Hyperparameters) -> Optimizer:
    """Return a new optimiser."""
    if name == "adam":
        return torch.optim.Adam(parameters, lr=hyper.lr, betas=(hyper.momentum, 0.999))
    return torch.optim.SGD(parameters, lr=hyper.lr, momentum=hyper.momentum)


def set_rates(chosen: Optimizer, lr: float, momentum: float) -> None:
    """Set the learning rate and the momentum; the optimiser keeps its state."""
    for group in chosen.param_groups:
        group["lr"] = lr
        if "betas" in group:
            group["betas"] = (momentum, group["betas"][1])
        else:
            group["momentum"] = momentum
