"""What a configuration names, as policies: allocations and presets, each with evolution and retirement."""

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from rota.config.bind import bind
from rota.config.dump import dump
from rota.core.errors import ConfigError, unknown
from rota.policies.allocation.named import named
from rota.policies.allocation.registry import ALLOCATIONS, allocation_class
from rota.policies.choice import PRESETS, Choice
from rota.policies.evolution.registry import EVOLUTIONS, evolution_class
from rota.policies.population import Policy
from rota.policies.trials import TrialsConfig

Options = Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Preset:
    """SPA or GPA with ERA or ETA, as users of the originals know them: with their shares and retirement."""

    original: bool = False
    """By the rules of the originals, with their defects."""


class Contender(NamedTuple):
    """One of those that are compared."""

    name: str
    policy: Policy
    options: dict[str, dict[str, Any]]
    """Name → options in full, of its allocation and its evolution."""


def option_classes() -> dict[str, Any]:
    """Name → what its options are."""
    classes = {name: allocation_class(name) for name in ALLOCATIONS}
    classes |= dict.fromkeys(PRESETS, Preset)
    return classes | {name: evolution_class(name) for name in EVOLUTIONS}


def contenders(config: Choice, options: Any, where: str) -> Iterator[Contender]:
    """Each allocation with its options; evolution is the same for all, retirement for all but presets."""
    if not isinstance(options, Mapping):
        raise ConfigError(f"{where}: options is not a table")
    for name in options:
        if name not in (known := [*ALLOCATIONS, *PRESETS, *EVOLUTIONS]):
            raise ConfigError(f"{where}: options: {unknown('allocation or evolution', name, known)}")
    evolution = bind(
        evolution_class(config.evolution), options.get(config.evolution, {}), _at(where, config.evolution)
    )
    _check(evolution, config.population, _at(where, config.evolution))
    for name in config.allocations:
        given = bind(_class(name), options.get(name, {}), _at(where, name))
        policy = _policy(name, given, evolution, config)
        chosen = {name: tomllib.loads(dump(given)), config.evolution: tomllib.loads(dump(evolution))}
        yield Contender(name, policy, {each: table for each, table in chosen.items() if table})


def _check(evolution: Any, trials: TrialsConfig, where: str) -> None:
    """Whether its options fit the trials, if it can tell."""
    try:
        if hasattr(evolution, "check"):
            evolution.check(trials)
    except ConfigError as error:
        raise ConfigError(f"{where}: {error}") from None


def _at(where: str, name: str) -> str:
    return f"{where}: options.{name}"


def _class(name: str) -> Any:
    return Preset if name in PRESETS else allocation_class(name)


def _policy(name: str, given: Any, evolution: Any, config: Choice) -> Policy:
    if name not in PRESETS:
        return Policy(given, evolution, config.retirement)
    system, mode = name.split("-")
    pieces = named(system, mode, original=given.original)
    return Policy(pieces.allocation, evolution, pieces.retirement)
