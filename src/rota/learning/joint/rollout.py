"""Episodes on growth trees in which the joint agent draws decisions, and the gradients that it learns from.

Gradients are added up in compiled code while an episode runs, so no decision is kept.
"""

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

from rota.core.arrays import Floats
from rota.learning.joint.cases import CaseGenerator, JointCase
from rota.policies.allocation.joint import DRAWN, GREEDY, form_of
from rota.policies.allocation.learned import seed_draws
from rota.recordings.library import read_growth_trees
from rota.simulator.population import engine_for

PERCENT, MOST = 100.0, 5.0
"""Accuracies are compared in percentage points, and no difference counts more than this."""


class JointEpisode(NamedTuple):
    """The end of an episode."""

    best: float
    """Accuracy of the best trial at the deadline; 0 if none has reported."""
    decisions: int
    drawn: int
    """Number of decisions that were drawn."""
    entropy: float
    """Sum of the entropies of drawn decisions."""
    gradient: Floats
    """Sum of the gradients of the logarithms of the probabilities of what was drawn."""
    of_entropy: Floats
    """Sum of the gradients of the entropies."""


def play(
    case: JointCase, flat: Floats, hidden: int, seed: int | None = None, share: float = 1.0
) -> JointEpisode:
    """Simulate a case until its deadline.

    If a seed is given, this share of the decisions is drawn; the others are the best by score.
    """
    engine, size = engine_for(case.scene, case.landscape()), len(flat)
    gradient = np.zeros(2 * size + 1)
    engine.write(reviews=False, keeps_timeline=False)
    engine.use(form_of(flat, hidden, GREEDY if seed is None else DRAWN, gradient=gradient))
    if seed is not None:
        engine.write(share=share)
        seed_draws(seed)
    engine.advance()
    best, drawn = np.nanmax(engine.metric, initial=0.0), engine.numbers["drawn"].item()
    return JointEpisode(
        float(best), engine.numbers["asked"].item(), drawn, float(gradient[-1]),
        gradient[:size], gradient[size:-1],
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class JointLesson:
    """Cases to learn from, by their numbers."""

    folders: tuple[Path, ...]
    """Folders of the trees."""
    flat: Floats
    """Weights."""
    hidden: int
    seed: int
    numbers: tuple[int, ...]
    episodes: int
    """Episodes of each case."""
    drawn: float
    """Share of the decisions that are drawn."""


class LearnedGroup(NamedTuple):
    """The gradients of cases: sums over them of means over episodes."""

    gradient: Floats
    of_entropy: Floats
    accuracy: float
    """Sum over the cases of the mean accuracy at the deadline."""
    spread: float
    """Sum over the cases of its standard deviation."""
    decisions: int
    drawn: int
    entropy: float
    """Sum of the entropies of drawn decisions."""


@lru_cache(maxsize=4)
def generator_for(folders: tuple[Path, ...]) -> CaseGenerator:
    """Return the generator of cases from trees in these folders; a worker makes it once."""
    return CaseGenerator(read_growth_trees(folders))


def learn_from(lesson: JointLesson) -> LearnedGroup:
    """Simulate a group of episodes of each case, and return their gradient."""
    size, cases = len(lesson.flat), generator_for(lesson.folders)
    gradient, of_entropy = np.zeros(size), np.zeros(size)
    accuracy = spread = entropy = 0.0
    decisions = drawn = 0
    for number in lesson.numbers:
        case = cases.case(number, lesson.seed)
        seeds = np.random.default_rng((lesson.seed, number)).integers(2**31, size=lesson.episodes)
        group = [play(case, lesson.flat, lesson.hidden, int(seed), lesson.drawn) for seed in seeds]
        for episode, worth in zip(group, worths([each.best for each in group]), strict=True):
            gradient += worth / lesson.episodes * episode.gradient
            of_entropy += episode.of_entropy / lesson.episodes
        accuracy += float(np.mean([each.best for each in group]))
        spread += float(np.std([each.best for each in group]))
        decisions += sum(each.decisions for each in group)
        drawn += sum(each.drawn for each in group)
        entropy += sum(each.entropy for each in group)
    return LearnedGroup(gradient, of_entropy, accuracy, spread, decisions, drawn, entropy)


def worths(accuracies: list[float]) -> Floats:
    """Return how much better each episode was than the mean of the others, in percentage points."""
    found = PERCENT * np.array(accuracies)
    others = (found.sum() - found) / (len(found) - 1)
    clipped: Floats = np.clip(found - others, -MOST, MOST)
    return clipped
