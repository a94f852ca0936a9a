"""Bind a parsed TOML table to a frozen dataclass, strictly.

An unknown key, a wrong type, a missing key or a value out of range is a ConfigError that says where,
and what was probably meant:

    simulate.toml: cluster: unknown key 'slot'. Did you mean 'slots'? Known: nodes, slots
    simulate.toml: cluster.slots: 'four' is not an integer

Fields may be bool, int, float, str, Path, Literal, `X | None`, dict, list, tuple and dataclasses, nested.
Ranges are the business of the dataclass: its `__post_init__` raises a ConfigError without the place. If it
has a `SHORT`, that is the key which is set by a value in place of a table.

`facts` does the same for what a JSON file of a run, a recording or an agent says.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass, replace
from functools import cache
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from rota.config.notation import Table, show
from rota.core.errors import ConfigError, InputError, unknown
from rota.core.facts import LARGEST

T = TypeVar("T")

ACCEPTED = {bool: (bool,), int: (int,), float: (int, float), str: (str,), Path: (str,)}
"""What TOML may give for a field of each simple type."""
EXPECTED = {bool: "true or false", int: "an integer", float: "a number", str: "a string", Path: "a path"}


@dataclass(frozen=True, slots=True)
class Place:
    """Where in which file a value is."""

    file: str
    key: str = ""
    most: float = math.inf
    """The largest number that may be there."""
    nan: bool = False
    """Whether it may be NaN."""

    def inside(self, name: str) -> "Place":
        return replace(self, key=f"{self.key}.{name}" if self.key else name)

    def item(self, index: int) -> "Place":
        return replace(self, key=f"{self.key}[{index}]")

    def error(self, message: str) -> ConfigError:
        return ConfigError(": ".join(part for part in (self.file, self.key, message) if part))


def bind(kind: type[T], table: Table, file: str | Path = "") -> T:
    """The dataclass `kind` with the values of a table; `file` is for error messages."""
    bound: T = _section(kind, table, Place(str(file)))
    return bound


def facts(
    kind: type[T],
    found: object,
    file: str | Path,
    fix: str,
    *,
    others: bool = False,
    most: float = LARGEST,
    any_number: bool = False,
) -> T:
    """The same from what a JSON file says; `fix` is what to do if it is wrong.

    null is None, a list may be a named tuple, and numbers are at `most` that large, as all that is measured,
    or else `any_number` may be there. With `others`, keys that are not known may be there.
    """
    if others and isinstance(found, Mapping):
        found = {name: found[name] for name in keys(kind) if name in found}
    try:
        bound: T = _value(kind, found, Place(str(file), "", math.inf if any_number else most, any_number))
    except ConfigError as error:
        raise InputError(f"{error}; {fix}") from None
    return bound


@cache
def _hints(kind: Any) -> dict[str, Any]:
    return get_type_hints(kind)


def keys(kind: Any) -> dict[str, Field[Any]]:
    """The fields of a dataclass that can be set in a file."""
    return {field.name: field for field in fields(kind) if field.init}


def is_required(field: Field[Any]) -> bool:
    return field.default is MISSING and field.default_factory is MISSING


def without_none(kind: Any) -> Any:
    """`X` for `X | None`; other types as they are."""
    if get_origin(kind) not in (Union, UnionType):
        return kind
    kinds = [member for member in get_args(kind) if member is not NoneType]
    if len(kinds) != 1:
        raise TypeError(f"a setting has one type, or one type and None; not {kind}")
    return kinds[0]


def _value(kind: Any, value: object, place: Place) -> Any:
    if value is None and NoneType in get_args(kind):  # of JSON: TOML has no null
        return None
    if get_origin(kind) in (Union, UnionType) and len(get_args(kind)) > 2:
        return _one_of(get_args(kind), value, place)
    kind = without_none(kind)
    if kind is object:
        return value
    if kind in ACCEPTED:
        return _simple(kind, value, place)
    if is_dataclass(kind):
        return _section(kind, value, place)
    if hasattr(kind, "_fields"):
        return _named(kind, value, place)
    return _structure(kind, value, place)


def _structure(kind: Any, value: object, place: Place) -> Any:
    """A table or list of others, or one of some values."""
    origin = get_origin(kind)
    if origin is Literal:
        return _choice(get_args(kind), value, place)
    if origin in (dict, Mapping):
        inner = get_args(kind)[1]
        return {name: _value(inner, item, place.inside(name)) for name, item in _table(value, place).items()}
    if origin in (list, tuple, Sequence):
        return (list if origin is list else tuple)(_items(kind, value, place))
    raise TypeError(f"a setting cannot have the type {kind}")


def _one_of(kinds: Sequence[Any], value: Any, place: Place) -> Any:
    """Of several simple types."""
    for kind in kinds:
        if kind in ACCEPTED and _fits(kind, value, place):
            return value
    raise place.error(f"{_short(value)} is not {' or '.join(map(_expected, kinds))}")


def _named(kind: Any, value: object, place: Place) -> Any:
    """A named tuple, from a list or a table."""
    names, kinds = kind._fields, _hints(kind)
    if isinstance(value, list):
        value = dict(zip(names, value, strict=False)) if len(value) <= len(names) else value
    table = _table(value, place)
    if not set(names) - set(kind._field_defaults) <= set(table) <= set(names):
        raise place.error(f"{_short(value)} is not a list of {', '.join(names)}")
    return kind(**{name: _value(kinds[name], item, place.inside(name)) for name, item in table.items()})


def _section(kind: Any, value: object, place: Place) -> Any:
    short = getattr(kind, "SHORT", None)
    if short is not None and not isinstance(value, Mapping):
        return kind(**{short: _value(_hints(kind)[short], value, place)})
    table, known, kinds = _table(value, place), keys(kind), _hints(kind)
    for name in table:
        if name not in known:
            raise place.error(unknown("key", name, known))
    for name, field in known.items():
        if name not in table and is_required(field):
            raise place.error(f"missing key {name!r}: {_expected(kinds[name])}")
    given = {name: _value(kinds[name], item, place.inside(name)) for name, item in table.items()}
    try:
        return kind(**given)
    except InputError as error:
        raise place.error(str(error)) from error


def _table(value: object, place: Place) -> Table:
    if not isinstance(value, Mapping):
        raise place.error(f"{_short(value)} is not a table")
    return value


def _items(kind: Any, value: object, place: Place) -> list[Any]:
    """The bound items of a list, a tuple of any length or a tuple of a fixed one."""
    if not isinstance(value, list | tuple):
        raise place.error(f"{_short(value)} is not a list")
    kinds = get_args(kind)
    if get_origin(kind) in (list, Sequence) or kinds[-1] is Ellipsis:
        kinds = kinds[:1] * len(value)
    if len(kinds) != len(value):
        raise place.error(f"{_short(value)} is not a list of {len(kinds)} values")
    pairs = enumerate(zip(kinds, value, strict=True))
    return [_value(inner, item, place.item(k)) for k, (inner, item) in pairs]


def _choice(choices: tuple[Any, ...], value: object, place: Place) -> Any:
    for choice in choices:
        if type(choice) is type(value) and choice == value:
            return choice
    if isinstance(value, str):
        raise place.error(unknown("value", value, map(str, choices)))
    raise place.error(f"{_short(value)} is not one of {', '.join(map(str, choices))}")


def _simple(kind: Any, value: Any, place: Place) -> Any:
    if _fits(kind, value, place):
        return kind(value)
    meant = _meant(kind, value)
    guess = "" if meant is None else f". Did you mean {show(meant)}?"
    size = " of 64 bits" if kind is int and type(value) is int else ""
    raise place.error(f"{_short(value)} is not {EXPECTED[kind]}{size}{guess}")


def _fits(kind: Any, value: Any, place: Place) -> bool:
    if isinstance(value, bool) or kind is bool:
        return kind is bool and isinstance(value, bool)
    if kind is float and isinstance(value, int | float):
        return _is_number(value, place)
    if kind is int and isinstance(value, int):
        return abs(value) <= min(place.most, LARGEST)
    if kind is Path and isinstance(value, str):
        return "\0" not in value
    return isinstance(value, ACCEPTED[kind])


def _is_number(value: int | float, place: Place) -> bool:
    """Whether a float can hold it and comparisons work on it: no range check would catch a nan."""
    try:
        return place.nan if math.isnan(value) else abs(value) <= place.most
    except OverflowError:
        return False


def _meant(kind: Any, value: Any) -> object:
    """What a value of the wrong type was probably meant to be: `4` for `'4'` or `4.0`; None if unclear."""
    if kind is str and isinstance(value, int | float):
        return show(value)
    if kind is int and isinstance(value, float) and value.is_integer():
        return int(value)
    if kind in (int, float) and isinstance(value, str):
        try:
            return kind(value)
        except ValueError:
            return None
    return {"true": True, "false": False}.get(str(value).lower()) if kind is bool else None


def _expected(kind: Any) -> str:
    kind = without_none(kind)
    if get_origin(kind) is Literal:
        return "one of " + ", ".join(map(str, get_args(kind)))
    return EXPECTED.get(kind) or ("a list" if get_origin(kind) in (list, tuple) else "a table")


def _short(value: object, length: int = 60) -> str:
    text = show(value)
    return text if len(text) <= length else text[: length - 1] + "…"
