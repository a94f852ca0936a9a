"""Epochs, and the clocks that time them."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import torch

from rota.core.errors import InputError
from rota.core.network import Change, Structure
from rota.training.device import synchronise

Ended = Literal["whole", "steps", "time", "allocation", "failed"]


@dataclass(frozen=True, slots=True)
class Length:
    """The length of an epoch in steps or in seconds; by default one pass over the data."""

    steps: int | None = None
    seconds: float | None = None

    def __post_init__(self) -> None:
        if self.steps is not None and self.seconds is not None:
            raise InputError("an epoch has a number of steps or of seconds, not both")
        if self.steps is not None and self.steps < 1:
            raise InputError(f"an epoch of {self.steps} steps; it must have at least 1")
        if self.seconds is not None and not self.seconds > 0:
            raise InputError(f"an epoch of {self.seconds:g} s; it must be longer than 0")


@dataclass(frozen=True, slots=True)
class Epoch:
    """The outcome of an epoch."""

    number: int
    ended: Ended
    """`whole`, or what ended it early: the budget of steps or time, the allocation, or a failure."""
    steps: int
    """Steps since training began."""
    at_s: float
    """Seconds since training began."""
    loss: float
    """Mean loss over the steps of the epoch."""
    lr: float
    metrics: dict[str, float] = field(default_factory=dict)
    """Metrics in evaluation mode at the end; empty if not evaluated."""
    failure: str = ""


class MadeChange(NamedTuple):
    """A change of the network, and when it was made."""

    steps: int
    """Steps trained before the change."""
    change: Change


@dataclass(slots=True)
class TrainingProgress:
    """Progress of training, as plain numbers."""

    steps: int = 0
    position: int = 0
    """Number of examples taken from the stream."""
    epochs: int = 0
    """Number of finished epochs."""
    since_change: int = 0
    """Number of whole epochs since the learning rate was reset."""
    epoch_steps: int = 0
    epoch_loss: float = 0.0
    epoch_began_s: float = 0.0


class TrainingClock:
    """A clock of training time, which stands still while training is stopped."""

    def now_s(self) -> float:
        """Return the seconds since training began."""
        return 0.0

    def state_dict(self) -> dict[str, float]:
        """Return plain numbers from which `load_state_dict` resumes exactly."""
        return {}

    def load_state_dict(self, state: dict[str, float]) -> None:
        """Resume from what `state_dict` returned."""

    def prepare(self, structure: Structure, batch_size: int) -> None:
        """Set the structure and the batch size of the steps that follow."""

    def step(self) -> None:
        """Count one step."""

    def fits(self, until_s: float) -> bool:
        """Return whether another step may begin, given the time at which all must be over."""
        return True


class StoppedClock(TrainingClock):
    """A clock that stands still, for steps that are timed from outside or not at all."""


class WallClock(TrainingClock):
    """Wall-clock time since it was first read. It waits for the device before each reading."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._began_s: float | None = None
        self._before_s = 0.0

    def now_s(self) -> float:
        synchronise(self._device)
        if self._began_s is None:
            self._began_s = time.perf_counter()
        return self._before_s + time.perf_counter() - self._began_s

    def state_dict(self) -> dict[str, float]:
        return {"now_s": self.now_s()}

    def load_state_dict(self, state: dict[str, float]) -> None:
        self._before_s, self._began_s = state["now_s"], None

    def fits(self, until_s: float) -> bool:
        return self.now_s() < until_s


StepKey = tuple[str, int]
"""A structure's fingerprint, and a batch size: what a step time depends on."""


class ProfiledClock(TrainingClock):
    """Simulated time: steps × the recorded step time of the current structure and batch size.

    It does not depend on how busy the machine is.
    """

    def __init__(self, seconds: Mapping[StepKey, float]) -> None:
        self._seconds = seconds
        self._step_s = 0.0
        self._steps = 0
        self._since_s = 0.0

    def now_s(self) -> float:
        return self._since_s + self._steps * self._step_s

    def state_dict(self) -> dict[str, float]:
        return {"since_s": self._since_s, "steps": self._steps}

    def load_state_dict(self, state: dict[str, float]) -> None:
        self._since_s, self._steps = state["since_s"], int(state["steps"])

    def prepare(self, structure: Structure, batch_size: int) -> None:
        try:
            step_s = self._seconds[structure.fingerprint, batch_size]
        except KeyError:
            known = sorted({size for _, size in self._seconds})
            raise InputError(
                f"no recorded time per step for structure {structure.fingerprint} at batch size {batch_size} "
                f"(recorded: {len(self._seconds)} structures, batch sizes {known}); record its profile first"
            ) from None
        if step_s != self._step_s:
            self._since_s, self._steps, self._step_s = self.now_s(), 0, step_s

    def step(self) -> None:
        self._steps += 1

    def fits(self, until_s: float) -> bool:
        return self._since_s + (self._steps + 1) * self._step_s <= until_s * (1 + 1e-12)


class ExternalClock(TrainingClock):
    """A clock that is set from outside, so that all members of a gang decide at the same time."""

    def __init__(self) -> None:
        self._at_s = 0.0

    def set(self, at_s: float) -> None:
        """Set the seconds since training began."""
        self._at_s = at_s

    def now_s(self) -> float:
        return self._at_s
