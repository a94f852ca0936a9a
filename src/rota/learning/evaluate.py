"""How good a policy is on recorded trees: its sequence, where that ranks, and what others would have done."""

from collections.abc import Sequence, Set

import numpy as np

from rota.core.errors import InputError
from rota.core.sight import Adaptation, likeliest
from rota.core.table import Floats
from rota.learning.outcome import Others, Outcome, Row
from rota.learning.problem import Problem
from rota.policies.adaptation.fixed import Fixed
from rota.policies.adaptation.never import Never
from rota.recordings.tree import Prefix

DRAWS = 10
"""Sequences whose mean is the random baseline."""


def headroom(accuracy: float, accuracies: Floats) -> float:
    """(accuracy − mean) / (best − mean); 0 if all sequences are equal."""
    mean, best = float(accuracies.mean()), float(accuracies.max())
    return (accuracy - mean) / (best - mean) if best > mean else 0.0


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
        rank=tree.ranks[sequence],
        of=len(problem.sequences),
        headroom=headroom(accuracy, problem.accuracies),
        probabilities=probabilities,
    )


def others(problem: Problem, learned_from: Sequence[Problem], seed: int = 0) -> Others:
    """The baselines of a scenario; the fixed sequence is chosen by what the agent has learned from."""
    drawn = np.random.default_rng(seed).integers(len(problem.sequences), size=DRAWS)
    fixed = best_fixed([each for each in learned_from if each.tree.actions == problem.tree.actions])
    return Others(
        never=evaluate(Never(), problem).accuracy,
        random=float(problem.accuracies[drawn].mean()),
        fixed=None if fixed is None else evaluate(Fixed(fixed), problem).accuracy,
        fixed_sequence=fixed,
        oracle=float(problem.accuracies.max()),
        mean=float(problem.accuracies.mean()),
    )


def best_fixed(problems: Sequence[Problem]) -> Prefix | None:
    """The sequence with the largest mean headroom over some problems; None if there are none."""
    if not problems:
        return None
    if len({problem.sequences for problem in problems}) > 1:
        raise InputError(
            "these trees have different actions or decisions; there is no sequence for all of them"
        )
    gains = [
        [headroom(accuracy, problem.accuracies) for accuracy in problem.accuracies] for problem in problems
    ]
    return problems[0].sequences[int(np.mean(gains, axis=0).argmax())]


def rows(policy: Adaptation, problems: Sequence[Problem], learned_from: Set[str]) -> list[Row]:
    """A policy in each of some scenarios, beside others; `learned_from` names those that it knows."""
    known = [problem for problem in problems if problem.name in learned_from]
    return [
        Row(evaluate(policy, problem), others(problem, known), problem.name in learned_from)
        for problem in problems
    ]
