"""Write a configuration as TOML, so that the file binds back to an equal object."""

from collections.abc import Mapping
from dataclasses import is_dataclass
from pathlib import Path
from typing import Any

import tomli_w

from rota.config.bind import keys


def dump(config: object) -> str:
    """The resolved configuration as TOML text, defaults included; a setting that is None is left out."""
    return tomli_w.dumps(_section(config))


def _section(config: Any) -> dict[str, object]:
    section = {}
    for name, field in keys(config).items():
        value = getattr(config, name)
        if value is not None:
            section[name] = _value(value)
        elif field.default is not None:
            raise ValueError(f"{name} is None, which TOML cannot say, and None is not its default")
    return section


def _value(value: Any) -> object:
    if is_dataclass(value):
        return _section(value)
    if isinstance(value, Mapping):
        return {name: _value(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_value(inner) for inner in value]
    return str(value) if isinstance(value, Path) else value
