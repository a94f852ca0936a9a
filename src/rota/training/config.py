"""The configuration of `rota train`."""

import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from rota.core.errors import ConfigError
from rota.core.limits import above
from rota.core.network import Change
from rota.training.clock import Length
from rota.training.data.images import check_seed
from rota.training.setup import Setup, check_actions


@dataclass(frozen=True, slots=True)
class AllocationChange:
    """A change of the allocation: idle slots are lent, or taken back."""

    at_s: float
    to: Literal["up", "down"]


@dataclass(frozen=True, slots=True)
class TrainConfig:
    """One training run."""

    setup: Setup = field(default_factory=Setup)
    """The network, its task and its optimiser."""
    seed: int = 0
    budget_s: float | None = None
    """Seconds after which training is over; whichever budget ends first counts."""
    budget_steps: int | None = None
    """Steps after which training is over."""
    epochs: int | None = None
    """Epochs after which training is over."""
    epoch: Length = field(default_factory=Length)
    """Length of an epoch; by default one pass over the data."""
    profile: Path | None = None
    """A recorded tree of the same model, whose step times the clock uses; by default the wall clock."""
    allocation: tuple[AllocationChange, ...] = ()
    """Changes of the allocation.

    Each ends the epoch; after `down` the network shrinks to what it was before.
    """
    external_allocation: bool = False
    """Whether the cluster that runs the job sets the allocation, instead of `allocation`."""
    changes: tuple[str, ...] = ()
    """Changes to make, one before each epoch with idle slots: `deepen 1`, `nothing` …"""
    agent: str | None = None
    """Folder of an agent that decides instead, or a class as module:Class or path/to/file.py:Class."""
    options: dict[str, object] | None = None
    """Options of such a class, as `[options.NAME]`."""
    actions: tuple[str, ...] = ()
    """Changes that an agent may choose from, with `nothing`; by default to deepen any block, or nothing."""
    decisions: int = 3
    """Number of decisions of an agent: one before each epoch with idle slots."""
    checkpoint_every_s: float = 30.0
    """Seconds between two checkpoints; one is always saved at the end."""

    def __post_init__(self) -> None:
        if self.budget_s is None and self.budget_steps is None and self.epochs is None:
            raise ConfigError("how long? Give budget_s, budget_steps or epochs")
        above(0, budget_s=self.budget_s, budget_steps=self.budget_steps)
        above(0, epochs=self.epochs, decisions=self.decisions)
        check_seed(self.seed)
        for text in self.changes:
            Change.parse(text)
        if self.actions:
            check_actions(self.actions)
        times = [each.at_s for each in self.allocation]
        if times != sorted(times):
            raise ConfigError("allocation: give the changes in the order of time")
        if self.external_allocation and self.allocation:
            raise ConfigError(
                "allocation: the cluster sets it (external_allocation), so it cannot be listed; leave it out"
            )
        if (
            self.changes
            and not self.external_allocation
            and not any(each.to == "up" for each in self.allocation)
        ):
            raise ConfigError("changes: are only made once the allocation goes up; give an allocation too")

    def check_decidable(self) -> None:
        """Raise unless an agent has something to decide, and a time budget to decide by."""
        if self.changes:
            raise ConfigError(
                "changes: they are made as listed, so an agent has no say; leave out one of both"
            )
        if self.budget_s is None:
            raise ConfigError("budget_s: an agent decides by the time that is left; give a budget of time")
        if self.external_allocation:
            return
        if not any(each.to == "up" and each.at_s < self.budget_s for each in self.allocation):
            raise ConfigError(
                "allocation: an agent is asked once it goes up, and within the budget it never does; give "
                'one, such as [{ at_s = 3, to = "up" }]'
            )

    @property
    def until_s(self) -> float:
        """Seconds after which training ends; infinite without a budget of time."""
        return math.inf if self.budget_s is None else self.budget_s
