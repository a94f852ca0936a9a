"""Which policies a configuration may name for a population, rehearsed or real."""

from collections.abc import Iterable
from typing import Protocol

from rota.core.errors import ConfigError, unknown
from rota.core.outside import is_outside
from rota.policies.allocation.named import MODES, NAMED
from rota.policies.allocation.registry import ALLOCATIONS
from rota.policies.evolution.registry import EVOLUTIONS
from rota.policies.retirement import RetireSlowest
from rota.policies.trials import TrialsConfig

PRESETS = tuple(f"{name}-{mode.lower()}" for name in NAMED for mode in MODES)
"""`spa-era` …: an allocation and what goes with it."""


class Choice(Protocol):
    """What is said about policies, and the trials that they are for."""

    @property
    def population(self) -> TrialsConfig: ...

    @property
    def allocations(self) -> tuple[str, ...]: ...

    @property
    def evolution(self) -> str: ...

    @property
    def retirement(self) -> RetireSlowest | None: ...


def check_names(allocations: Iterable[str], evolution: str) -> None:
    """Whether there are such policies; those from outside are looked for when they are made."""
    if evolution not in EVOLUTIONS and not is_outside(evolution):
        raise ConfigError(unknown("evolution", evolution, EVOLUTIONS))
    for name in allocations:
        if name not in ALLOCATIONS and name not in PRESETS and not is_outside(name):
            raise ConfigError(unknown("allocation", name, (*ALLOCATIONS, *PRESETS)))
