"""Configurations as JSON, and back, without losing what kind of thing a value was.

What JSON has no form for (a class, a function, a path …) is kept in a list that travels with the train
function, and the JSON says which one it is. Whoever has not got that list sees how it was printed.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

Plain = Any
"""What JSON can hold."""
TAGS = ("tuple", "table", "thing")


class Printed(NamedTuple):
    """Stands for a thing that is not at hand."""

    text: str

    def __repr__(self) -> str:
        return self.text


def things_of(value: Any) -> list[Any]:
    """All that JSON has no form for in a value, tables and lists opened."""
    found: list[Any] = []
    _gather(value, found)
    return found


def _gather(value: Any, found: list[Any]) -> None:
    if type(value) in (list, tuple):  # one of a kind of its own is a thing
        for part in value:
            _gather(part, found)
    elif isinstance(value, Mapping):
        _gather([*value.keys(), *value.values()], found)
    elif not _is_scalar(value) and not _is_number(value) and not any(value is other for other in found):
        found.append(value)


def _is_scalar(value: Any) -> bool:
    return type(value) in (bool, int, float, str, type(None))


def _is_number(value: Any) -> bool:
    """Whether it is one of NumPy's, for which a plain one does as well."""
    return (
        type(value).__module__ == "numpy" and getattr(value, "shape", None) == () and hasattr(value, "item")
    )


def to_plain(value: Any, things: Sequence[Any] = ()) -> Plain:
    """A value as JSON."""
    if _is_scalar(value):
        return value
    if _is_number(value):
        return value.item()
    if type(value) is list:
        return [to_plain(part, things) for part in value]
    if type(value) is tuple:
        return {"tuple": [to_plain(part, things) for part in value]}
    if isinstance(value, Mapping):
        return _table(value, things)
    for position, thing in enumerate(things):
        if thing is value:
            return {"thing": [position, printed(value)]}
    return {"thing": [None, printed(value)]}


def printed(thing: Any) -> str:
    """The same in every process: without the place where it is in memory."""
    return re.sub(r" at 0x[0-9a-f]+", "", repr(thing))


def _table(table: Mapping[Any, Any], things: Sequence[Any]) -> Plain:
    """As it is, unless that could be taken for something else."""
    if all(type(key) is str for key in table) and not (len(table) == 1 and next(iter(table)) in TAGS):
        return {key: to_plain(part, things) for key, part in table.items()}
    return {"table": [[to_plain(key, things), to_plain(part, things)] for key, part in table.items()]}


def from_plain(plain: Plain, things: Sequence[Any] | None = None) -> Any:
    """The value again; without the things, what they were printed as."""
    if isinstance(plain, list):
        return [from_plain(part, things) for part in plain]
    if not isinstance(plain, dict):
        return plain
    if len(plain) == 1:
        ((tag, body),) = plain.items()
        if tag == "tuple":
            return tuple(from_plain(part, things) for part in body)
        if tag == "table":
            return {from_plain(key, things): from_plain(part, things) for key, part in body}
        if tag == "thing":
            position, text = body
            return _thing(position, text, things)
    return {key: from_plain(part, things) for key, part in plain.items()}


def _thing(position: int | None, text: str, things: Sequence[Any] | None) -> Any:
    """Of equal ones the one at its position. A restored experiment may have another list than it had."""
    alike = [number for number, thing in enumerate(things or ()) if printed(thing) == text]
    if things is None or not alike:
        return Printed(text)
    return things[position if position in alike else alike[0]]
