"""Evaluate agents: ranks on recorded trees, and ceilings where trees were left out."""

import math
from collections.abc import Mapping, Sequence, Set
from dataclasses import asdict, dataclass
from itertools import combinations
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from rota.core.arrays import Floats
from rota.core.grouped import grouped
from rota.core.network import GrowthPolicy, likeliest
from rota.learning.outcome import Baselines, Evaluation, EvaluationOutcome, EvaluationRow, share
from rota.learning.problem import Problem, is_among, names, problem_of
from rota.policies.growth import Fixed, Never
from rota.recordings.describe import Noise, but_for_seed, by_model, noise
from rota.recordings.library import models
from rota.recordings.tree import Prefix, Tree

DRAWS = 10
"""Number of sequences whose mean is the random baseline."""


def headroom(accuracy: float, accuracies: Floats) -> float:
    """Return (accuracy − mean) / (best − mean); 0 if all sequences are equal."""
    return share(accuracy, float(accuracies.mean()), float(accuracies.max()))


def evaluate(policy: GrowthPolicy, problem: Problem) -> EvaluationOutcome:
    """Return what a policy reaches if it takes the most probable action at each decision."""
    at = {observation.made: observation for observation in problem.observations}
    made: Prefix = ()
    probabilities = []
    while len(made) < problem.tree.decisions:
        chances = policy.probabilities(at[made])
        probabilities.append(tuple(chances))
        made = (*made, likeliest(chances))
    return outcome(problem, made, tuple(probabilities))


def outcome(
    problem: Problem, sequence: Prefix, probabilities: tuple[tuple[float, ...], ...] = ()
) -> EvaluationOutcome:
    """Return the metrics of one sequence."""
    tree = problem.tree
    accuracy = float(problem.accuracies[problem.sequences.index(sequence)])
    return EvaluationOutcome(
        scenario=tree.scenario,
        model=tree.model,
        seed=tree.seed,
        sequence=sequence,
        changes=tuple(tree.actions[action] for action in sequence),
        accuracy=accuracy,
        actions=tree.actions,
        rank=tree.ranks[sequence],
        of=len(problem.sequences),
        headroom=headroom(accuracy, problem.accuracies),
        probabilities=probabilities,
        data=tree.data,
    )


def others(problem: Problem, learned_from: Sequence[Problem], fixed: Prefix | None = None) -> Baselines:
    """Return the baselines of a scenario.

    The fixed sequence is the given one, or else the best on the trees that the agent has learned from. The
    random sequences differ from tree to tree, and are the same each time.
    """
    seed = int(problem.digest, 16)
    drawn = np.random.default_rng(seed).integers(len(problem.sequences), size=DRAWS)
    fixed = fixed or best_fixed([each for each in learned_from if alike(each, problem)])
    return Baselines(
        never=evaluate(Never(), problem).accuracy,
        random=float(problem.accuracies[drawn].mean()),
        fixed=None if fixed is None else evaluate(Fixed(fixed), problem).accuracy,
        fixed_sequence=fixed,
        oracle=float(problem.accuracies.max()),
        mean=float(problem.accuracies.mean()),
    )


def best_fixed(problems: Sequence[Problem]) -> Prefix | None:
    """Return the sequence with the largest mean headroom of those trained in all problems, if any."""
    if not problems:
        return None
    known = [dict(zip(problem.sequences, problem.accuracies, strict=True)) for problem in problems]
    common = [each for each in problems[0].sequences if all(each in found for found in known)]

    def gain(sequence: Prefix) -> float:
        pairs = zip(problems, known, strict=True)
        return sum(headroom(found[sequence], problem.accuracies) for problem, found in pairs)

    return max(common, key=gain, default=None)


def kind_of(tree: Tree) -> str:
    """Return a text that is equal for trees in which sequences mean the same."""
    return f"{', '.join(tree.actions)}; {tree.decisions} decisions"


def alike(one: Problem, other: Problem) -> bool:
    """Whether sequences mean the same in both problems."""
    return kind_of(one.tree) == kind_of(other.tree)


def best_fixed_of_each(problems: Sequence[Problem]) -> dict[str, Prefix]:
    """Return the best fixed sequence for each kind of tree."""
    kinds = dict.fromkeys(kind_of(problem.tree) for problem in problems)
    found = {kind: best_fixed([each for each in problems if kind_of(each.tree) == kind]) for kind in kinds}
    return {kind: sequence for kind, sequence in found.items() if sequence is not None}


def rows(
    policy: GrowthPolicy,
    problems: Sequence[Problem],
    learned_from: Set[str],
    fixed: Mapping[str, Sequence[int]] = MappingProxyType({}),
) -> list[EvaluationRow]:
    """Evaluate a policy in each of several scenarios, with baselines.

    `learned_from` are the digests of the trees that it knows, `fixed` the best fixed sequence by kind of
    tree.
    """
    known = [problem for problem in problems if is_among(problem.tree, learned_from)]
    found = []
    for problem in problems:
        best = tuple(fixed.get(kind_of(problem.tree), ())) or None
        seen = is_among(problem.tree, learned_from)
        found.append(EvaluationRow(evaluate(policy, problem), others(problem, known, fixed=best), seen))
    return found


class RankedSequence(NamedTuple):
    """A recorded sequence of changes, and how good it is among all of its tree."""

    rank: int
    accuracy: float
    changes: tuple[str, ...]
    chosen: bool
    """Whether the policy chose it."""


def all_sequences(row: EvaluationRow, problem: Problem) -> list[RankedSequence]:
    """Return every sequence of the tree of a row, the best first."""
    tree = problem.tree
    pairs = zip(problem.sequences, problem.accuracies.tolist(), strict=True)
    found = [
        RankedSequence(
            tree.ranks[sequence],
            accuracy,
            tuple(tree.actions[action] for action in sequence),
            sequence == row.agent.sequence,
        )
        for sequence, accuracy in pairs
    ]
    return sorted(found, key=lambda each: each.rank)


def ranking(row: EvaluationRow, problem: Problem) -> str:
    """Return every sequence as text, a line each; an arrow is before that which the policy chose."""
    lines = [f"{problem.label}: all {row.agent.of} sequences"]
    for each in all_sequences(row, problem):
        mark = "→" if each.chosen else " "
        lines.append(f"{mark} {each.rank:>5} {each.accuracy:>8.2%}  {', '.join(each.changes)}")
    return "\n".join(lines)


def ceilings(problems: Sequence[Problem]) -> dict[str, float]:
    """Return the expected headroom of the truly best sequence by tree name, where two seeds were recorded."""
    called = names([problem.tree for problem in problems])
    found = grouped(
        (name, _correlation(one.accuracies, other.accuracies))
        for (name, one), (_, other) in combinations(zip(called, problems, strict=True), 2)
        if one.name == other.name and _another_seed(one.tree, other.tree)
    )
    return {name: math.sqrt(max(0.0, float(np.mean(each)))) for name, each in found.items()}


def _another_seed(one: Tree, other: Tree) -> bool:
    return one.seed != other.seed and but_for_seed(one) == but_for_seed(other)


def _correlation(one: Floats, other: Floats) -> float:
    return float(np.corrcoef(one, other)[0, 1]) if np.ptp(one) and np.ptp(other) else 0.0


@dataclass(frozen=True, slots=True)
class LeftOutSummary:
    """Results of agents on trees that they have not learned from: means over the seeds of the agents."""

    rows: tuple[EvaluationRow, ...]
    """All evaluations."""
    ceilings: dict[str, float]
    noise: dict[str, Noise]
    """Noise of the recordings of each model, where two seeds were recorded."""

    @property
    def headroom(self) -> float:
        """The mean headroom over all rows."""
        return float(np.mean([row.agent.headroom for row in self.rows]))

    @property
    def fixed(self) -> float | None:
        """The mean headroom of the best fixed sequence; None if some rows have none."""
        found = [each for row in self.rows if (each := _fixed(row)) is not None]
        return float(np.mean(found)) if len(found) == len(self.rows) else None

    @property
    def never(self) -> float:
        """The mean headroom of never changing anything."""
        return float(np.mean([_never(row) for row in self.rows]))

    @property
    def bounded(self) -> tuple[float, float] | None:
        """The mean headroom and the mean ceiling where a ceiling is known; None if none is."""
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

    def _ceiling(self, row: EvaluationRow, model: str) -> float | None:
        return self.ceilings.get(f"{model.lower()}/{row.agent.scenario}")

    def to_json(self) -> dict[str, Any]:
        """Return plain values."""
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
        """Return a table with a line per tree."""
        width = max([10, *map(len, self.called)])
        lines = [
            f"{'model':<{width}} {'left out':<15} {'headroom':>9} {'± seeds':>8} {'fixed':>7} {'never':>7} "
            f"{'ceiling':>8}  rank"
        ]
        named = zip(self.called, self.rows, strict=True)
        groups = grouped(((model, row.agent.scenario, row.agent.seed), row) for model, row in named)
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


def _fixed(row: EvaluationRow) -> float | None:
    found = row.others
    return None if found.fixed is None else share(found.fixed, found.mean, found.oracle)


def _never(row: EvaluationRow) -> float:
    found = row.others
    return share(found.never, found.mean, found.oracle)


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"


def summary(evaluations: Sequence[Evaluation], trees: Sequence[Tree]) -> LeftOutSummary:
    """Return a summary of evaluations on trees that were left out."""
    rows = tuple(row for each in evaluations for row in each.rows)
    noises = {model: noise(group) for model, group in by_model(trees).items()}
    found = {model: each for model, each in noises.items() if each is not None}
    return LeftOutSummary(rows, ceilings([problem_of(tree) for tree in trees]), found)
