"""The parameters of a grid as results show them: `load=0.8 seed=1`, and only those that vary."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rota.config.bind import show
from rota.config.grid import distinct_names, file_name, short_names

Parameters = Mapping[str, object]
"""Dotted key → value, as in `[grid]`; empty for a run that is not of a grid."""
MISSING = "–"


def varying(points: Iterable[Parameters]) -> tuple[str, ...]:
    """Return the keys that do not have the same value everywhere; all keys of a single point."""
    found = list({shown(point): point for point in points}.values())
    keys = dict.fromkeys(key for point in found for key in point)
    return tuple(key for key in keys if len(found) == 1 or len({value_of(each, key) for each in found}) > 1)


def constant(points: Sequence[Parameters], keys: Iterable[str]) -> tuple[str, ...]:
    """Return those of the keys that have the same value everywhere."""
    return tuple(key for key in keys if len({value_of(each, key) for each in points}) == 1)


class Labels:
    """Short texts for points of a grid: the same parameter and value always have the same text."""

    def __init__(self, points: Iterable[Parameters]) -> None:
        found = list(points)
        self.keys = varying(found)
        """Parameters that vary."""
        self.names = short_names(key for point in found for key in point)
        """Short name of each key: its last part, unless two keys share that."""
        self._texts = {key: _texts(point[key] for point in found if key in point) for key in self.names}

    def text(self, point: Parameters, keys: Iterable[str] | None = None) -> str:
        """Return `load=0.8 seed=1`; empty if nothing varies."""
        known = [key for key in (self.keys if keys is None else keys) if key in point]
        return " ".join(f"{self.names[key]}={self.value(point, key)}" for key in known)

    def file_name(self, point: Parameters, keys: Iterable[str]) -> str:
        """Return `load=0.8,seed=1`, the name of the folder of a point."""
        known = [key for key in keys if key in point]
        return ",".join(f"{file_name(self.names[key])}={self.value(point, key)}" for key in known)

    def value(self, point: Parameters, key: str) -> str:
        """Return the value of a parameter at a point, as text."""
        return self._texts[key][show(point[key])] if key in point else MISSING


def is_seed(key: str) -> bool:
    """Whether a parameter is a seed."""
    return key.rpartition(".")[2] == "seed"


def value_of(point: Parameters, key: str) -> str:
    """Return text that is the same for equal values."""
    return show(point[key]) if key in point else MISSING


def shown(point: Parameters) -> str:
    """Return text that is the same for equal points."""
    return show(dict(sorted(point.items())))


def in_order(point: Parameters, keys: Iterable[str]) -> tuple[Any, ...]:
    """Return what points are sorted by: numbers by their size, and before everything else."""
    values = [point.get(key, MISSING) for key in keys]
    return tuple((0, value, "") if is_number(value) else (1, 0, show(value)) for value in values)


def is_number(value: object) -> bool:
    """Return whether a value is a number; True and False are none."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def _texts(values: Iterable[object]) -> dict[str, str]:
    """Return the short text of each value by its text in a file; different values have different ones."""
    distinct = {show(value): value for value in values}
    return dict(zip(distinct, distinct_names(distinct.values()), strict=True))
