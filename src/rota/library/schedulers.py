"""Schedulers by name, with their options; from rota, from a file, or as objects."""

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import is_dataclass
from typing import Any, NamedTuple

from rota.config.made import made
from rota.core.errors import ConfigError
from rota.core.loop import Policy
from rota.core.outside import check_class
from rota.policies.cluster.registry import SEAM, canonical, outside_name, own_name, scheduler_class

PATHS = ("workload.trace", "workload.profiles", "cluster.file")
"""Keys of a configuration that are paths."""
NAMES = ("schedulers", "scheduler", "workload.format")
"""Keys of a configuration that name classes or functions, perhaps in files."""


class NamedPolicy(NamedTuple):
    """A scheduler, and what it is called."""

    name: str
    policy: Policy


def schedulers(
    names: Sequence[str], defaults_for: Callable[[Any], Mapping[str, Any]], options: Any, where: str
) -> dict[str, Policy]:
    """Return each scheduler with its options, by its proper name."""
    proper = {name: canonical(name) for name in names}
    given, policies = _options(options, where, proper.values()), dict[str, Policy]()
    for spec, name in proper.items():
        if name in policies:
            raise ConfigError(f"{where}: schedulers: two are called {name}; give one of the classes a `name`")
        chosen = scheduler_class(spec)
        policies[name] = made(
            chosen, {**defaults_for(chosen), **given.get(name, {})}, f"{where}: options.{name}"
        )
    return policies


def named_policy(given: Any, options: Mapping[str, Any] | None = None) -> NamedPolicy:
    """Return a scheduler that was given as a name, as a class or as an object, and its name.

    `options` are for a name or a class.
    """
    if isinstance(given, str):
        name = canonical(given)
        return NamedPolicy(name, made(scheduler_class(given), options or {}, f"options.{name}"))
    found = given if inspect.isclass(given) else type(given)
    check_class(found, SEAM, found.__name__)
    name = own_name(found) or outside_name(found, found.__name__)
    if inspect.isclass(given):
        return NamedPolicy(name, made(given, options or {}, f"options.{name}"))
    if options:
        raise ConfigError(f"options: {name} is an object, which has its options; leave them out")
    return NamedPolicy(name, given)


def settings(policy: Any) -> str:
    """Return what a policy is and which options it has, as text that is the same for equal ones."""
    if is_dataclass(policy):
        return repr(policy)
    return f"{type(policy).__qualname__}({sorted(getattr(policy, '__dict__', {}).items())})"


def _options(options: Any, where: str, known: Iterable[str]) -> dict[str, dict[str, Any]]:
    """The tables of options by the proper names of the schedulers."""
    if not isinstance(options, dict):
        raise ConfigError(f"{where}: options is not a table")
    known, given = set(known), dict[str, dict[str, Any]]()
    for alias, table in options.items():
        name = alias if alias in known else canonical(alias)
        if not isinstance(table, dict):
            raise ConfigError(f"{where}: options.{alias} is not a table")
        if name in given:
            raise ConfigError(f"{where}: options: {name} has options under two names; give them under one")
        given[name] = table
    return given
