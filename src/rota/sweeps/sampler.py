"""Search spaces, and the configurations that are drawn from them."""

from collections.abc import Iterator, Mapping
from itertools import product
from math import exp, log
from typing import Any

import numpy as np

Cfg = dict[str, Any]
"""A configuration: values, search spaces and nested tables by name."""


class Uniform:
    """A number that is uniformly distributed between two others."""

    def __init__(self, low: float, high: float, seed: int | None = None) -> None:
        self.low, self.high = low, high
        self._random = np.random.default_rng(seed)

    def __call__(self) -> float:
        return float(self._random.uniform(self.low, self.high))


class LogUniform:
    """A number whose logarithm is uniformly distributed."""

    def __init__(self, low: float, high: float, seed: int | None = None) -> None:
        if not 0 < low < high:
            raise AssertionError(f"LogUniform from {low} to {high}: give 0 < low < high")
        self.low, self.high = low, high
        self._random = np.random.default_rng(seed)

    def __call__(self) -> float:
        return exp(self._random.uniform(log(self.low), log(self.high)))


class Choice:
    """One of several values of the same type, all equally likely."""

    def __init__(self, choices: list[Any], seed: int | None = None) -> None:
        if len({type(choice) for choice in choices}) != 1:
            raise AssertionError(f"Choice of {choices}: give one or more things of the same type")
        self.choices = list(choices)
        self._random = np.random.default_rng(seed)

    def __call__(self) -> Any:
        return self.choices[self._random.choice(len(self.choices))]


class Grid:
    """Each of several values in turn."""

    def __init__(self, values: list[Any]) -> None:
        if not len(values):
            raise AssertionError("Grid of nothing: give one or more values")
        self.values = list(values)

    def __call__(self) -> list[Any]:
        return list(self.values)


Path = tuple[str, ...]
"""The names that lead to a value in nested tables."""


class Sampler:
    """Configurations drawn from one with search spaces: n of them, or all points of its grids."""

    def __init__(self, cfg: Mapping[str, Any], n: int = 1) -> None:
        self.cfg = cfg
        self._grids = [(path, leaf()) for path, leaf in leaves(cfg) if isinstance(leaf, Grid)]
        self._points = list(product(*(values for _, values in self._grids))) if self._grids else []
        self._drawn = 0
        self.n = len(self._points) if self._grids else n

    def __len__(self) -> int:
        return self.n

    def __iter__(self) -> Iterator[Cfg]:
        return (self() for _ in range(self.n))

    def __call__(self) -> Cfg:
        """Return the next configuration; after the last point of the grids comes the first."""
        point = self._points[self._drawn % len(self._points)] if self._points else ()
        self._drawn += 1
        chosen = {path: value for (path, _), value in zip(self._grids, point, strict=True)}
        return _drawn(self.cfg, (), chosen)


def leaves(cfg: Mapping[str, Any], above: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Yield path and value of everything in a configuration, in order."""
    for name, value in cfg.items():
        if isinstance(value, Mapping):
            yield from leaves(value, (*above, name))
        else:
            yield (*above, name), value


def possible(cfg: Mapping[str, Any]) -> list[Any]:
    """Return all values in a configuration, or that can be chosen for it, other than random numbers."""
    found: list[Any] = []
    for _, leaf in leaves(cfg):
        if isinstance(leaf, Choice):
            found += leaf.choices
        elif isinstance(leaf, Grid):
            found += leaf.values
        elif not isinstance(leaf, Uniform | LogUniform):
            found.append(leaf)
    return found


def _drawn(cfg: Mapping[str, Any], above: Path, chosen: dict[Path, Any]) -> Cfg:
    found: Cfg = {}
    for name, value in cfg.items():
        path = (*above, name)
        if isinstance(value, Mapping):
            found[name] = _drawn(value, path, chosen)
        elif isinstance(value, Uniform | LogUniform | Choice):
            found[name] = value()
        else:
            found[name] = chosen.get(path, value)
    return found
