"""Expansion of `[grid]`: one configuration file, many points.

    [grid]
    "cluster.nodes" = [8, 16]
    seed = [0, 1, 2]

gives six points named `nodes=8,seed=0` … `nodes=16,seed=2`. The names are valid folder names.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import combinations, product
from math import prod
from pathlib import Path
from typing import NamedTuple

from rota.config.bind import Table, parse_key, put, show
from rota.config.renamed import new_key
from rota.core.errors import ConfigError

Key = tuple[str, ...]
Axes = dict[Key, list[object]]


class GridPoint(NamedTuple):
    """One point of a grid: a unique readable name, and a table without `[grid]`."""

    name: str
    table: dict[str, object]
    parameters: dict[str, object]
    """The varied values, by dotted key."""


def expand(table: Table, file: str | Path = "") -> list[GridPoint]:
    """Return every point of the grid, the last axis varying fastest; without a grid, one unnamed point."""
    with _placed(file):
        return _expand(table)


def count(table: Table, file: str | Path = "") -> int:
    """Return the number of points of the grid without creating them."""
    with _placed(file):
        return prod(map(len, _axes_of(table).values()))


def short_names(keys: Iterable[str]) -> dict[str, str]:
    """Return the last part of each dotted key if it is unique, else the whole key."""
    known = list(dict.fromkeys(keys))
    ends = Counter(key.rpartition(".")[2] for key in known)
    return {key: end if ends[end := key.rpartition(".")[2]] == 1 else key for key in known}


@contextmanager
def _placed(file: str | Path) -> Iterator[None]:
    """Prefix errors with the file and `grid`."""
    try:
        yield
    except ConfigError as error:
        raise ConfigError(f"{file}: grid: {error}" if str(file) else f"grid: {error}") from None


def fix(table: Table, path: Key) -> dict[str, object]:
    """Return a copy of a table whose grid no longer varies the key at `path`, nor any key below it."""
    grid = table.get("grid")
    if not isinstance(grid, Mapping):
        return dict(table)
    left = _without(grid, path)
    return {name: value for name, value in table.items() if name != "grid"} | ({"grid": left} if left else {})


def _expand(table: Table) -> list[GridPoint]:
    rest = {name: value for name, value in table.items() if name != "grid"}
    axes = _axes_of(table)
    keys = [".".join(path) for path in axes]
    points = []
    for name, values in zip(_point_names(axes), product(*axes.values()), strict=True):
        point = rest
        for path, value in zip(axes, values, strict=True):
            point = put(point, new_key(path), value)
        points.append(GridPoint(name, point, dict(zip(keys, values, strict=True))))
    return points


def _axes_of(table: Table) -> Axes:
    return _axes(table["grid"]) if "grid" in table else {}


def _axes(grid: object) -> Axes:
    if not isinstance(grid, Mapping):
        raise ConfigError(f"{show(grid)} is not a table of lists")
    if not grid:
        raise ConfigError("is empty; give lists of values, or leave it out")
    axes: Axes = {}
    for path, values in leaves(grid):
        if path in axes:
            raise ConfigError(f"{'.'.join(path)}: it already has a list")
        axes[path] = _axis(".".join(path), values)
    for outer, inner in combinations(sorted(axes, key=_new), 2):
        if _new(inner)[: len(_new(outer))] == _new(outer):
            raise ConfigError(f"{'.'.join(inner)}: {'.'.join(outer)} already varies as a whole")
    return axes


def _new(path: Key) -> Key:
    return new_key(path, warn=False)


def _axis(name: str, values: object) -> list[object]:
    if not isinstance(values, list):
        raise ConfigError(f"{name}: {show(values)} is not a list. Did you mean [{show(values)}]?")
    if not values:
        raise ConfigError(f"{name}: the list of values is empty")
    for value, times in Counter(map(show, values)).items():
        if times > 1:
            raise ConfigError(f"{name}: {value} occurs {times} times")
    return values


def leaves(grid: Table, above: Key = ()) -> Iterator[tuple[Key, object]]:
    """Yield the paths in a grid with their values: `"cluster.nodes"` and `cluster.nodes` are the same."""
    for name, value in grid.items():
        path = (*above, *parse_key(name))
        if isinstance(value, Mapping):
            yield from leaves(value, path)
        else:
            yield path, value


def _point_names(axes: Axes) -> Iterator[str]:
    """Yield the names of the points, such as `nodes=8,seed=0`."""
    names = [file_name(name) for name in short_names(".".join(path) for path in axes).values()]
    for labels in product(*map(distinct_names, axes.values())):
        yield ",".join(f"{name}={label}" for name, label in zip(names, labels, strict=True))


def distinct_names(values: Iterable[object]) -> list[str]:
    """Return short texts for the values of an axis, numbered where they would be equal."""
    labels = [file_name(value) for value in _differences(list(values))]
    times = Counter(labels)
    return [label if times[label] == 1 else f"{label}#{k}" for k, label in enumerate(labels, start=1)]


def _differences(values: list[object]) -> list[object]:
    """Return the values, of tables only what differs between them: `resnet18+cifar10`."""
    tables = [value for value in values if isinstance(value, Mapping)]
    if len(tables) < max(2, len(values)):
        return values
    keys = dict.fromkeys(key for table in tables for key in table)
    varied = [key for key in keys if len({show(table.get(key, "")) for table in tables}) > 1]
    return ["+".join(file_name(table[key]) for key in varied if key in table) for table in tables]


def file_name(value: object) -> str:
    """Return a short text for a value that can be part of a file name."""
    text = value if isinstance(value, str) else show(value).replace(" = ", "=")
    return re.sub(r"[^\w.+=-]+", "_", text).strip("_")[:40]


def _without(grid: Table, path: Key, above: Key = ()) -> dict[str, object]:
    kept: dict[str, object] = {}
    for name, values in grid.items():
        written = (*above, *parse_key(name))
        key = _new(written)
        if key[: len(path)] == path:
            continue
        if path[: len(key)] == key:
            if not isinstance(values, Mapping):
                raise ConfigError(f"the grid varies {name!r} as a whole; set grid.{name} instead")
            values = _without(values, path, written)
        kept[name] = values
    return kept
