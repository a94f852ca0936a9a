"""The original agent's network, against PyTorch's own bidirectional LSTM on one network at a time."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

from rota.core.errors import InputError
from rota.core.network import NOTHING, Change, Layer, Observation, Structure
from rota.learning import features
from rota.learning.networks.original import Original


def fresh(actions: int = 4) -> Original:
    with torch.random.fork_rng(devices=()):
        torch.default_generator.manual_seed(0)
        return Original(actions)


@pytest.fixture(scope="module")
def network() -> Original:
    return fresh()


def scores(network: Original, *observations: Observation) -> Tensor:
    with torch.no_grad():
        return network(network.encode(observations))


def reference(network: Original, observation: Observation) -> Tensor:
    """What the original did: both directions in one LSTM, no other network beside, nothing filled up."""
    both = nn.LSTM(16, 50, bidirectional=True)
    with torch.no_grad():
        for name, weight in network.forwards.named_parameters():
            both.get_parameter(name).copy_(weight)
        for name, weight in network.backwards.named_parameters():
            both.get_parameter(f"{name}_reverse").copy_(weight)
        codes = [
            torch.from_numpy(features.code(str(layer), 16)).float() for layer in observation.structure.layers
        ]
        encodings, _ = both(torch.stack(codes))
        _, (last, _) = network.whole(encodings)
        times = [
            5 * math.sin(2 * math.pi * i * observation.left_s / observation.budget_s) for i in range(1, 9)
        ]
        one, two, three = (layer for layer in network.decide if isinstance(layer, nn.Linear))
        seen = torch.cat([last[0], torch.tensor(times)])
        return three(torch.relu(two(torch.relu(one(seen)))))


@pytest.fixture
def crowd(see) -> list[Observation]:
    """Networks of 6 to 66 layers, one of them at two times."""
    return [
        see("convnet2"),
        see("resnet18", [2], actions=4),
        see("convnet2", [0, 2], left=0.2),
        see("feedforward3", left=0.9),
        see("convnet2", left=0.875),
        see("convnet", actions=4),
    ]


def test_it_is_a_bidirectional_lstm_an_lstm_and_three_layers(network, crowd):
    for row, observation in zip(scores(network, *crowd), crowd, strict=True):
        assert (row - reference(network, observation)).abs().max() < 1e-6


def test_a_sight_is_scored_the_same_alone_as_among_others(network, crowd):
    for row, observation in zip(scores(network, *crowd), crowd, strict=True):
        assert (row - scores(network, observation)[0]).abs().max() < 1e-6


@given(st.lists(st.lists(st.sampled_from("abcd"), min_size=1, max_size=6), min_size=1, max_size=4))
def test_the_length_of_others_never_matters(words):
    network = fresh(actions=1)
    observations = [
        Observation(Structure(tuple(map(Layer, word)), ()), (), float(at), 8.0, (NOTHING,))
        for at, word in enumerate(words)
    ]
    for row, observation in zip(scores(network, *observations), observations, strict=True):
        assert (row - reference(network, observation)).abs().max() < 1e-6


def test_the_order_of_layers_matters(network):
    actions = (*(Change("deepen", block) for block in range(3)), NOTHING)
    one, other = (
        Observation(Structure(tuple(map(Layer, word)), ()), (), 4.0, 8.0, actions) for word in ("abc", "cba")
    )
    assert (scores(network, one) - scores(network, other)).abs().max() > 1e-5


def test_equal_networks_are_read_once(network, see):
    seen = network.encode([see("convnet2"), see("convnet2", left=0.1), see("convnet2", [0])])
    assert seen.layers.shape == (2, 14, 16)
    assert seen.network.tolist() == [0, 0, 1]
    assert seen.last.tolist() == [10, 13]


def test_reading_backwards_twice_is_reading_forwards(network, see):
    seen = network.encode([see("convnet2"), see("convnet2", [0])])
    assert seen.backwards[0].tolist() == [*range(10, -1, -1), 11, 12, 13]
    assert seen.backwards.gather(1, seen.backwards).tolist() == [list(range(14))] * 2


def test_layers_have_codes_by_what_they_are_and_none_is_unknown(network, strange):
    seen = network.encode([four(strange)])
    expected = [features.code(text, 16) for text in ("warp", "weft(turns 3)", "loom")]
    assert seen.layers[0].numpy() == pytest.approx(np.array(expected, np.float32))
    assert torch.isfinite(network(seen)).all()


def four(observation: Observation) -> Observation:
    """The same with four actions."""
    actions = (*observation.actions, Change("deepen", 2))
    return Observation(
        observation.structure, observation.blocks, observation.left_s, observation.budget_s, actions
    )


def test_another_number_of_actions_is_an_error(network, see):
    with pytest.raises(
        InputError, match=r"^this agent decides between 4 actions, not 2; use an agent with the s"
    ):
        network.encode([see("convnet2"), see("feedforward1")])


def test_codes_are_not_learned():
    """Only the weights of the LSTMs and the layers: 4·50·(16+50+2) each way, 4·16·(100+16+2), and an MLP."""
    recurrent = 2 * 4 * 50 * (16 + 50 + 2) + 4 * 16 * (100 + 16 + 2)
    decider = (16 + 8 + 1) * 128 + (128 + 1) * 128 + (128 + 1) * 4
    assert sum(weight.numel() for weight in fresh().parameters()) == recurrent + decider == 54_980
    assert not list(fresh().buffers())


def test_padding_gets_no_gradient(see):
    """A observation's own loss has the same gradient whoever is beside it."""
    observation, others = see("feedforward3"), [see("resnet18", actions=4), see("convnet2", [1])]
    gradients = []
    for observations in ([observation], [observation, *others]):
        network = fresh()
        network(network.encode(observations)).log_softmax(-1)[0, 0].backward()
        gradients.append([weight.grad for weight in network.parameters()])
    for alone, among in zip(*gradients, strict=True):
        assert (alone - among).abs().max() < 1e-6


def test_moved_in_time_it_sees_what_it_would_have_seen_then(network, see):
    early, late = see("convnet2", [0], left=0.8), see("convnet2", [0], left=0.3)
    seen = network.encode([early, late])
    with torch.no_grad():
        moved = network(seen.at(seen.left[::-1].copy()))
    assert (moved - scores(network, late, early)).abs().max() < 1e-6
