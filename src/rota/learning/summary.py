"""What agents do where they have not learned, beside what could be done there at all.

That is bounded by the noise of the recordings: if two recordings of the same scenario, from different seeds,
have a correlation of r, then even the sequence that is best in truth is expected to have a headroom of only
√r in one of them.
"""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from rota.learning.outcome import Evaluation, Row
from rota.learning.problem import Problem, problem_of
from rota.recordings.gain import Noise, by_model, noise
from rota.recordings.tree import Tree


def ceilings(problems: Sequence[Problem]) -> dict[str, float]:
    """Name → the headroom that the truly best sequence is expected to have, where there are two seeds."""
    found = {}
    for problem in problems:
        twins = [
            each for each in problems if each.name == problem.name and each.tree.seed != problem.tree.seed
        ]
        if twins:
            alike = [np.corrcoef(problem.accuracies, twin.accuracies)[0, 1] for twin in twins]
            found[problem.name] = math.sqrt(max(0.0, float(np.mean(alike))))
    return found


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
    def fixed(self) -> float:
        """The same of the best fixed sequence."""
        return float(np.mean([_headroom(row, row.others.fixed) for row in self.rows]))

    def to_json(self) -> dict[str, Any]:
        """As plain values."""
        scenarios = [row.to_json() for row in self.rows]
        return {
            "scenarios": scenarios,
            "headroom": self.headroom,
            "headroom_fixed": self.fixed,
            "ceilings": self.ceilings,
            "noise": {model: asdict(noise) for model, noise in self.noise.items()},
        }

    def text(self) -> str:
        """As a table, a line for each tree."""
        lines = [
            f"{'model':<10} {'left out':<15} {'headroom':>9} {'± seeds':>8} {'fixed':>7} {'ceiling':>8}  rank"
        ]
        groups: dict[tuple[str, str, int], list[Row]] = {}
        for row in self.rows:
            groups.setdefault((row.agent.model, row.agent.scenario, row.agent.seed), []).append(row)
        for (model, scenario, seed), rows in groups.items():
            found = [row.agent.headroom for row in rows]
            ceiling = self.ceilings.get(f"{model.lower()}/{scenario}")
            lines.append(
                f"{model:<10} {scenario + (f' ({seed})' if seed else ''):<15} {np.mean(found):>9.2f} "
                f"{np.std(found):>8.2f} {_headroom(rows[0], rows[0].others.fixed):>7.2f} "
                f"{'–' if ceiling is None else f'{ceiling:.2f}':>8}  "
                + " ".join(str(row.agent.rank) for row in rows)
            )
        lines.append(f"{'mean':<26} {self.headroom:>9.2f} {'':>8} {self.fixed:>7.2f}")
        for model, each in self.noise.items():
            lines.append(f"another seed changes an accuracy of {model} by ±{each.apart:.1%} within its tree")
        return "\n".join(lines)


def _headroom(row: Row, accuracy: float | None) -> float:
    """Of another accuracy in the same scenario; NaN if there is none."""
    best, mean = row.others.oracle, row.others.mean
    return math.nan if accuracy is None else (accuracy - mean) / (best - mean) if best > mean else 0.0


def summary(evaluations: Sequence[Evaluation], trees: Sequence[Tree]) -> Summary:
    """Of all that was left out."""
    rows = tuple(row for each in evaluations for row in each.rows)
    noises = {model: noise(group) for model, group in by_model(trees).items()}
    found = {model: each for model, each in noises.items() if each is not None}
    return Summary(rows, ceilings([problem_of(tree) for tree in trees]), found)
