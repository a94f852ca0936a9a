"""What hyper-parameters may be, as a script says it."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from rota.core.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Uniform:
    """A number from `low` to `high`, all equally likely.

    >>> import rota
    >>> rota.Uniform(0.0, 0.9)
    Uniform(low=0.0, high=0.9)
    """

    low: float
    high: float

    def table(self) -> dict[str, Any]:
        """Return the table of a configuration."""
        return _ends(self.low, self.high)


@dataclass(frozen=True, slots=True)
class LogUniform:
    """A number from `low` to `high`, drawn evenly in its logarithm; both are above 0.

    >>> import rota
    >>> rota.LogUniform(1e-4, 1e-1)
    LogUniform(low=0.0001, high=0.1)
    """

    low: float
    high: float

    def table(self) -> dict[str, Any]:
        """Return the table of a configuration."""
        return {**_ends(self.low, self.high), "log": True}


class Choice:
    """One of several values, of any kind; a list says the same.

    >>> import rota
    >>> rota.Choice([16, 32, 64])
    Choice([16, 32, 64])
    """

    def __init__(self, values: Iterable[Any]) -> None:
        self.values = list(values)
        """In their order: neighbours are alike, where they are numbers."""

    def __repr__(self) -> str:
        return f"Choice({self.values})"


class StartSpace(NamedTuple):
    """A space of values that trials may begin with."""

    tables: dict[str, dict[str, Any]]
    """Hyper-parameter → its table in a configuration."""
    meanings: dict[str, dict[str, Any]]
    """Hyper-parameter → word in that table → what it stands for, where that is no number and no text."""


def starts(space: Mapping[str, Any]) -> StartSpace:
    """Return what a dictionary of spaces, lists and fixed values says."""
    if not isinstance(space, Mapping):
        what = type(space).__name__
        raise ConfigError(f"space is a {what}; give a dictionary, as in {{'lr': rota.LogUniform(…)}}")
    found = StartSpace({}, {})
    for name, given in space.items():
        if not isinstance(name, str):
            raise ConfigError(f"space: {name!r} is no name of a hyper-parameter; give a text")
        if isinstance(given, Uniform | LogUniform):
            found.tables[name] = given.table()
            continue
        values = _values(name, given)
        if not values:
            raise ConfigError(f"space: {name} has no values; give at least one")
        if all(_is_number(each) for each in values):
            found.tables[name] = {"values": values}
        elif all(isinstance(each, str) for each in values):
            found.tables[name] = {"names": values}
        else:
            words = [f"{number}: {each!r}"[:60] for number, each in enumerate(values)]
            found.tables[name] = {"names": words}
            found.meanings[name] = dict(zip(words, values, strict=True))
    return found


def as_starts(space: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the same where values must be numbers or texts."""
    found = starts(space)
    for name in found.meanings:
        raise ConfigError(f"start: {name} has values that are neither all numbers nor all texts")
    return found.tables


def _values(name: str, given: Any) -> list[Any]:
    """Return the values to choose from; a single value is the only one."""
    if isinstance(given, (type, set, frozenset, Iterator)):
        raise ConfigError(f"space: {name} is {given!r}; give a list, or rota.Uniform(low, high) and the like")
    if isinstance(given, Choice):
        given = given.values
    elif hasattr(given, "tolist"):  # of NumPy and pandas
        given = given.tolist()
    values = list(given) if isinstance(given, list | tuple | range) else [given]
    return [each.item() if hasattr(each, "item") and hasattr(each, "dtype") else each for each in values]


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _ends(low: Any, high: Any) -> dict[str, Any]:
    try:
        return {"low": float(low), "high": float(high)}
    except (TypeError, ValueError):
        raise ConfigError(f"a range of {low!r} to {high!r}; give numbers") from None
