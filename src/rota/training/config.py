"""The configuration of `rota train`."""

import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from rota.core.errors import ConfigError
from rota.core.network import Change
from rota.training.clock import Length
from rota.training.data.images import check_seed
from rota.training.setup import Setup, check_actions


@dataclass(frozen=True, slots=True)
class AllocationChange:
    """The cluster gives room, or takes it back."""

    at_s: float
    to: Literal["up", "down"]


@dataclass(frozen=True, slots=True)
class TrainConfig:
    """One training run."""

    setup: Setup = field(default_factory=Setup)
    """Which network learns what, and how."""
    seed: int = 0
    budget_s: float | None = None
    """Training is over after so many seconds,"""
    budget_steps: int | None = None
    """or after so many steps,"""
    epochs: int | None = None
    """or after so many epochs; whichever comes first."""
    epoch: Length = field(default_factory=Length)
    """How long an epoch is; one pass over the data if not said."""
    profile: Path | None = None
    """A recorded tree of the same model: time is then steps × its seconds per step.

    Else it is the wall clock.
    """
    allocation: tuple[AllocationChange, ...] = ()
    """When the allocation changes.

    It ends the epoch; after `down` the network shrinks to what it was before.
    """
    external_allocation: bool = False
    """The allocation is changed from outside: by a cluster that lends slots, and takes them back."""
    changes: tuple[str, ...] = ()
    """What is done before each epoch in which there is room, one after the other: `deepen 1`, `nothing` …"""
    agent: str | None = None
    """Who decides instead: the folder of an agent, or a class of yours as module:Class or
    path/to/file.py:Class."""
    options: dict[str, object] | None = None
    """The options of such a class, as `[options.NAME]`."""
    actions: tuple[str, ...] = ()
    """What an agent may do (`--agent`), `nothing` among it; to deepen any block, or nothing, if not said."""
    decisions: int = 3
    """How many an agent makes: one before each epoch in which there is room."""
    checkpoint_every_s: float = 30.0
    """Save after a step if so long has passed since; always at the end."""

    def __post_init__(self) -> None:
        if self.budget_s is None and self.budget_steps is None and self.epochs is None:
            raise ConfigError("how long? Give budget_s, budget_steps or epochs")
        for name in ("budget_s", "budget_steps", "epochs", "decisions"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise ConfigError(f"{name} is {value}; it must be above 0")
        check_seed(self.seed)
        for text in self.changes:
            Change.parse(text)
        if self.actions:
            check_actions(self.actions)
        times = [each.at_s for each in self.allocation]
        if times != sorted(times):
            raise ConfigError("allocation: give the changes in the order of time")
        if self.external_allocation and self.allocation:
            raise ConfigError("allocation: is external, so it cannot be listed; leave it out")
        if (
            self.changes
            and not self.external_allocation
            and not any(each.to == "up" for each in self.allocation)
        ):
            raise ConfigError("changes: are only made once the allocation goes up; give an allocation too")

    def check_decidable(self) -> None:
        """Whether there is anything for an agent to decide, and all that it looks at."""
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
        return math.inf if self.budget_s is None else self.budget_s
