"""Wider networks: copies that share what goes out from them."""

import copy

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from rota.training.describe import describe
from rota.training.net2net import NotGrowable, blocks, deepen, layer_in, layers, shrink, widen
from rota.training.torchvision import torchvision


def evaluated(network: nn.Module, inputs: Tensor) -> Tensor:
    with torch.no_grad():
        return copy.deepcopy(network).eval()(inputs)


def difference(one: Tensor, other: Tensor) -> float:
    return float((one - other).abs().max() / one.abs().max())


def test_where_nothing_can_be_wider_that_is_said():
    with pytest.raises(NotGrowable, match="0: cannot be made wider; nor can anything else of this network"):
        layer_in(nn.Sequential(nn.Linear(2, 2)), "0")
    with pytest.raises(NotGrowable, match="1: cannot be made wider; of this network can be: 0"):
        layer_in(nn.Sequential(nn.Linear(2, 2), nn.ReLU(), nn.Linear(2, 2)), "1")


def test_copies_come_after_the_originals_and_share_outgoing_weights():
    network = nn.Sequential(nn.Linear(1, 2), nn.ReLU(), nn.Linear(2, 1))
    with torch.no_grad():
        network[0].weight.copy_(torch.tensor([[1.0], [2.0]]))
        network[0].bias.copy_(torch.tensor([3.0, 4.0]))
        network[2].weight.copy_(torch.tensor([[6.0, 8.0]]))
    widen(network, "0", 5)
    assert network[0].weight.flatten().tolist() == [1, 2, 1, 2, 1]
    assert network[0].bias.tolist() == [3, 4, 3, 4, 3]
    assert network[2].weight.flatten().tolist() == [2, 4, 2, 4, 2]
    assert [network[0].out_features, network[2].in_features] == [5, 5]


def test_places_of_a_channel_stay_together_where_they_are_laid_in_a_row():
    torch.manual_seed(0)
    network = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.GELU(), nn.Flatten(), nn.Linear(8, 3))
    images = torch.randn(3, 1, 4, 4)
    before = evaluated(network, images)
    widen(network, "0", 3)
    assert network[4].in_features == 12
    assert network[1].num_features == len(network[1].running_mean) == 3
    assert difference(before, evaluated(network, images)) <= 1e-6


class ByHand(nn.Module):
    """Several ways to get from channels to features, and two layers that take in the same units."""

    def __init__(self, flat: str) -> None:
        super().__init__()
        self.conv, self.norm = nn.Conv2d(1, 3, 3, padding=1), nn.BatchNorm2d(3)
        self.one, self.other = nn.Conv2d(3, 2, 3), nn.Conv2d(3, 2, 3)
        self.head, self.flat = nn.Linear(2 if flat == "mean" else 8, 2), flat

    def forward(self, x: Tensor) -> Tensor:
        y = functional.max_pool2d(functional.relu(self.norm(self.conv(x))), 1)
        z = torch.relu(self.one(y)) * self.other(y)
        if self.flat == "mean":
            return self.head(z.mean([2, 3]))
        return self.head(z.view(z.size(0), -1) if self.flat == "view" else torch.flatten(z, 1))


@pytest.mark.parametrize("flat", ["mean", "view", "flatten"])
def test_every_layer_that_takes_the_units_in_is_changed(flat):
    torch.manual_seed(0)
    network, images = ByHand(flat), torch.randn(4, 1, 4, 4)
    before = evaluated(network, images)
    assert layers(network) == ["conv"]
    widen(network, "conv", 7, generator=torch.Generator().manual_seed(2))
    assert network.one.in_channels == network.other.in_channels == 7
    assert difference(before, evaluated(network, images)) <= 1e-6


@pytest.mark.parametrize(
    "flatten",
    [lambda x: x.view(x.shape[0], -1), lambda x: x.flatten(1), lambda x: x.reshape((x.size(0), -1))],
)
def test_ways_to_lay_places_in_a_row(flatten):
    class Row(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv, self.head = nn.Conv2d(1, 2, 3), nn.Linear(8, 2)

        def forward(self, x: Tensor) -> Tensor:
            return self.head(flatten(self.conv(x)))

    torch.manual_seed(0)
    network, images = Row(), torch.randn(4, 1, 4, 4)
    before = evaluated(network, images)
    widen(network, "conv", 5)
    assert difference(before, evaluated(network, images)) <= 1e-6


def test_normalisation_of_rows_is_followed_through_several_layers():
    torch.manual_seed(0)
    hidden = [nn.Linear(8, 4), nn.BatchNorm1d(4), nn.ReLU(), nn.Dropout(), nn.Linear(4, 4), nn.BatchNorm1d(4)]
    network = nn.Sequential(nn.Conv2d(1, 2, 3), nn.Flatten(), nn.BatchNorm1d(8), *hidden, nn.Linear(4, 2))
    images = torch.randn(3, 1, 4, 4)
    before = evaluated(network, images)
    assert layers(network) == ["0", "3", "7"]
    for name in layers(network):
        widen(network, name, 7)
    assert difference(before, evaluated(network, images)) <= 1e-6


@pytest.mark.parametrize("kernel", [1, 3])
def test_the_order_of_numbers_in_memory_stays(kernel):
    network = nn.Sequential(nn.Conv2d(3, 4, kernel), nn.ReLU(), nn.Conv2d(4, 2, kernel))
    network = network.to(memory_format=torch.channels_last)
    optimizer = torch.optim.Adam(network.parameters())
    network(torch.randn(2, 3, 6, 6)).sum().backward()
    optimizer.step()
    widen(network, "0", 6, optimizer=optimizer)
    for weight in (network[0].weight, network[2].weight):
        assert weight.dim_order() == optimizer.state[weight]["exp_avg"].dim_order() == (0, 2, 3, 1)
        assert weight.is_contiguous(memory_format=torch.channels_last)
    plain = nn.Sequential(nn.Conv2d(3, 4, kernel), nn.ReLU(), nn.Conv2d(4, 2, kernel))
    widen(plain, "0", 6)
    assert all(weight.is_contiguous() for weight in plain.parameters())


def test_training_mode_is_kept_too(learnt, digits):
    network, images = copy.deepcopy(learnt), digits[0][:64]
    widen(network, "0.0", 25, generator=torch.Generator().manual_seed(0))
    widen(network, "2.0", 20)
    one, other = copy.deepcopy(learnt).train()(images), network.train()(images)
    assert difference(one.detach(), other.detach()) <= 1e-5


def test_copies_are_drawn_by_the_generator():
    def drawn(seed: int) -> Tensor:
        torch.manual_seed(5)
        network = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 2))
        state = torch.get_rng_state()
        widen(network, "0", 16, generator=torch.Generator().manual_seed(seed))
        assert torch.equal(torch.get_rng_state(), state)
        return network[0].weight.detach()

    assert torch.equal(drawn(1), drawn(1))
    assert not torch.equal(drawn(1), drawn(2))


def test_noise_tells_copies_apart_and_leaves_originals():
    torch.manual_seed(0)
    network = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))
    weight, inputs = network[0].weight.detach().clone(), torch.randn(50, 3)
    before = evaluated(network, inputs)
    widen(network, "0", 8, noise=0.01)
    assert torch.equal(network[0].weight[:4], weight)
    apart = (network[0].weight[4:] - weight).detach()
    assert 0.3 < float(apart.std() / (0.01 * weight.std())) < 3.0
    assert 0 < difference(before, evaluated(network, inputs)) < 0.05


def test_the_insides_of_residual_blocks_become_wider_but_not_what_they_add():
    torch.manual_seed(0)
    network = torchvision.models.ResNet(torchvision.models.resnet.BasicBlock, [1, 1, 1, 1], num_classes=5)
    images = torch.randn(2, 3, 32, 32)
    before = evaluated(network, images)
    assert layers(network) == [f"layer{i}.0.conv1" for i in range(1, 5)]
    for name in layers(network):
        deepen(network, name)
        widen(network, name, network.get_submodule(name).out_channels + 5)
        deepen(network, name)
    assert difference(before, evaluated(network, images)) <= 1e-5
    assert len(layers(network)) == 12


def test_gradients_go_on_as_the_optimiser_expects(digits):
    """A wide network's optimiser has just what it would have had if the network had been wide before."""
    images, labels = digits[0][:64].flatten(1), digits[1][:64]
    torch.manual_seed(0)
    layer = nn.Linear(64, 6)
    early = nn.Sequential(nn.Flatten(), layer, nn.BatchNorm1d(6), nn.ReLU(), nn.Linear(6, 10))
    late = copy.deepcopy(early)
    states = []
    for network, first in ((early, True), (late, False)):
        optimizer = torch.optim.Adam(network.parameters(), lr=1e-12, eps=1e-30)
        if first:
            widen(network, "1", 10, optimizer=optimizer)
        functional.cross_entropy(network(images), labels).backward()
        optimizer.step()
        if not first:
            widen(network, "1", 10, optimizer=optimizer)
        states.append([dict(optimizer.state[weight]) for weight in network.parameters()])
    # The bias before a normalisation has no gradient, only its rounding error: 1e-7 of the others.
    for name, rounding in (("step", 0.0), ("exp_avg", 1e-7), ("exp_avg_sq", 1e-15)):
        found, expected = ([state[name] for state in each] for each in states)
        torch.testing.assert_close(found, expected, rtol=1e-3, atol=rounding)


def test_a_wide_block_grows_deeper_as_wide_as_it_is(learnt, digits):
    network, images = copy.deepcopy(learnt), digits[0][:64]
    widen(network, "2.0", 20)
    deepen(network, "2")
    widen(network, "2.3", 24)
    deepen(network, "2")
    assert [tuple(part.weight.shape[:2]) for part in network[2] if isinstance(part, nn.Conv2d)] == [
        (20, 16),
        (24, 20),
        (24, 24),
    ]
    assert blocks(network) == blocks(learnt)
    assert difference(evaluated(learnt, images), evaluated(network, images)) <= 1e-5


def test_shrinking_gives_back_the_network_as_it_was_at_any_stage(learnt, digits):
    images = digits[0][:64]
    stages = [copy.deepcopy(learnt)]
    for at, width in enumerate((18, 21, 30)):
        network = copy.deepcopy(stages[-1])
        widen(network, "0.0", width, generator=torch.Generator().manual_seed(at))
        deepen(network, "2")
        stages.append(network)
    for stage in stages[:-1]:
        smaller = copy.deepcopy(stage)
        with torch.no_grad():
            for values in smaller.state_dict().values():
                values.zero_()
        shrink(stages[-1], smaller)
        assert describe(smaller) == describe(stage)
        assert difference(evaluated(stage, images), evaluated(smaller, images)) <= 1e-6
