"""The recorded tables of the original work: what its agent reached, and what ours does."""

import random
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from rota.learning.config import ORIGINAL, Method
from rota.learning.evaluate import evaluate
from rota.learning.learner import carry_through, learned, spent
from rota.learning.problem import problem_of
from rota.learning.stage import Stage
from rota.recordings.adaptation import read_adaptation
from rota.recordings.tree import Point, Prefix, Tree


@pytest.fixture
def tables(reference, origin):
    path: Path = reference("adaptation", "convnet2.csv")
    return read_adaptation(path, "ConvNet2", "cifar10", origin)


def ranks(stage: Stage) -> list[int]:
    carry_through(stage)
    return [evaluate(learned(stage), problem_of(tree)).rank for tree in stage.trees]


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_one_agent_finds_the_best_sequence_of_all_five_scenarios(tables, tmp_path, seed):
    stage = Stage(Method(), tuple(tables), 256_000, 1.0, seed, tmp_path)
    assert ranks(stage) == [1, 1, 1, 1, 1]


@pytest.mark.parametrize("seed", [0, 1])
def test_one_agent_serves_two_models(tables, tmp_path, seed):
    """The accuracies of the second are those of the first in any order: nothing to guess by, all to learn."""
    others = [replace(tree, model="ConvNet3", curves=shuffled(tree, seed)) for tree in tables]
    found = ranks(Stage(Method(), (*tables, *others), 256_000, 1.0, seed, tmp_path))
    assert found.count(1) >= 9


def shuffled(tree: Tree, seed: int) -> Mapping[Prefix, tuple[Point, ...]]:
    """The curves of a tree, each whole one with the last accuracy of another."""
    whole = list(tree.sequences())
    ends = dict(zip(whole, random.Random(seed).sample(whole, len(whole)), strict=True))
    curves = dict(tree.curves)
    for made, end in ends.items():
        *before, last = tree.curves[made]
        curves[made] = (*before, last._replace(accuracy=tree.curves[end][-1].accuracy))
    return curves


def test_the_original_learns_slowly_and_to_ranks_of_the_same_order(tables, tmp_path):
    """After 2,000 episodes it is better than chance (32) in most scenarios, and far from sure."""
    found = []
    for tree in tables:
        stage = Stage(ORIGINAL, (tree,), 2_000, 1.0, 0, tmp_path)
        found += ranks(stage)
        assert spent(stage)[1] == 2_000
    assert sorted(found)[2] < 20
