"""Comparisons of placement agents with rules: values, their file, and their table."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from rota.config.bind import facts
from rota.core.arrays import Floats
from rota.core.errors import InputError
from rota.core.text import aligned
from rota.learning.files import EVALUATION, EvaluationFile, read_evaluation, write_evaluation
from rota.learning.placement.cases import Goal, time_to

KIND = "placement"
AGENT = "learned"
BEHIND = 0.02
"""Share of time beyond the best rule from which the agent counts as behind."""
AGAIN = "evaluate again: rota evaluate --agent DIR"


@dataclass(frozen=True, slots=True)
class ComparedRow:
    """One population on some slots at one dispatch cost: times ÷ lower bound, means over repetitions."""

    number: int
    slots: int
    trials: int
    spread: float
    """Ratio of the fastest slot's speed to the slowest's."""
    dispatch: float
    """Dispatch cost in intervals of a slot of speed 1."""
    ratios: dict[str, float]
    """Time ÷ lower bound of each allocation."""
    shuffled: float
    """Time ÷ lower bound of the agent with shuffled weights."""

    def __post_init__(self) -> None:
        if AGENT not in self.ratios or len(self.ratios) < 2:
            raise InputError(f"case {self.number}: the agent and a rule are not both there")
        if not all(ratio > 0.0 for ratio in self.ratios.values()):
            raise InputError(f"case {self.number}: ratios must be above 0")

    @property
    def best_other(self) -> float:
        """The time ÷ lower bound of the best rule."""
        return min(ratio for name, ratio in self.ratios.items() if name != AGENT)

    @property
    def behind(self) -> float:
        """The extra time of the agent compared with the best rule, as a share; below 0 if it is ahead."""
        return self.ratios[AGENT] / self.best_other - 1.0


@dataclass(frozen=True, slots=True)
class PlacementComparison:
    """The comparison of an agent with all rules, on all cases."""

    tried: tuple[ComparedRow, ...]
    goal: Goal = "makespan"
    """Goal of the cases."""

    def __post_init__(self) -> None:
        if not self.tried:
            raise InputError("no case was tried")
        for each in self.tried:
            if set(each.ratios) != set(self.names):
                raise InputError(f"tried: case {each.number}: not the allocations of the others")

    @property
    def names(self) -> list[str]:
        """The names of the allocations."""
        return list(self.tried[0].ratios)

    @property
    def dispatches(self) -> list[float]:
        """The dispatch costs of the cases."""
        return sorted({each.dispatch for each in self.tried})

    def at(self, dispatch: float) -> "PlacementComparison":
        """Return the comparison at one dispatch cost."""
        return replace(self, tried=tuple(each for each in self.tried if each.dispatch == dispatch))

    def ratios(self, name: str) -> Floats:
        """Return the times ÷ lower bound of one allocation, case by case."""
        return np.array([each.ratios[name] for each in self.tried])

    @property
    def shuffled(self) -> Floats:
        """The times ÷ lower bound of the agent with shuffled weights, case by case."""
        return np.array([each.shuffled for each in self.tried])

    @property
    def behind(self) -> Floats:
        """The extra time of the agent compared with the best rule, case by case."""
        return np.array([each.behind for each in self.tried])

    def longer(self, name: str) -> float:
        """Return the extra time of a rule compared with the agent, as a share; mean over cases."""
        return float(np.mean(self.ratios(name) / self.ratios(AGENT)) - 1.0)

    @property
    def shuffling_costs(self) -> float:
        """The extra time of the agent with shuffled weights, as a share; mean over cases."""
        return float(np.mean(self.shuffled / self.ratios(AGENT)) - 1.0)

    def summary(self) -> dict[str, Any]:
        """Return plain values, without the single cases."""
        others = [name for name in self.names if name != AGENT]
        return {
            "cases": len(self.tried),
            "ratio": {name: self._ratio(name) for name in self.names},
            "behind_best_other": {
                "mean": float(self.behind.mean()),
                "worst": float(self.behind.max()),
                f"share_over_{BEHIND:g}": float((self.behind > BEHIND).mean()),
            },
            "others_take_longer": {name: self.longer(name) for name in others},
            "shuffling_costs": self.shuffling_costs,
        }

    def _ratio(self, name: str) -> dict[str, Any]:
        found = self.ratios(name)
        by_dispatch = {f"{cost:g}": float(self.at(cost).ratios(name).mean()) for cost in self.dispatches}
        return {"mean": float(found.mean()), "worst": float(found.max()), "by_dispatch": by_dispatch}

    def to_json(self) -> dict[str, Any]:
        """Return plain values: the summary, the goal and the single cases."""
        return self.summary() | {"goal": self.goal, "tried": [asdict(each) for each in self.tried]}


def write_comparison(folder: Path, found: PlacementComparison, command: str) -> None:
    """Write a comparison to a folder, or replace the one that is there."""
    write_evaluation(folder, EvaluationFile(KIND, command, found.to_json()))


def read_comparison(folder: Path) -> tuple[PlacementComparison, str]:
    """Read a comparison, and the command that wrote it."""
    found = read_evaluation(folder, KIND, AGAIN)
    return facts(PlacementComparison, found.content, folder / EVALUATION, AGAIN, others=True), found.command


SHUFFLED = f"{AGENT}, shuffled"


def table(found: PlacementComparison) -> str:
    """Return a table with a line per allocation, and a line that compares the agent with the best rules."""
    costs = [f"{cost:g}" for cost in found.dispatches]
    head = [f"{time_to(found.goal)} ÷ lower bound", *costs, "all", "worst", "takes longer"]
    lines = [head]
    for name in found.names:
        more = "" if name == AGENT else f"{found.longer(name):+.1%}"
        parts = [found.at(cost).ratios(name) for cost in found.dispatches]
        lines.append(_line(name, parts, found.ratios(name), more))
    parts = [found.at(cost).shuffled for cost in found.dispatches]
    lines.append(_line(SHUFFLED, parts, found.shuffled, f"{found.shuffling_costs:+.1%}"))
    return "\n".join([*aligned(lines), against_best(found)])


def against_best(found: PlacementComparison) -> str:
    """Return one line: `learned compared with the best rule of each of 240 cases: …`."""
    far = int((found.behind > BEHIND).sum())
    return (
        f"{AGENT} compared with the best rule of each of {len(found.tried)} cases: takes "
        f"{found.behind.mean():+.1%} on average, {found.behind.max():+.1%} at worst; "
        f"more than {BEHIND:.0%} longer in {far}"
    )


def _line(name: str, parts: Sequence[Floats], whole: Floats, more: str) -> list[str]:
    return [name, *(f"{part.mean():.3f}" for part in (*parts, whole)), f"{whole.max():.3f}", more]
