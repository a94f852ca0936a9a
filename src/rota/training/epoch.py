"""What an epoch is, what became of one, and how far training is."""

from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from rota.core.change import Change
from rota.core.errors import InputError

Ended = Literal["whole", "steps", "time", "allocation", "failed"]


@dataclass(frozen=True, slots=True)
class Length:
    """How long an epoch is: so many steps, or so many seconds; neither: one pass over the data."""

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
    """What became of an epoch."""

    number: int
    ended: Ended
    """`whole`, or what cut it short: the budget of steps or time, the allocation, or a failure."""
    steps: int
    """Steps since training began."""
    at_s: float
    """Seconds since training began."""
    loss: float
    """The mean over the epoch's steps."""
    lr: float
    metrics: dict[str, float] = field(default_factory=dict)
    """Measured in evaluation mode at the end; empty if it was not evaluated."""
    failure: str = ""


class Made(NamedTuple):
    """A change that was made."""

    steps: int
    """So many steps had been trained."""
    change: Change


@dataclass(slots=True)
class Progress:
    """How far training is; plain numbers, saved as they are."""

    steps: int = 0
    position: int = 0
    """Examples taken from the stream."""
    epochs: int = 0
    """Epochs that are over."""
    since_change: int = 0
    """Whole epochs since the learning rate was reset."""
    epoch_steps: int = 0
    epoch_loss: float = 0.0
    epoch_began_s: float = 0.0
