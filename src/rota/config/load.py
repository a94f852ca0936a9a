"""Reading TOML files, overriding by flags, resolving paths, and writing configurations."""

import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import is_dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import tomli_w

from rota.config.bind import Table, keys, parse_key, put
from rota.config.grid import fix, leaves
from rota.config.renamed import new_key, renewed, with_new_keys
from rota.core.errors import ConfigError
from rota.core.files import located
from rota.core.registry import is_outside, placed_name

Keys = tuple[str, ...]


def placed(
    table: Table,
    keys: Iterable[str],
    folder: Path,
    assignments: Iterable[str] = (),
    here: Path = Path(),
    names: Iterable[str] = (),
) -> dict[str, object]:
    """Return a copy with the paths at these keys resolved from their origin; in keys, `*` is any name.

    Paths in the file start at its `folder`, those in `assignments` (flags over the file) at `here`. `names`
    are keys of one or several names that may be in a file: `path/to/file.py:Class`. A key may be in both.
    Files that rota ships are found from any folder that has no such file.
    """
    flags = [key for text in assignments for key in _keys_set(text)]
    found = dict(table)

    def start(path: Keys) -> Path:
        return here if any(path[: len(flag)] == flag for flag in flags) else folder

    named = dict(_all_given(table, names))
    for path, value in _all_given(table, keys):
        if isinstance(value, str) and not (path in named and is_outside(value)):
            found = put(found, path, str(located(start(path) / value)))
        elif isinstance(value, list) and all(isinstance(each, str) for each in value):
            found = put(found, path, [str(located(start(path) / each)) for each in value])
    for path, value in named.items():
        if isinstance(value, str) and is_outside(value):
            found = put(found, path, placed_name(value, start(path)))
        elif isinstance(value, list):
            several = [placed_name(each, start(path)) if isinstance(each, str) else each for each in value]
            found = put(found, path, several)
    return found


def _keys_set(assignment: str) -> list[Keys]:
    """Return the keys that a flag sets: its own, or those that its grid varies."""
    key, value = parse_assignment(assignment)
    grid = put({}, key, value).get("grid")
    found = [varied for varied, _ in leaves(grid)] if isinstance(grid, Mapping) else [key]
    return [new_key(each, warn=False) for each in found]


def _all_given(table: Table, keys: Iterable[str]) -> list[tuple[Keys, object]]:
    return [each for key in keys for each in _given(table, tuple(key.split(".")))]


def _given(value: object, pattern: Keys, before: Keys = ()) -> Iterator[tuple[Keys, object]]:
    """Yield the keys that match a pattern, with their values."""
    if not pattern:
        yield before, value
    elif isinstance(value, Mapping):
        for name in value if pattern[0] == "*" else [pattern[0]]:
            if name in value:
                yield from _given(value[name], pattern[1:], (*before, name))


def read(path: Path) -> dict[str, object]:
    """Return the raw table in a TOML file. Raises ConfigError."""
    try:
        return tomllib.loads(path.read_text("utf-8-sig"))
    except FileNotFoundError:
        raise ConfigError(f"{path}: no such file{_neighbour(path)}") from None
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{path}: not valid TOML: {error}") from None


def override(table: Table, assignments: Iterable[str]) -> dict[str, object]:
    """Return a copy of a table with each `key.path=value` set, in order, even if its grid varies the key."""
    result = with_new_keys(table)
    written: dict[Keys, Keys] = {}
    for text in assignments:
        try:
            path, value = parse_assignment(text)
            new, value = renewed(path, value)
            if written.setdefault(new, path) != path:
                raise ConfigError(f"{'.'.join(written[new])} is another name of this key; give one of them")
            result = fix(result, new_key(path[1:], warn=False) if path[0] == "grid" else new)
            result = put(result, new, value)
        except ConfigError as error:
            raise ConfigError(f"--set {text}: {error}") from None
    return result


def merged(table: Table, more: Table) -> dict[str, object]:
    """Return a copy of a table with another merged over it, table by table."""
    result = dict(table)
    for name, value in more.items():
        there = result.get(name)
        both = isinstance(there, Mapping) and isinstance(value, Mapping)
        result[name] = merged(there, value) if both else value  # type: ignore[arg-type]
    return result


def parse_assignment(text: str) -> tuple[tuple[str, ...], object]:
    """Return the path and value of an assignment: `cluster.nodes=8` → `("cluster", "nodes")` and 8."""
    key, equals, value = text.partition("=")
    if not equals or not value.strip():
        raise ConfigError("no value; write key.path=value, for example --set cluster.nodes=8")
    return parse_key(key.strip()), _parse_value(value.strip())


def _parse_value(text: str) -> object:
    """Return a TOML value; a bare word is a string, since shells remove quotes."""
    try:
        (value,) = tomllib.loads(f"value = {text}").values()
    except ValueError as error:
        if text[0] in "\"'[{" or not text.isprintable():
            raise ConfigError(f"the value is not valid TOML: {error}") from None
        return text
    return value


def _neighbour(path: Path) -> str:
    """Return `. Did you mean 'shipped.toml'?` if the folder has a file with a similar name."""
    names = [found.name for found in path.parent.glob("*.toml")]
    close = get_close_matches(path.name, names, n=1)
    return f". Did you mean {str(path.with_name(close[0]))!r}?" if close else ""


def dump(config: object) -> str:
    """Return the resolved configuration as TOML, defaults included; settings that are None are left out."""
    return tomli_w.dumps(_section(config))


def _section(config: Any) -> dict[str, object]:
    section = {}
    for name, field in keys(config).items():
        value = getattr(config, name)
        if value is not None:
            section[name] = _value(value)
        elif field.default is not None:
            raise ValueError(f"{name} is None, which TOML cannot express, and None is not its default")
    return section


def _value(value: Any) -> object:
    if is_dataclass(value):
        return _section(value)
    if isinstance(value, Mapping):
        return {name: _value(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_value(inner) for inner in value]
    return str(value) if isinstance(value, Path) else value
