"""What agents do where they have not learned, beside what could be done there at all.

That is bounded by the noise of the recordings: if two recordings of the same scenario, from different seeds,
have a correlation of r, then even the sequence that is best in truth is expected to have a headroom of only
√r in one of them, if truth and noise are Gaussian. From one pair of recordings that is a rough estimate.
"""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from typing import Any

import numpy as np

from rota.core.arrays import Floats
from rota.learning.outcome import Evaluation, Row, share
from rota.learning.problem import Problem, names, problem_of
from rota.recordings.gain import Noise, but_for_seed, by_model, noise
from rota.recordings.models import models
from rota.recordings.tree import Tree


def ceilings(problems: Sequence[Problem]) -> dict[str, float]:
    """Name → the headroom that the truly best sequence is expected to have, where there are two seeds."""
    found: dict[str, list[float]] = {}
    called = names([problem.tree for problem in problems])
    for (name, one), (_, other) in combinations(zip(called, problems, strict=True), 2):
        if one.name == other.name and _another_seed(one.tree, other.tree):
            found.setdefault(name, []).append(_correlation(one.accuracies, other.accuracies))
    return {name: math.sqrt(max(0.0, float(np.mean(each)))) for name, each in found.items()}


def _another_seed(one: Tree, other: Tree) -> bool:
    return one.seed != other.seed and but_for_seed(one) == but_for_seed(other)


def _correlation(one: Floats, other: Floats) -> float:
    """0 where all are equal: then nothing can be told from one about the other."""
    return float(np.corrcoef(one, other)[0, 1]) if np.ptp(one) and np.ptp(other) else 0.0


@dataclass(frozen=True, slots=True)
class Summary:
    """What agents do where they have not learned, by scenario: means over the seeds of the agents."""

    rows: tuple[Row, ...]
    """All of them."""
    ceilings: dict[str, float]
    noise: dict[str, Noise]
    """Of the recordings of each model, where there are two seeds."""

    @property
    def headroom(self) -> float:
        """The mean over all rows."""
        return float(np.mean([row.agent.headroom for row in self.rows]))

    @property
    def fixed(self) -> float | None:
        """The same of the best fixed sequence; None if some rows have none."""
        found = [each for row in self.rows if (each := _fixed(row)) is not None]
        return float(np.mean(found)) if len(found) == len(self.rows) else None

    @property
    def never(self) -> float:
        """The same of never changing anything."""
        return float(np.mean([_never(row) for row in self.rows]))

    @property
    def bounded(self) -> tuple[float, float] | None:
        """The mean headroom and the mean ceiling where a ceiling is known; None if it is nowhere."""
        pairs = zip(self.rows, self.called, strict=True)
        known = [(row.agent.headroom, self._ceiling(row, model)) for row, model in pairs]
        found = [(headroom, ceiling) for headroom, ceiling in known if ceiling is not None]
        if not found:
            return None
        reached, most = np.mean(found, axis=0).tolist()
        return reached, most

    @property
    def called(self) -> list[str]:
        """The model of each row."""
        return models([row.agent for row in self.rows])

    def _ceiling(self, row: Row, model: str) -> float | None:
        return self.ceilings.get(f"{model.lower()}/{row.agent.scenario}")

    def to_json(self) -> dict[str, Any]:
        """As plain values."""
        scenarios = [row.to_json() for row in self.rows]
        return {
            "scenarios": scenarios,
            "headroom": self.headroom,
            "headroom_fixed": self.fixed,
            "headroom_never": self.never,
            "ceilings": self.ceilings,
            "where_bounded": self.bounded and dict(zip(("headroom", "ceiling"), self.bounded, strict=True)),
            "noise": {model: asdict(noise) for model, noise in self.noise.items()},
        }

    def text(self) -> str:
        """As a table, a line for each tree."""
        width = max([10, *map(len, self.called)])
        lines = [
            f"{'model':<{width}} {'left out':<15} {'headroom':>9} {'± seeds':>8} {'fixed':>7} {'never':>7} "
            f"{'ceiling':>8}  rank"
        ]
        groups: dict[tuple[str, str, int], list[Row]] = {}
        for model, row in zip(self.called, self.rows, strict=True):
            groups.setdefault((model, row.agent.scenario, row.agent.seed), []).append(row)
        for (model, scenario, seed), rows in groups.items():
            found = [row.agent.headroom for row in rows]
            ceiling = self._ceiling(rows[0], model)
            lines.append(
                f"{model:<{width}} {scenario + (f' ({seed})' if seed else ''):<15} {np.mean(found):>9.2f} "
                f"{np.std(found):>8.2f} {_number(_fixed(rows[0])):>7} {_never(rows[0]):>7.2f} "
                f"{_number(ceiling):>8}  " + " ".join(str(row.agent.rank) for row in rows)
            )
        means = f"{self.headroom:>9.2f} {'':>8} {_number(self.fixed):>7} {self.never:>7.2f}"
        lines.append(f"{'mean':<{width + 16}} {means}")
        if self.bounded:
            reached, ceiling = self.bounded
            lines.append(
                f"where there are two recordings: headroom {reached:.2f}, ceiling about {ceiling:.2f}"
            )
        for model, each in self.noise.items():
            lines.append(f"another seed changes an accuracy of {model} by ±{each.apart:.1%} within its tree")
        return "\n".join(lines)


def _fixed(row: Row) -> float | None:
    """The headroom of the fixed sequence in the same scenario, if there is one."""
    found = row.others
    return None if found.fixed is None else share(found.fixed, found.mean, found.oracle)


def _never(row: Row) -> float:
    found = row.others
    return share(found.never, found.mean, found.oracle)


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"


def summary(evaluations: Sequence[Evaluation], trees: Sequence[Tree]) -> Summary:
    """Of all that was left out."""
    rows = tuple(row for each in evaluations for row in each.rows)
    noises = {model: noise(group) for model, group in by_model(trees).items()}
    found = {model: each for model, each in noises.items() if each is not None}
    return Summary(rows, ceilings([problem_of(tree) for tree in trees]), found)
