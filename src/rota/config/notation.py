"""Dotted keys and values, as TOML writes them."""

import tomllib
from collections.abc import Mapping
from pathlib import Path

from rota.core.errors import ConfigError

Table = Mapping[str, object]


def parse_key(text: str) -> tuple[str, ...]:
    """`cluster.nodes` → `("cluster", "nodes")`; parts may be quoted, as in TOML."""
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
    """A copy of a table with the key at `path` set; tables on the way are made as needed.

    On the way through a list of tables, the key is set in each of them.
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
    """A value on one line, as one would write it in a TOML file."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str | Path):
        return repr(str(value))
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(show, value))}]"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key} = {show(inner)}" for key, inner in value.items()) + "}"
    return str(value)
