"""Read a TOML file and apply overrides given as flags."""

import tomllib
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from pathlib import Path

from rota.config.grid import fix
from rota.config.notation import Table, parse_key, put
from rota.core.errors import ConfigError


def read(path: Path) -> dict[str, object]:
    """The raw table in a TOML file."""
    try:
        return tomllib.loads(path.read_text("utf-8-sig"))
    except FileNotFoundError:
        raise ConfigError(f"{path}: no such file{_neighbour(path)}") from None
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{path}: not valid TOML: {error}") from None


def override(table: Table, assignments: Iterable[str]) -> dict[str, object]:
    """A copy of a table with each `key.path=value` set, in order; a flag wins over the file and its grid."""
    result = dict(table)
    for text in assignments:
        try:
            path, value = parse_assignment(text)
            result = fix(result, path[1:] if path[0] == "grid" else path)
            result = put(result, path, value)
        except ConfigError as error:
            raise ConfigError(f"--set {text}: {error}") from None
    return result


def merged(table: Table, more: Table) -> dict[str, object]:
    """A copy of a table with what another says put over it, table by table."""
    result = dict(table)
    for name, value in more.items():
        there = result.get(name)
        both = isinstance(there, Mapping) and isinstance(value, Mapping)
        result[name] = merged(there, value) if both else value  # type: ignore[arg-type]
    return result


def parse_assignment(text: str) -> tuple[tuple[str, ...], object]:
    """`cluster.nodes=8` → `("cluster", "nodes")` and 8."""
    key, equals, value = text.partition("=")
    if not equals or not value.strip():
        raise ConfigError("no value; write key.path=value, for example --set cluster.nodes=8")
    return parse_key(key.strip()), _parse_value(value.strip())


def _parse_value(text: str) -> object:
    """A TOML value; a bare word is a string, because shells eat quotes."""
    try:
        (value,) = tomllib.loads(f"value = {text}").values()
    except ValueError as error:
        if text[0] in "\"'[{" or not text.isprintable():
            raise ConfigError(f"the value is not valid TOML: {error}") from None
        return text
    return value


def _neighbour(path: Path) -> str:
    """`. Did you mean 'shipped.toml'?` if the folder has a file with nearly that name."""
    names = [found.name for found in path.parent.glob("*.toml")]
    close = get_close_matches(path.name, names, n=1)
    return f". Did you mean {str(path.with_name(close[0]))!r}?" if close else ""
