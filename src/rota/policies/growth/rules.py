"""Rules for when a network grows; each makes the first change that is offered."""

from collections.abc import Sequence
from dataclasses import dataclass

from rota.core.errors import ConfigError
from rota.core.network import NOTHING, Observation


def first_change(observation: Observation, *, grow: bool) -> list[float]:
    """Return 1 for the first action that changes something, or for that which does not, else 0."""
    place = next((at for at, action in enumerate(observation.actions) if (action != NOTHING) == grow), None)
    if place is None:  # only nothing is offered
        place = observation.actions.index(NOTHING)
    return [float(at == place) for at in range(len(observation.actions))]


@dataclass(frozen=True)
class AtStart:
    """Grow at the start: at each of the first boundaries, as often as may be."""

    changes: int = 100
    """Most changes of a network."""

    def __post_init__(self) -> None:
        if self.changes < 0:
            raise ConfigError(f"changes is {self.changes}; give 0 or more")

    def probabilities(self, observation: Observation) -> list[float]:
        return first_change(observation, grow=len(observation.made) < self.changes)


@dataclass(frozen=True)
class FixedSchedule:
    """Grow at the same boundaries in every trial, whatever happens."""

    at: tuple[int, ...] = (0,)
    """Boundaries at which the network grows: 0 is that after the first interval."""

    def __post_init__(self) -> None:
        if any(boundary < 0 for boundary in self.at):
            raise ConfigError(f"at is {list(self.at)}; boundaries are numbered from 0")

    def probabilities(self, observation: Observation) -> list[float]:
        return first_change(observation, grow=len(observation.made) in self.at)


@dataclass(frozen=True)
class Stump:
    """Grow while more than a share of the time is left."""

    left: float = 0.5
    """Share of the time until the deadline, or of the steps of the trial if there is none."""

    def __post_init__(self) -> None:
        if not 0.0 <= self.left <= 1.0:
            raise ConfigError(f"left is {self.left}; give 0 to 1")

    def probabilities(self, observation: Observation) -> list[float]:
        return first_change(observation, grow=observation.left > self.left)


@dataclass(frozen=True)
class RandomGrowth:
    """Choose any of the actions that are offered, all as likely: a baseline."""

    draws = True
    """Actions are drawn by their probabilities; of other policies the likeliest is taken."""

    def probabilities(self, observation: Observation) -> Sequence[float]:
        return [1.0 / len(observation.actions)] * len(observation.actions)
