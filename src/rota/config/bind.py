"""Bind a parsed TOML table to a frozen dataclass, strictly.

An unknown key, a wrong type, a missing key or a value out of range is a ConfigError that says where,
and what was probably meant:

    simulate.toml: cluster: unknown key 'slot'. Did you mean 'slots'? Known: nodes, slots
    simulate.toml: cluster.slots: 'four' is not an integer

Fields may be bool, int, float, str, Path, Literal, `X | None`, dict, list, tuple and dataclasses, nested.
Ranges are the business of the dataclass: its `__post_init__` raises a ConfigError without the place.
"""

import math
from collections.abc import Mapping
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from rota.config.notation import Table, show
from rota.core.errors import ConfigError, InputError, unknown

T = TypeVar("T")

ACCEPTED = {bool: (bool,), int: (int,), float: (int, float), str: (str,), Path: (str,)}
"""What TOML may give for a field of each simple type."""
EXPECTED = {bool: "true or false", int: "an integer", float: "a number", str: "a string", Path: "a path"}


@dataclass(frozen=True, slots=True)
class Place:
    """Where in which file a value is."""

    file: str
    key: str = ""

    def inside(self, name: str) -> "Place":
        return Place(self.file, f"{self.key}.{name}" if self.key else name)

    def item(self, index: int) -> "Place":
        return Place(self.file, f"{self.key}[{index}]")

    def error(self, message: str) -> ConfigError:
        return ConfigError(": ".join(part for part in (self.file, self.key, message) if part))


def bind(kind: type[T], table: Table, file: str | Path = "") -> T:
    """The dataclass `kind` with the values of a table; `file` is for error messages."""
    bound: T = _section(kind, table, Place(str(file)))
    return bound


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
    kind = without_none(kind)  # TOML has no null: what is written is not None
    if kind in ACCEPTED:
        return _simple(kind, value, place)
    if is_dataclass(kind):
        return _section(kind, value, place)
    origin = get_origin(kind)
    if origin is Literal:
        return _choice(get_args(kind), value, place)
    if origin is dict:
        inner = get_args(kind)[1]
        return {name: _value(inner, item, place.inside(name)) for name, item in _table(value, place).items()}
    if origin in (list, tuple):
        return origin(_items(kind, value, place))
    raise TypeError(f"a setting cannot have the type {kind}")


def _section(kind: Any, value: object, place: Place) -> Any:
    table, known, kinds = _table(value, place), keys(kind), get_type_hints(kind)
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
    if get_origin(kind) is list or kinds[-1] is Ellipsis:
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
    if _fits(kind, value):
        return kind(value)
    meant = _meant(kind, value)
    guess = "" if meant is None else f". Did you mean {show(meant)}?"
    raise place.error(f"{_short(value)} is not {EXPECTED[kind]}{guess}")


def _fits(kind: Any, value: Any) -> bool:
    if isinstance(value, bool) or kind is bool:
        return kind is bool and isinstance(value, bool)
    if kind is float and isinstance(value, int | float):
        return _is_number(value)
    return isinstance(value, ACCEPTED[kind])


def _is_number(value: int | float) -> bool:
    """Whether a float can hold it and comparisons work on it: no range check would catch a nan."""
    try:
        return not math.isnan(value)
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
