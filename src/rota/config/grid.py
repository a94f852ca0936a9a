"""Expand `[grid]`: one configuration file asks one question, at many points.

    [grid]
    "cluster.nodes" = [8, 16]
    seed = [0, 1, 2]

gives six points named `nodes=8,seed=0` … `nodes=16,seed=2`. Names are fit to be names of folders.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import combinations, product
from pathlib import Path
from typing import NamedTuple

from rota.config.notation import Table, parse_key, put, show
from rota.core.errors import ConfigError

Key = tuple[str, ...]
Axes = dict[Key, list[object]]


class Point(NamedTuple):
    """One point of a grid: a readable name that no other point has, and a table without `[grid]`."""

    name: str
    table: dict[str, object]


def expand(table: Table, file: str | Path = "") -> list[Point]:
    """Every point of the grid, the last axis varying fastest; without a grid, one point with no name."""
    try:
        return _expand(table)
    except ConfigError as error:
        raise ConfigError(f"{file}: grid: {error}" if str(file) else f"grid: {error}") from None


def fix(table: Table, path: Key) -> dict[str, object]:
    """A copy of a table whose grid no longer varies the key at `path`, nor any key below it."""
    grid = table.get("grid")
    if not isinstance(grid, Mapping):
        return dict(table)
    left = _without(grid, path)
    return {name: value for name, value in table.items() if name != "grid"} | ({"grid": left} if left else {})


def _expand(table: Table) -> list[Point]:
    rest = {name: value for name, value in table.items() if name != "grid"}
    axes = _axes(table["grid"]) if "grid" in table else {}
    points = []
    for names, values in zip(_point_names(axes), product(*axes.values()), strict=True):
        point = rest
        for path, value in zip(axes, values, strict=True):
            point = put(point, path, value)
        points.append(Point(names, point))
    return points


def _axes(grid: object) -> Axes:
    if not isinstance(grid, Mapping):
        raise ConfigError(f"{show(grid)} is not a table of lists")
    if not grid:
        raise ConfigError("is empty; give lists of values, or leave it out")
    axes: Axes = {}
    for path, values in leaves(grid):
        if path in axes:
            raise ConfigError(f"{'.'.join(path)}: there is a list for it already")
        axes[path] = _axis(".".join(path), values)
    for outer, inner in combinations(sorted(axes), 2):
        if inner[: len(outer)] == outer:
            raise ConfigError(f"{'.'.join(inner)}: {'.'.join(outer)} already varies as a whole")
    return axes


def _axis(name: str, values: object) -> list[object]:
    if not isinstance(values, list):
        raise ConfigError(f"{name}: {show(values)} is not a list. Did you mean [{show(values)}]?")
    if not values:
        raise ConfigError(f"{name}: the list of values is empty")
    for value, times in Counter(map(show, values)).items():
        if times > 1:
            raise ConfigError(f"{name}: {value} is there {times} times")
    return values


def leaves(grid: Table, above: Key = ()) -> Iterator[tuple[Key, object]]:
    """The paths in a grid with their values: `"cluster.nodes"` and `cluster.nodes` are the same."""
    for name, value in grid.items():
        path = (*above, *parse_key(name))
        if isinstance(value, Mapping):
            yield from leaves(value, path)
        else:
            yield path, value


def _point_names(axes: Axes) -> Iterator[str]:
    """`nodes=8,seed=0` …: the last part of each path if no other path ends in it, else all of it."""
    ends = Counter(path[-1] for path in axes)
    names = [_label(path[-1] if ends[path[-1]] == 1 else ".".join(path)) for path in axes]
    for labels in product(*map(_labels, axes.values())):
        yield ",".join(f"{name}={label}" for name, label in zip(names, labels, strict=True))


def _labels(values: list[object]) -> list[str]:
    """Short texts for the values of an axis, all different; a number is added where they would not be."""
    labels = [_label(value) for value in values]
    times = Counter(labels)
    return [label if times[label] == 1 else f"{label}#{k}" for k, label in enumerate(labels, start=1)]


def _label(value: object) -> str:
    text = value if isinstance(value, str) else show(value).replace(" = ", "=")
    return re.sub(r"[^\w.+=-]+", "_", text).strip("_")[:40]


def _without(grid: Table, path: Key) -> dict[str, object]:
    kept: dict[str, object] = {}
    for name, values in grid.items():
        key = parse_key(name)
        if key[: len(path)] == path:
            continue
        if path[: len(key)] == key:
            if not isinstance(values, Mapping):
                raise ConfigError(f"the grid varies {name!r} as a whole; set grid.{name} instead")
            values = _without(values, path[len(key) :])
        kept[name] = values
    return kept
