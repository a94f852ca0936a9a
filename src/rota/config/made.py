"""Policies made of their class and their options."""

import hashlib
from collections.abc import Mapping
from dataclasses import is_dataclass
from typing import Any, NamedTuple

from rota.config.bind import bind
from rota.core.errors import ConfigError, unknown
from rota.core.growth import SEAM, Growth
from rota.core.outside import find_class, name_of, sources


def made(chosen: Any, options: Mapping[str, Any], where: str) -> Any:
    """Return an object of a class of policies, with these options."""
    if is_dataclass(chosen):
        kind: Any = chosen
        return bind(kind, options, where)
    if options:
        raise ConfigError(
            f"{where}: {chosen.__name__} has no options, for it is not a dataclass; "
            "put @dataclass(frozen=True) above it and make options its fields"
        )
    try:
        return chosen()
    except TypeError as error:
        raise ConfigError(f"{where}: {chosen.__name__} cannot be made without options: {error}") from None


class OwnGrowth(NamedTuple):
    """A growth policy from outside, and what tells it from others."""

    name: str
    policy: Growth
    identity: str
    """Its options, and the digest of its code."""


def own_growth(spec: str, options: Any, where: str = "") -> OwnGrowth:
    """Return the policy behind `module:Class` or `file.py:Class`; `options` has a table of its name."""
    found = find_class(spec, SEAM)
    name = name_of(found)
    given = options or {}
    if not isinstance(given, Mapping) or not all(isinstance(table, Mapping) for table in given.values()):
        raise ConfigError(f"{where}options: is not a table of tables; write [options.{name}]")
    for each in given:
        if each != name:
            raise ConfigError(f"{where}options: {unknown('growth policy', each, [name])}")
    policy: Growth = made(found, given.get(name, {}), f"{where}options.{name}")
    digest = hashlib.sha256()
    modules = {base.__module__ for base in found.__mro__}
    for file in sorted({file for module in modules for file in sources(module)}):
        digest.update(file.read_bytes())
    said = repr(policy) if is_dataclass(policy) else type(policy).__qualname__
    return OwnGrowth(name, policy, f"{name} {said} {digest.hexdigest()}")
