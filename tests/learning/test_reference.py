"""The recorded tables of the original work: what its agent reached, and what ours does."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pytest

from rota.core.cluster import own_cores
from rota.core.processes import run_dag
from rota.learning.config import ORIGINAL, Method
from rota.learning.evaluate import evaluate
from rota.learning.learner import LearningStage, carry_through, learned, spent
from rota.learning.problem import problem_of
from rota.recordings.adaptation import read_adaptation
from rota.recordings.tree import EpochPoint, Prefix, Tree

EPISODES, ORIGINAL_EPISODES = 128_000, 1_000


class Stages(NamedTuple):
    """All that is learned here."""

    alone: LearningStage
    """Five scenarios of a model."""
    both: LearningStage
    """Of two models."""
    original: tuple[LearningStage, ...]
    """By scenario."""


@pytest.fixture(scope="module")
def stages(reference, origin, tmp_path_factory):
    """Learned side by side, which takes half as long on two cores."""
    path: Path = reference("adaptation", "convnet2.csv")
    tables = tuple(read_adaptation(path, "ConvNet2", "cifar10", origin))
    folder = tmp_path_factory.mktemp("stages")
    found = Stages(
        LearningStage(Method(), tables, EPISODES, 1.0, 0, folder),
        LearningStage(Method(), (*tables, *others(tables, 0)), EPISODES, 1.0, 0, folder),
        tuple(LearningStage(ORIGINAL, (tree,), ORIGINAL_EPISODES, 1.0, 0, folder) for tree in tables),
    )
    every = [found.alone, found.both, *found.original]
    assert len(list(run_dag(carry_through, every, lambda done: (), len(own_cores())))) == len(every)
    return found


def ranks(stage: LearningStage) -> list[int]:
    return [evaluate(learned(stage), problem_of(tree)).rank for tree in stage.trees]


def test_one_agent_finds_the_best_sequence_of_all_five_scenarios(stages):
    assert ranks(stages.alone) == [1, 1, 1, 1, 1]


def test_one_agent_serves_two_models(stages):
    assert ranks(stages.both).count(1) >= 9


def others(tables: Sequence[Tree], seed: int) -> list[Tree]:
    """Of another model, its accuracies in any order: nothing to guess by, all to learn."""
    return [replace(tree, model="ConvNet3", curves=shuffled(tree, seed)) for tree in tables]


def shuffled(tree: Tree, seed: int) -> Mapping[Prefix, tuple[EpochPoint, ...]]:
    """The curves of a tree, each whole one with the last accuracy of another."""
    whole = list(tree.sequences())
    ends = dict(zip(whole, random.Random(seed).sample(whole, len(whole)), strict=True))
    curves = dict(tree.curves)
    for made, end in ends.items():
        *before, last = tree.curves[made]
        curves[made] = (*before, last._replace(accuracy=tree.curves[end][-1].accuracy))
    return curves


def test_the_original_learns_slowly_and_to_ranks_of_the_same_order(stages):
    """After 1,000 episodes it is better than chance (32) in most scenarios, and far from sure."""
    assert [spent(stage)[1] for stage in stages.original] == [ORIGINAL_EPISODES] * 5
    found = [rank for stage in stages.original for rank in ranks(stage)]
    assert sorted(found)[2] < 20
