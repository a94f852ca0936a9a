"""List what can be configured; the docstring under each field is its only documentation."""

import ast
import inspect
from collections.abc import Iterator
from dataclasses import MISSING, Field, is_dataclass
from itertools import pairwise
from textwrap import dedent
from typing import Any, Literal, NamedTuple, get_args, get_origin, get_type_hints

from rota.config.bind import is_required, keys, show, without_none
from rota.core.text import aligned

DEFAULT_WIDTH = 24


class KeyDescription(NamedTuple):
    """One line of the list."""

    key: str
    default: str
    meaning: str


def describe(kind: type) -> list[KeyDescription]:
    """Return every setting of a configuration, each section before its settings."""
    return list(_settings(kind, ""))


def help_text(kind: type) -> str:
    """Return the list as aligned columns, for `--help-config`."""
    settings = [setting._replace(default=shorten(setting.default)) for setting in describe(kind)]
    return "\n".join(aligned(settings, left=3, gap=2)) if settings else ""


def shorten(text: str) -> str:
    """Return a default cut to the width of its column."""
    return text if len(text) <= DEFAULT_WIDTH else text[: DEFAULT_WIDTH - 1] + "…"


def _settings(kind: Any, prefix: str) -> Iterator[KeyDescription]:
    kinds, meanings = get_type_hints(kind), _meanings(kind)
    for name, field in keys(kind).items():
        section, suffix = _section_in(kinds[name])
        meaning = meanings.get(name, "") + _choices(kinds[name])
        key = f"{prefix}{name}{suffix}"
        yield KeyDescription(
            key, _default(field, section), meaning or (section and _first_line(section)) or ""
        )
        if section:
            yield from _settings(section, f"{key}.")


def _section_in(kind: Any) -> tuple[Any, str]:
    """Return the dataclass that a field holds, and what follows its key.

    This is `""`, `"[]"` for a list of tables, or `".NAME"` for tables named by the user.
    """
    kind = without_none(kind)
    if get_origin(kind) in (list, tuple) and is_dataclass(get_args(kind)[0]):
        return get_args(kind)[0], "[]"
    if get_origin(kind) is dict and is_dataclass(get_args(kind)[1]):
        return get_args(kind)[1], ".NAME"
    return (kind, "") if is_dataclass(kind) else (None, "")


def _default(field: Field[Any], section: Any) -> str:
    if is_required(field):
        return "required"
    if section:
        return "optional"
    value = field.default_factory() if field.default_factory is not MISSING else field.default
    return "none" if value is None else show(value)


def _choices(kind: Any) -> str:
    kind = without_none(kind)
    return f" One of: {', '.join(map(str, get_args(kind)))}." if get_origin(kind) is Literal else ""


def _first_line(kind: Any) -> str:
    return (inspect.getdoc(kind) or "").partition("\n")[0]


def _meanings(kind: Any) -> dict[str, str]:
    """Return the docstrings under the fields of a dataclass and of its bases."""
    meanings: dict[str, str] = {}
    ancestors: list[Any] = [ancestor for ancestor in reversed(kind.__mro__) if is_dataclass(ancestor)]
    for ancestor in ancestors:
        meanings |= _meanings_in_source(inspect.getsource(ancestor))
    return meanings


def _meanings_in_source(source: str) -> dict[str, str]:
    (definition,) = ast.parse(dedent(source)).body
    assert isinstance(definition, ast.ClassDef)
    return {
        field.target.id: " ".join(text.split())
        for field, below in pairwise(definition.body)
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)
        if isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant)
        if isinstance(text := below.value.value, str)
    }
