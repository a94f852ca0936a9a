"""What is reached by knowing the means of other seeds."""

import pytest

from rota.core.cluster import Cluster
from rota.core.network import Layer, Structure
from rota.learning.joint.baselines import oracle
from rota.learning.joint.cases import JointCase
from rota.learning.joint.noise import known_from_seeds
from rota.recordings.folder import Provenance
from rota.recordings.growth import GrowthChoices, GrowthNode, GrowthTree, RecordedStructure
from rota.simulator.trees import TreeSet

CHOICES = GrowthChoices(2, ("deepen 0", "nothing"), 1, ("deepen 0",))
CHAIN = Structure((Layer("linear", (("in", 4), ("out", 2))), Layer("relu")), ((0, 1),))
LONGER = Structure((*CHAIN.layers, Layer("linear", (("in", 2), ("out", 2)))), ((0, 1), (0, 2), (1, 2)))
STRUCTURES = (RecordedStructure(CHAIN, ((0, 1),), 0.5), RecordedStructure(LONGER, ((0, 1, 2),), 0.75))
NODES = {
    (): (10, 0, 0.1),
    (0,): (20, 1, 0.3),
    (1,): (20, 0, 0.2),
    (0, 1): (30, 1, 0.6),
    (1, 0): (30, 1, 0.1),
    (1, 1): (30, 0, 0.4),
}
"""Steps, structure and accuracy at the end of each interval."""
ORIGIN = Provenance("a CPU", {}, "", 0, "", "2026-01-01T00:00:00+00:00", "0.1.0", "")


def tree(seed: int, **other: float) -> GrowthTree:
    """Return a tree, whose accuracies after growth at once and without growth may be others."""
    ends = {(0, 1): other.get("grown"), (1, 1): other.get("never")}
    nodes = {
        prefix: GrowthNode(steps, structure, 1.0, ends.get(prefix) or accuracy)
        for prefix, (steps, structure, accuracy) in NODES.items()
    }
    hyper = {"lr": 0.01, "batch_size": 32.0}
    return GrowthTree("net", "digits", seed, hyper, CHOICES, nodes, STRUCTURES, ORIGIN)


def case(deadline_s: float) -> JointCase:
    trees = TreeSet((tree(0), tree(1, grown=0.5, never=0.9)))
    return JointCase(0, trees, (0,), Cluster.of_speeds([1.0]), deadline_s)


def test_the_path_is_chosen_by_the_other_seed():
    # never takes 3 × 10 × 0.5 s, growth at once 5 + 2 × 7.5 s; seed 1 says never, which is 0.4 here
    assert known_from_seeds(case(20.0)) == 0.4
    assert oracle(case(20.0)) == 0.6


def test_only_what_ends_in_time_is_chosen():
    assert known_from_seeds(case(12.6)) == pytest.approx(0.3)  # after 10 s: 0.2; growth after 12.5 s: 0.3
    assert known_from_seeds(case(10.0)) == pytest.approx(0.2)
    assert known_from_seeds(case(1.0)) == 0.0
