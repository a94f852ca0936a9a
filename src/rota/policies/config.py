"""The configuration of trials, and of the policies of a population."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Any, Literal, Protocol

import numpy as np

from rota.core.errors import ConfigError, unknown
from rota.core.population.events import Hyper
from rota.core.population.view import Terms
from rota.core.registry import is_outside
from rota.policies.allocation.registry import MODES, NAMED, REGISTRY
from rota.policies.evolution.explore import Space
from rota.policies.evolution.registry import EVOLUTIONS
from rota.policies.growth.registry import GROWTHS
from rota.policies.population import RetireSlowest

MOST = 100_000
MOST_REPORTS = 100_000_000
"""Most reports of all trials that fit into memory."""
FIRST_DRAWS = 2
"""Part of the seed of initial hyper-parameters, which distinguishes it from those of noise and drift."""
Choices = Mapping[str, Space | Sequence[Any]]


@dataclass(frozen=True, slots=True)
class TrialsConfig:
    """Trials, and how they are trained."""

    trials: int = 20
    """Number of trials."""
    steps: int = 1000
    """Budget of steps of each trial."""
    interval: int = 50
    """Steps after which a trial reports."""
    target: float = inf
    """Metric at which a trial is finished before its budget is used up."""
    deadline_s: float = inf
    """Seconds after which the run ends, whether trials are done or not; a real run completes the intervals
    that are under way then."""
    least_advanced_first: bool = True
    """Whether the queue is sorted by steps, fewest first; else by time of report."""
    report: Literal["each", "batch"] = "each"
    """When the trials of an assignment report: each after its interval, or all at the end."""
    start: dict[str, Space] = field(default_factory=dict)
    """Hyper-parameter → initial values, as in `options.pbt.space`; in a simulation, the recorded values if
    not given."""

    def __post_init__(self) -> None:
        if not 1 <= self.trials <= MOST:
            raise ConfigError(f"trials is {self.trials}; it must be 1 to {MOST:,}")
        if self.interval > self.steps >= 1:
            raise ConfigError(
                f"interval is {self.interval}, but a trial has {self.steps} steps; give at most that"
            )
        self.terms()
        if not self.deadline_s > 0.0:
            raise ConfigError(f"deadline_s is {self.deadline_s:g}; give seconds above 0")
        reports = self.trials * -(-self.steps // self.interval)
        if reports > MOST_REPORTS:
            raise ConfigError(
                f"{self.said()} are {reports:,} reports, one after each {self.interval:,} steps; at most "
                f"{MOST_REPORTS:,} are possible: give a larger interval"
            )

    def said(self) -> str:
        """Return a text like `20 trials × 1,000 steps`."""
        return f"{self.trials:,} trials × {self.steps:,} steps"

    def terms(self, attempts: int = 3) -> Terms:
        """Return the terms of training; a trial is dropped after so many failed `attempts`."""
        return Terms(self.interval, self.steps, self.target, self.least_advanced_first, attempts)

    @property
    def explorable(self) -> bool:
        """Whether trials can have other hyper-parameters than those that they start with."""
        return True

    def choices(self) -> Choices:
        """Return the initial values of each hyper-parameter."""
        return dict(self.start)

    def measured_from(self) -> int:
        """Return the first step after which trials have a metric."""
        return 0

    def check_measured(self, steps: int) -> None:
        """Raise ConfigError if trials have no metric after this many steps, which ranks lowest."""
        if steps < self.measured_from():
            raise ConfigError(
                f"trials are reviewed after {steps:,} steps, but the curves begin at step "
                f"{self.measured_from():,}; give at least that (population.interval is {self.interval:,})"
            )

    def hypers(self, seed: int) -> tuple[Hyper, ...]:
        """Return the initial hyper-parameters of each trial."""
        random = np.random.default_rng((seed, FIRST_DRAWS))
        choices = self.choices()
        return tuple(
            {name: _drawn(choice, random) for name, choice in choices.items()} for _ in range(self.trials)
        )


def in_words(choice: Space | Sequence[Any]) -> bool:
    """Return whether a hyper-parameter is a word, not a number."""
    return bool(choice.names) if isinstance(choice, Space) else any(isinstance(each, str) for each in choice)


def space_of(choice: Space | Sequence[Any]) -> Space | None:
    """Return initial values as a space, numbers in order; None if words and numbers are mixed."""
    if isinstance(choice, Space):
        return choice
    words = [each for each in choice if isinstance(each, str)]
    if not words:
        return Space(values=tuple(sorted(map(float, choice))))
    return Space(names=tuple(words)) if len(words) == len(choice) else None


def _drawn(choice: Space | Sequence[Any], random: np.random.Generator) -> Any:
    """Draw a value; a whole number from a list of whole numbers, even if binding made them floats."""
    if not isinstance(choice, Space):
        return choice[int(random.integers(len(choice)))]
    drawn = choice.draw(random)
    whole = choice.values and all(value.is_integer() for value in choice.values)
    return int(drawn) if whole else drawn


PRESETS = tuple(f"{name}-{mode.lower()}" for name in NAMED for mode in MODES)
"""Presets like `spa-era`: an allocation and its retirement."""


class PolicyChoice(Protocol):
    """The policies that a configuration names, and the trials that they are for."""

    @property
    def population(self) -> TrialsConfig:
        """The trials."""

    @property
    def allocations(self) -> tuple[str, ...]:
        """Names of the allocations."""

    @property
    def evolution(self) -> str:
        """Name of the evolution."""

    @property
    def retirement(self) -> RetireSlowest | None:
        """Retirement of slots, if there is any."""


def check_names(allocations: Iterable[str], evolution: str, growth: str = "never") -> None:
    """Raise ConfigError for unknown policies; those outside the package are checked when they are created."""
    if growth not in GROWTHS and not is_outside(growth):
        raise ConfigError(unknown("growth policy", growth, GROWTHS))
    if evolution not in EVOLUTIONS and not is_outside(evolution):
        raise ConfigError(unknown("evolution", evolution, EVOLUTIONS))
    for name in allocations:
        if name not in REGISTRY.known and name not in PRESETS and not is_outside(name):
            raise ConfigError(unknown("allocation", name, (*REGISTRY.known, *PRESETS)))
