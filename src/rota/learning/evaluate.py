"""How good a policy is on recorded trees: its sequence, where that ranks, and what others would have done."""

from collections.abc import Mapping, Sequence, Set
from types import MappingProxyType

import numpy as np

from rota.core.arrays import Floats
from rota.core.sight import Adaptation, likeliest
from rota.learning.outcome import Others, Outcome, Row, share
from rota.learning.problem import Problem, is_among
from rota.policies.adaptation.fixed import Fixed
from rota.policies.adaptation.never import Never
from rota.recordings.tree import Prefix, Tree

DRAWS = 10
"""Sequences whose mean is the random baseline."""


def headroom(accuracy: float, accuracies: Floats) -> float:
    """(accuracy − mean) / (best − mean); 0 if all sequences are equal."""
    return share(accuracy, float(accuracies.mean()), float(accuracies.max()))


def evaluate(policy: Adaptation, problem: Problem) -> Outcome:
    """The policy does what it thinks likeliest at each decision."""
    at = {sight.made: sight for sight in problem.sights}
    made: Prefix = ()
    probabilities = []
    while len(made) < problem.tree.decisions:
        chances = policy.probabilities(at[made])
        probabilities.append(tuple(chances))
        made = (*made, likeliest(chances))
    return outcome(problem, made, tuple(probabilities))


def outcome(problem: Problem, sequence: Prefix, probabilities: tuple[tuple[float, ...], ...] = ()) -> Outcome:
    """What a sequence comes to."""
    tree = problem.tree
    accuracy = float(problem.accuracies[problem.sequences.index(sequence)])
    return Outcome(
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


def others(problem: Problem, learned_from: Sequence[Problem], fixed: Prefix | None = None) -> Others:
    """The baselines of a scenario.

    The fixed sequence is the one that is given, or else chosen by what the agent has learned from. The random
    ones are others in each tree, and the same each time.
    """
    seed = int(problem.digest, 16)
    drawn = np.random.default_rng(seed).integers(len(problem.sequences), size=DRAWS)
    fixed = fixed or best_fixed([each for each in learned_from if alike(each, problem)])
    return Others(
        never=evaluate(Never(), problem).accuracy,
        random=float(problem.accuracies[drawn].mean()),
        fixed=None if fixed is None else evaluate(Fixed(fixed), problem).accuracy,
        fixed_sequence=fixed,
        oracle=float(problem.accuracies.max()),
        mean=float(problem.accuracies.mean()),
    )


def best_fixed(problems: Sequence[Problem]) -> Prefix | None:
    """The sequence with the largest mean headroom, of those trained everywhere; None if there is none."""
    if not problems:
        return None
    known = [dict(zip(problem.sequences, problem.accuracies, strict=True)) for problem in problems]
    common = [each for each in problems[0].sequences if all(each in found for found in known)]

    def gain(sequence: Prefix) -> float:
        pairs = zip(problems, known, strict=True)
        return sum(headroom(found[sequence], problem.accuracies) for problem, found in pairs)

    return max(common, key=gain, default=None)


def kind_of(tree: Tree) -> str:
    """Equal where a sequence means the same: `deepen 0, nothing; 3 decisions`."""
    return f"{', '.join(tree.actions)}; {tree.decisions} decisions"


def alike(one: Problem, other: Problem) -> bool:
    """Whether a sequence means the same in both."""
    return kind_of(one.tree) == kind_of(other.tree)


def best_fixed_of_each(problems: Sequence[Problem]) -> dict[str, Prefix]:
    """Kind of tree → the best fixed sequence for all trees of that kind."""
    kinds = dict.fromkeys(kind_of(problem.tree) for problem in problems)
    found = {kind: best_fixed([each for each in problems if kind_of(each.tree) == kind]) for kind in kinds}
    return {kind: sequence for kind, sequence in found.items() if sequence is not None}


def rows(
    policy: Adaptation,
    problems: Sequence[Problem],
    learned_from: Set[str],
    fixed: Mapping[str, Sequence[int]] = MappingProxyType({}),
) -> list[Row]:
    """A policy in each of some scenarios, beside others.

    `learned_from` has the digests of those it knows, `fixed` the best fixed sequence by kind of tree.
    """
    known = [problem for problem in problems if is_among(problem.tree, learned_from)]
    found = []
    for problem in problems:
        best = tuple(fixed.get(kind_of(problem.tree), ())) or None
        seen = is_among(problem.tree, learned_from)
        found.append(Row(evaluate(policy, problem), others(problem, known, fixed=best), seen))
    return found
