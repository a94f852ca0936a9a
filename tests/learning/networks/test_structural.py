"""Our network: any number of layers, blocks and actions, each for itself."""

from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from rota.core.network import NOTHING, Change, Layer, Observation, Structure
from rota.learning import features
from rota.learning.networks.structural import Structural


@pytest.fixture(scope="module")
def network() -> Structural:
    return fresh()


def fresh(**options: int) -> Structural:
    with torch.random.fork_rng(devices=()):
        torch.default_generator.manual_seed(0)
        return Structural(**options)


def scores(network: Structural, *observations: Observation) -> list[Tensor]:
    """A row per observation, without what is behind its last action."""
    with torch.no_grad():
        found = network(network.encode(observations))
    return [row[: len(observation.actions)] for row, observation in zip(found, observations, strict=True)]


def assert_same(one: Tensor, other: Tensor) -> None:
    assert one.shape == other.shape
    assert (one - other).abs().max() < 1e-6


@pytest.fixture
def crowd(see, strange) -> list[Observation]:
    """Networks of 3 to 66 layers and more, with 2 to 18 actions, at different times."""
    return [
        see("convnet2"),
        see("convnet2", [0, 0], left=0.2),
        see("feedforward1", left=0.9),
        strange,
        see("resnet18", [2]),
        see("convnet2", left=0.2),
        see("convnet-large", [1], left=0.3),
        see("convnet2", actions=2),
    ]


def test_a_sight_is_scored_the_same_alone_as_among_others(network, crowd):
    for observation, among in zip(crowd, scores(network, *crowd), strict=True):
        assert torch.isfinite(among).all()
        assert_same(among, scores(network, observation)[0])


def test_the_order_of_sights_does_not_matter(network, crowd):
    for one, other in zip(scores(network, *crowd), scores(network, *crowd[::-1])[::-1], strict=True):
        assert_same(one, other)


def test_different_sights_have_different_scores(network, crowd):
    """The last one differs from the first in the actions that there are, and is left out."""
    firsts = [round(float(row[0]), 5) for row in scores(network, *crowd[:-1])]
    assert len(set(firsts)) == len(firsts)


def test_where_there_is_no_action_the_score_is_minus_infinity(network, see):
    small, large = see("feedforward1"), see("convnet2")
    with torch.no_grad():
        found = network(network.encode([small, large]))
    assert found.shape == (2, 4)
    assert found[0, 2:].tolist() == [-torch.inf, -torch.inf]
    assert found.softmax(-1)[0, 2:].tolist() == [0.0, 0.0]


def test_padding_gets_no_gradient_and_spoils_none(see):
    """A observation's own loss has the same gradient whoever is beside it."""
    observation, others = see("feedforward1"), [see("resnet18"), see("convnet2", [1])]
    gradients = []
    for observations in ([observation], [observation, *others]):
        network = fresh()
        network(network.encode(observations)).log_softmax(-1)[0, 0].backward()
        gradients.append([weight.grad for weight in network.parameters()])
    for alone, among in zip(*gradients, strict=True):
        assert torch.isfinite(among).all()
        assert_same(alone, among)


@given(st.permutations(range(4)))
def test_when_actions_change_places_so_do_their_scores(order):
    network = fresh()
    actions = (Change("deepen", 0), Change("deepen", 1), Change("widen", 0, 64), NOTHING)
    structure = Structure((Layer("linear", (("in", 8), ("out", 16))), Layer("loom")), ((0, 1),))
    observation = Observation(structure, ((0,), (1,)), 1.0, 2.0, actions)
    other = replace(observation, actions=tuple(actions[at] for at in order))
    before, after = scores(network, observation, other)
    assert_same(before[list(order)], after)
    assert len(set(before.tolist())) == 4


def test_an_action_less_leaves_the_scores_of_the_others(network, see):
    few, all_ = scores(network, see("convnet2", actions=2), see("convnet2"))
    assert_same(few[0], all_[0])
    assert_same(few[-1], all_[-1])


def test_equal_networks_are_read_once_whatever_the_time(network, see):
    observations = [see("convnet2", left=left) for left in (0.2, 0.4, 0.6)]
    seen = network.encode([*observations, see("convnet2", [1])])
    assert len(seen.layers) == 2
    assert seen.network.tolist() == [0, 0, 0, 1]
    early, *_, grown = scores(network, *observations, see("convnet2", [1]))
    assert not torch.equal(early, grown)


def test_the_same_network_with_other_blocks_is_another(network, strange):
    """What an action does is told by the layers of its block."""
    other = replace(strange, blocks=((0, 1), (2,)))
    assert network.encode([strange, other]).network.tolist() == [0, 1]
    one, two = scores(network, strange, other)
    assert_same(one, scores(network, strange)[0])
    assert_same(two, scores(network, other)[0])
    assert not torch.equal(one[:2], two[:2])


def test_what_flows_in_is_shared_among_its_sources(network, strange):
    """Into the last layer from both others; out of the first into both."""
    seen = network.encode([strange])
    assert seen.before[0].tolist() == [[0, 0, 0], [1, 0, 0], [0.5, 0.5, 0]]
    assert seen.behind[0].tolist() == [[0, 0.5, 0.5], [0, 0, 1], [0, 0, 0]]
    assert seen.blocks[0].tolist() == [[0, 0.5, 0.5], [1, 0, 0], [0, 0, 0]]


def test_skip_connections_are_seen(network, strange):
    straight = replace(strange, structure=replace(strange.structure, edges=((0, 1), (1, 2))))
    one, other = scores(network, strange, straight)
    assert (one - other).abs().max() > 1e-5


def test_layers_never_seen_are_told_apart(network, strange):
    layers = (Layer("wharp"), *strange.structure.layers[1:])
    other = replace(strange, structure=replace(strange.structure, layers=layers))
    one, two = scores(network, strange, other)
    assert torch.isfinite(two).all()
    assert (one - two).abs().max() > 1e-4


def test_time_is_seen(network, strange):
    one, other = scores(network, strange, replace(strange, left_s=70.0))
    assert (one - other).abs().max() > 1e-4


def test_its_size_follows_from_its_options():
    """Read, two exchanges of 3·8 → 8, and three layers on 2·8 + what else is seen."""
    network = fresh(width=8, rounds=2, hidden=4)
    seen = 2 * 8 + features.TIME + features.NETWORK + features.ACTION
    expected = (features.LAYER + 1) * 8 + 2 * (24 + 1) * 8 + (seen + 1) * 4 + (4 + 1) * 4 + (4 + 1)
    assert sum(weight.numel() for weight in network.parameters()) == expected


def test_moved_in_time_it_sees_what_it_would_have_seen_then(network, see):
    early, late = see("convnet2", [0], left=0.8), see("convnet2", [0], left=0.3)
    seen = network.encode([early, late])
    assert seen.left == pytest.approx([0.8, 0.3])
    with torch.no_grad():
        moved = network(seen.at(seen.left[::-1].copy()))
    for row, expected in zip(moved, scores(network, late, early), strict=True):
        assert_same(row, expected)
