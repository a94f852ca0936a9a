"""Strict binding of TOML tables and JSON values to frozen dataclasses, and of options to policy classes."""

import hashlib
import math
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass, replace
from functools import cache
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, NamedTuple, TypeVar, Union, get_args, get_origin, get_type_hints

from rota.core.errors import ConfigError, InputError, unknown
from rota.core.files import LARGEST
from rota.core.network import SEAM, Growth
from rota.core.registry import find_class, name_of, sources

Table = Mapping[str, object]


def parse_key(text: str) -> tuple[str, ...]:
    """Return the parts of a dotted key: `cluster.nodes` → `("cluster", "nodes")`; they may be quoted."""
    path: list[str] = []
    try:
        rest = tomllib.loads(f"{text} = 0")
        while isinstance(rest, dict):
            ((name, rest),) = rest.items()
            path.append(name)
    except ValueError:
        raise ConfigError(f"{text!r} is not a key; a key looks like cluster.nodes") from None
    return tuple(path)


def put(table: Table, path: tuple[str, ...], value: object) -> dict[str, object]:
    """Return a copy of a table with the key at `path` set; missing tables on the way are created.

    In a list of tables on the way, the key is set in each.
    """
    name, rest = path[0], path[1:]
    if rest:
        inner = table.get(name, {})
        if isinstance(inner, list) and inner and all(isinstance(each, Mapping) for each in inner):
            value = [put(each, rest, value) for each in inner]
        elif isinstance(inner, Mapping):
            value = put(inner, rest, value)
        else:
            raise ConfigError(f"{name!r} is not a table: it is {show(inner)}")
    elif isinstance(table.get(name), Mapping) and not isinstance(value, Mapping):
        raise ConfigError(f"{name!r} is a table; set one of its keys, as in {name}.KEY")
    return {**table, name: value}


def show(value: object) -> str:
    """Return a value on one line, as in a TOML file."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str | Path):
        return repr(str(value))
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(show, value))}]"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key} = {show(inner)}" for key, inner in value.items()) + "}"
    return str(value)


T = TypeVar("T")

ACCEPTED = {bool: (bool,), int: (int,), float: (int, float), str: (str,), Path: (str,)}
"""TOML types accepted for each simple field type."""
EXPECTED = {bool: "true or false", int: "an integer", float: "a number", str: "a string", Path: "a path"}


@dataclass(frozen=True, slots=True)
class KeyPath:
    """The file and key of a value, for error messages, and the numbers allowed there."""

    file: str
    key: str = ""
    most: float = math.inf
    """Largest number allowed."""
    nan: bool = False
    """Whether NaN is allowed."""

    def inside(self, name: str) -> "KeyPath":
        """Return the path of a key in this table."""
        return replace(self, key=f"{self.key}.{name}" if self.key else name)

    def item(self, index: int) -> "KeyPath":
        """Return the path of an item of this list."""
        return replace(self, key=f"{self.key}[{index}]")

    def error(self, message: str) -> ConfigError:
        """Return a ConfigError that names the file and the key."""
        return ConfigError(": ".join(part for part in (self.file, self.key, message) if part))


def bind(kind: type[T], table: Table, file: str | Path = "") -> T:
    """Return the dataclass `kind` filled from a table; `file` is for error messages. Raises ConfigError."""
    bound: T = _section(kind, table, KeyPath(str(file)))
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
    """Return `kind` filled from parsed JSON; raises InputError with the advice `fix`.

    null is None, a list may become a named tuple, and numbers are limited to `most`, or not at all with
    `any_number`. With `others`, unknown keys are allowed.
    """
    if others and isinstance(found, Mapping):
        found = {name: found[name] for name in keys(kind) if name in found}
    try:
        bound: T = _value(kind, found, KeyPath(str(file), "", math.inf if any_number else most, any_number))
    except ConfigError as error:
        raise InputError(f"{error}; {fix}") from None
    return bound


@cache
def _hints(kind: Any) -> dict[str, Any]:
    return get_type_hints(kind)


def keys(kind: Any) -> dict[str, Field[Any]]:
    """Return the fields of a dataclass that can be set in a file."""
    return {field.name: field for field in fields(kind) if field.init}


def is_required(field: Field[Any]) -> bool:
    """Return whether a field has no default."""
    return field.default is MISSING and field.default_factory is MISSING


def without_none(kind: Any) -> Any:
    """Return `X` for `X | None`; other types unchanged."""
    if get_origin(kind) not in (Union, UnionType):
        return kind
    kinds = [member for member in get_args(kind) if member is not NoneType]
    if len(kinds) != 1:
        raise TypeError(f"a setting has one type, or one type and None; not {kind}")
    return kinds[0]


def _value(kind: Any, value: object, path: KeyPath) -> Any:
    if value is None and NoneType in get_args(kind):  # in JSON; TOML has no null
        return None
    if get_origin(kind) in (Union, UnionType) and len(get_args(kind)) > 2:
        return _one_of(get_args(kind), value, path)
    kind = without_none(kind)
    if kind is object:
        return value
    if kind in ACCEPTED:
        return _simple(kind, value, path)
    if is_dataclass(kind):
        return _section(kind, value, path)
    if hasattr(kind, "_fields"):
        return _named(kind, value, path)
    return _structure(kind, value, path)


def _structure(kind: Any, value: object, path: KeyPath) -> Any:
    """Return a mapping, a list or a literal."""
    origin = get_origin(kind)
    if origin is Literal:
        return _choice(get_args(kind), value, path)
    if origin in (dict, Mapping):
        inner = get_args(kind)[1]
        return {name: _value(inner, item, path.inside(name)) for name, item in _table(value, path).items()}
    if origin in (list, tuple, Sequence):
        return (list if origin is list else tuple)(_items(kind, value, path))
    raise TypeError(f"a setting cannot have the type {kind}")


def _one_of(kinds: Sequence[Any], value: Any, path: KeyPath) -> Any:
    """Return a value that fits one of several simple types."""
    for kind in kinds:
        if kind in ACCEPTED and _fits(kind, value, path):
            return value
    raise path.error(f"{_short(value)} is not {' or '.join(map(_expected, kinds))}")


def _named(kind: Any, value: object, path: KeyPath) -> Any:
    """Return a named tuple from a list or a table."""
    names, kinds = kind._fields, _hints(kind)
    if isinstance(value, list):
        value = dict(zip(names, value, strict=False)) if len(value) <= len(names) else value
    table = _table(value, path)
    if not set(names) - set(kind._field_defaults) <= set(table) <= set(names):
        raise path.error(f"{_short(value)} is not a list of {', '.join(names)}")
    return kind(**{name: _value(kinds[name], item, path.inside(name)) for name, item in table.items()})


def _section(kind: Any, value: object, path: KeyPath) -> Any:
    short = getattr(kind, "SHORT", None)
    if short is not None and not isinstance(value, Mapping):
        return kind(**{short: _value(_hints(kind)[short], value, path)})
    table, known, kinds = _table(value, path), keys(kind), _hints(kind)
    for name in table:
        if name not in known:
            raise path.error(unknown("key", name, known))
    for name, field in known.items():
        if name not in table and is_required(field):
            raise path.error(f"missing key {name!r}: {_expected(kinds[name])}")
    given = {name: _value(kinds[name], item, path.inside(name)) for name, item in table.items()}
    try:
        return kind(**given)
    except InputError as error:
        raise path.error(str(error)) from error


def _table(value: object, path: KeyPath) -> Table:
    if not isinstance(value, Mapping):
        raise path.error(f"{_short(value)} is not a table")
    return value


def _items(kind: Any, value: object, path: KeyPath) -> list[Any]:
    """Return the bound items of a list, or of a tuple of any or fixed length."""
    if not isinstance(value, list | tuple):
        raise path.error(f"{_short(value)} is not a list")
    kinds = get_args(kind)
    if get_origin(kind) in (list, Sequence) or kinds[-1] is Ellipsis:
        kinds = kinds[:1] * len(value)
    if len(kinds) != len(value):
        raise path.error(f"{_short(value)} is not a list of {len(kinds)} values")
    pairs = enumerate(zip(kinds, value, strict=True))
    return [_value(inner, item, path.item(k)) for k, (inner, item) in pairs]


def _choice(choices: tuple[Any, ...], value: object, path: KeyPath) -> Any:
    for choice in choices:
        if type(choice) is type(value) and choice == value:
            return choice
    if isinstance(value, str):
        raise path.error(unknown("value", value, map(str, choices)))
    raise path.error(f"{_short(value)} is not one of {', '.join(map(str, choices))}")


def _simple(kind: Any, value: Any, path: KeyPath) -> Any:
    if _fits(kind, value, path):
        return kind(value)
    meant = _meant(kind, value)
    guess = "" if meant is None else f". Did you mean {show(meant)}?"
    size = " of 64 bits" if kind is int and type(value) is int else ""
    raise path.error(f"{_short(value)} is not {EXPECTED[kind]}{size}{guess}")


def _fits(kind: Any, value: Any, path: KeyPath) -> bool:
    if isinstance(value, bool) or kind is bool:
        return kind is bool and isinstance(value, bool)
    if kind is float and isinstance(value, int | float):
        return _is_number(value, path)
    if kind is int and isinstance(value, int):
        return abs(value) <= min(path.most, LARGEST)
    if kind is Path and isinstance(value, str):
        return "\0" not in value
    return isinstance(value, ACCEPTED[kind])


def _is_number(value: int | float, path: KeyPath) -> bool:
    """Return whether a float can hold a number and it can be compared; no range check would catch a NaN."""
    try:
        return path.nan if math.isnan(value) else abs(value) <= path.most
    except OverflowError:
        return False


def _meant(kind: Any, value: Any) -> object:
    """Return what a value of the wrong type probably means: 4 for `'4'` or `4.0`; None if unclear."""
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


def made(chosen: Any, options: Mapping[str, Any], where: str) -> Any:
    """Return an instance of a policy class with these options."""
    if is_dataclass(chosen):
        kind: Any = chosen
        return bind(kind, options, where)
    if options:
        raise ConfigError(
            f"{where}: {chosen.__name__} has no options, since it is not a dataclass; "
            "put @dataclass(frozen=True) above it and make options its fields"
        )
    try:
        return chosen()
    except TypeError as error:
        raise ConfigError(f"{where}: {chosen.__name__} cannot be made without options: {error}") from None


class OwnGrowth(NamedTuple):
    """A growth policy from outside the package, and its identity."""

    name: str
    policy: Growth
    identity: str
    """Options of the class, and a digest of its code."""


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
