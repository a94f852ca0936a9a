"""Arguments of scripts, checked: what is wrong is said in a sentence."""

import operator
from collections.abc import Iterable
from typing import Any

from rota.core.errors import ConfigError


def whole(name: str, value: Any) -> int:
    """Return a whole number, of whatever type; an error that names it if it is none."""
    try:
        return operator.index(value)
    except TypeError:
        raise ConfigError(f"{name} is {value!r}; give a whole number") from None


def seeds_of(given: int | Iterable[int]) -> list[int]:
    """Return the seeds: so many from 0 on, or those that are given."""
    if isinstance(given, Iterable) and not isinstance(given, str | bytes):
        seeds = [whole("seeds: one", each) for each in given]
    else:
        seeds = list(range(whole("seeds", given)))
    if not seeds:
        raise ConfigError("seeds is empty; give at least one")
    if len(set(seeds)) < len(seeds):
        raise ConfigError(f"seeds has one twice: {seeds}")
    if min(seeds) < 0:
        raise ConfigError(f"seeds has {min(seeds)}; they are 0 or more")
    return seeds


def table_of(name: str, given: Any) -> dict[str, Any]:
    """Return a dictionary of settings; an error if it is something else."""
    if given is None:
        return {}
    if not isinstance(given, dict):
        raise ConfigError(f"{name} is a {type(given).__name__}; give a dictionary")
    return given
