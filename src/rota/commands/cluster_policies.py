"""Schedulers with their options: what rehearsals and runs of jobs have in common."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rota.config.bind import bind
from rota.core.errors import ConfigError
from rota.core.loop import Policy
from rota.policies.cluster.registry import canonical, scheduler_class

PATHS = ("workload.trace", "workload.profiles", "cluster.file")
"""Keys of a configuration that are paths."""


def schedulers(
    names: Sequence[str], defaults_for: Callable[[Any], Mapping[str, Any]], options: Any, where: str
) -> dict[str, Policy]:
    """Each scheduler with its options, by its proper name."""
    given, policies = _options(options, where), {}
    for name in map(canonical, names):
        chosen = scheduler_class(name)
        table = {**defaults_for(chosen), **given.get(name, {})}
        policies[name] = bind(chosen, table, f"{where}: options.{name}")
    return policies


def _options(options: Any, where: str) -> dict[str, dict[str, Any]]:
    """The tables of options by the proper names of the schedulers."""
    if not isinstance(options, dict):
        raise ConfigError(f"{where}: options is not a table")
    given: dict[str, dict[str, Any]] = {}
    for alias, table in options.items():
        name = canonical(alias)
        if not isinstance(table, dict):
            raise ConfigError(f"{where}: options.{alias} is not a table")
        if name in given:
            raise ConfigError(f"{where}: options: {name} has options under two names; give them under one")
        given[name] = table
    return given
