"""What names allocations and evolutions, as policies: each allocation with evolution and retirement."""

import inspect
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, is_dataclass
from typing import Any, NamedTuple

from rota.config.dump import dump
from rota.config.made import made
from rota.core.errors import ConfigError, unknown
from rota.core.outside import check_class, is_outside, name_of
from rota.core.registry import Registry
from rota.library.schedulers import settings
from rota.policies.allocation import registry as allocations
from rota.policies.allocation.named import named
from rota.policies.allocation.registry import ALLOCATIONS, allocation_class
from rota.policies.choice import PRESETS, Choice
from rota.policies.evolution import registry as evolutions
from rota.policies.evolution.registry import EVOLUTIONS, evolution_class
from rota.policies.population import Policy
from rota.policies.retirement import RetireSlowest
from rota.policies.trials import TrialsConfig

KNOWN = (*ALLOCATIONS, *PRESETS, *EVOLUTIONS)
"""Names that have options."""
NAMES = ("allocation", "allocations", "evolution")
"""Keys of a configuration that name classes, perhaps in files."""


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
    evolution: str
    """What its evolution is called."""
    spec: str = ""
    """How a configuration names the allocation."""

    def settings(self) -> str:
        """Return what its policies are, with their options, as text that is the same for equal ones."""
        parts = (self.policy.allocation, self.policy.evolution)
        return f"{[settings(part) for part in parts]} {self.policy.retirement}"


class _Chosen(NamedTuple):
    """An allocation or an evolution, or what becomes one, and what it is called."""

    name: str
    policy: Any


def option_classes() -> dict[str, Any]:
    """Name → what its options are."""
    classes = {name: allocation_class(name) for name in ALLOCATIONS}
    classes |= dict.fromkeys(PRESETS, Preset)
    return classes | {name: evolution_class(name) for name in EVOLUTIONS}


def contenders(
    config: Choice, options: Any, where: str, objects: Mapping[str, Any] | None = None
) -> Iterator[Contender]:
    """Each allocation with its options; evolution is the same for all, retirement for all but presets.

    `objects` are those of names that stand for objects that are there already.
    """
    if not isinstance(options, Mapping):
        raise ConfigError(f"{where}: options is not a table")
    there = objects or {}
    evolution = _evolution(config.evolution, options, where, there)
    evolution = evolution._replace(policy=_fitted(evolution, config.population, where))
    chosen = [_allocation(name, options, where, there) for name in config.allocations]
    _check_names([evolution.name, *(each.name for each in chosen)], options, where)
    for spec, (name, given) in zip(config.allocations, chosen, strict=True):
        tables = {name: _table(given), evolution.name: _table(evolution.policy)}
        used = {each: table for each, table in tables.items() if table}
        policy = policy_of(name, given, evolution.policy, config.retirement)
        yield Contender(name, policy, used, evolution.name, spec)


def chosen_policy(
    allocation: Any, evolution: Any, trials: TrialsConfig, retirement: RetireSlowest | None = None
) -> Contender:
    """Return the policy of an allocation and an evolution that are given as names, classes or objects."""
    change = _given(evolution, evolutions.REGISTRY, "evolution")
    change = change._replace(policy=_fitted(change, trials, "evolution"))
    place = _given(allocation, allocations.REGISTRY, "allocation")
    _check_names([change.name, place.name], {}, "allocation")
    return Contender(
        place.name, policy_of(place.name, place.policy, change.policy, retirement), {}, change.name
    )


def policy_of(name: str, given: Any, evolution: Any, retirement: RetireSlowest | None) -> Policy:
    """Return an allocation, or what a preset stands for, with an evolution."""
    if name not in PRESETS:
        return Policy(given, evolution, retirement)
    system, mode = name.split("-")
    pieces = named(system, mode, original=given.original)
    return Policy(pieces.allocation, evolution, pieces.retirement)


def _evolution(spec: str, options: Mapping[str, Any], where: str, objects: Mapping[str, Any]) -> _Chosen:
    if spec in objects:
        return _given(objects[spec], evolutions.REGISTRY, where)
    return _named(spec, evolution_class(spec), options, where)


def _allocation(spec: str, options: Mapping[str, Any], where: str, objects: Mapping[str, Any]) -> _Chosen:
    if spec in objects:
        return _given(objects[spec], allocations.REGISTRY, where)
    return _named(spec, Preset if spec in PRESETS else allocation_class(spec), options, where)


def _named(spec: str, found: Any, options: Mapping[str, Any], where: str) -> _Chosen:
    """An object of the class behind a name, with its options."""
    name = outside_name(found, spec) if is_outside(spec) else spec
    return _Chosen(name, made(found, options.get(name, {}), f"{where}: options.{name}"))


def _given(given: Any, registry: Registry, where: str) -> _Chosen:
    """What was given as a name, as a class or as an object."""
    if isinstance(given, str):
        return _named(given, Preset if given in PRESETS else registry.find(given), {}, where)
    found = given if inspect.isclass(given) else type(given)
    name = registry.own_name(found)
    if name is None:
        check_class(found, registry.seam, found.__name__)
        name = outside_name(found, found.__name__)
    return _Chosen(name, made(given, {}, where) if inspect.isclass(given) else given)


def outside_name(found: type, where: str) -> str:
    """What a class is called that is not rota's; an error if one of rota's own is called so."""
    name = name_of(found)
    if name in KNOWN:
        raise ConfigError(
            f"{where}: is called {name!r}, as one of rota's; give the class another name, or a `name`"
        )
    return name


def _check_names(names: list[str], options: Mapping[str, Any], where: str) -> None:
    for name in names:
        if names.count(name) > 1:
            raise ConfigError(f"{where}: two policies are called {name}; give one of the classes a `name`")
    for name in options:
        if name not in (known := list(dict.fromkeys((*KNOWN, *names)))):
            raise ConfigError(f"{where}: options: {unknown('allocation or evolution', name, known)}")


def _table(given: Any) -> dict[str, Any]:
    """Options in full, of what has options that a file can say."""
    return tomllib.loads(dump(given)) if is_dataclass(given) else {}


def _fitted(evolution: _Chosen, trials: TrialsConfig, where: str) -> Any:
    """With what it takes over from trials; an error if its options do not fit them, if it can tell."""
    policy = evolution.policy
    try:
        if hasattr(policy, "check"):
            policy.check(trials)
        return policy.fitted(trials) if hasattr(policy, "fitted") else policy
    except ConfigError as error:
        raise ConfigError(f"{where}: options.{evolution.name}: {error}") from None
