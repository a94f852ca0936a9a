"""The recorded tables of the original work: what its agent reached, and what ours does."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pytest

from rota.core.processes import run_dag
from rota.learning.config import ORIGINAL, Method
from rota.learning.evaluate import evaluate
from rota.learning.learner import LearningStage, carry_through, learned, spent
from rota.learning.problem import problem_of
from rota.recordings.adaptation import read_adaptation
from rota.recordings.tree import EpochPoint, Prefix, Tree
from rota.training.setup import cores

SEEDS, FEWER = (0, 1, 2), (0, 1)


class Stages(NamedTuple):
    """All that is learned here."""

    alone: tuple[LearningStage, ...]
    """Five scenarios of a model, by seed."""
    both: tuple[LearningStage, ...]
    """Of two models, by seed."""
    original: tuple[LearningStage, ...]
    """By scenario."""


@pytest.fixture(scope="module")
def stages(reference, origin, tmp_path_factory):
    """Learned side by side, which takes half as long on two cores."""
    path: Path = reference("adaptation", "convnet2.csv")
    tables = tuple(read_adaptation(path, "ConvNet2", "cifar10", origin))
    folder = tmp_path_factory.mktemp("stages")
    found = Stages(
        tuple(LearningStage(Method(), tables, 256_000, 1.0, seed, folder) for seed in SEEDS),
        tuple(
            LearningStage(Method(), (*tables, *others(tables, seed)), 256_000, 1.0, seed, folder)
            for seed in FEWER
        ),
        tuple(LearningStage(ORIGINAL, (tree,), 2_000, 1.0, 0, folder) for tree in tables),
    )
    every = [stage for of in found for stage in of]
    assert len(list(run_dag(carry_through, every, lambda done: (), cores()))) == len(every)
    return found


def ranks(stage: LearningStage) -> list[int]:
    return [evaluate(learned(stage), problem_of(tree)).rank for tree in stage.trees]


@pytest.mark.parametrize("seed", SEEDS)
def test_one_agent_finds_the_best_sequence_of_all_five_scenarios(stages, seed):
    assert ranks(stages.alone[seed]) == [1, 1, 1, 1, 1]


@pytest.mark.parametrize("seed", FEWER)
def test_one_agent_serves_two_models(stages, seed):
    assert ranks(stages.both[seed]).count(1) >= 9


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
    """After 2,000 episodes it is better than chance (32) in most scenarios, and far from sure."""
    assert [spent(stage)[1] for stage in stages.original] == [2_000] * 5
    found = [rank for stage in stages.original for rank in ranks(stage)]
    assert sorted(found)[2] < 20
