"""Networks as structures: what is in them, whatever it is called and however it got there."""

import copy

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from rota.core.network import Layer, Structure
from rota.training.describe import describe
from rota.training.models.networks import conv_block, linear_block
from rota.training.models.registry import MODELS, build
from rota.training.net2net import blocks, deepen
from rota.training.torchvision import torchvision


def small() -> nn.Sequential:
    pool = (nn.AdaptiveAvgPool2d(1), nn.Flatten())
    return nn.Sequential(conv_block(1, 4), nn.MaxPool2d(2), conv_block(4, 6, 5), *pool, linear_block(6, 3))


class Functional(nn.Module):
    """Layers that are called by hand, with arguments that have defaults."""

    def __init__(self, first: str = "first") -> None:
        super().__init__()
        self.name = first
        self.add_module(first, nn.Conv2d(1, 2, (3, 1), stride=2))
        self.head = nn.Linear(2, 3)

    def forward(self, images: Tensor, scale: float = 1.0, mask: Tensor | None = None) -> Tensor:
        x = functional.relu(self.get_submodule(self.name)(images))
        x = functional.adaptive_avg_pool2d(x, 1).view(x.size(0), -1)
        if mask is not None:
            x = x * mask
        return self.head(x + x * scale)


class Depends(nn.Module):
    """A network whose layers depend on what it is given."""

    def __init__(self) -> None:
        super().__init__()
        self.one, self.other = nn.Linear(2, 2), nn.Linear(2, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.one(x) if x.sum() > 0 else self.other(x)


def test_layers_come_in_forward_order_with_their_sizes():
    found = describe(small())
    assert [str(layer) for layer in found.layers] == [
        "conv2d(in 1, out 4, kernel 3, stride 1, groups 1)",
        "batchnorm(out 4)",
        "relu",
        "maxpool(kernel 2, stride 2)",
        "conv2d(in 4, out 6, kernel 5, stride 1, groups 1)",
        "batchnorm(out 6)",
        "relu",
        "avgpool(out 1)",
        "flatten",
        "linear(in 6, out 3)",
        "relu",
    ]
    assert found.edges == tuple((i, i + 1) for i in range(10))


def test_functions_are_layers_and_asking_for_a_size_is_none():
    found = describe(Functional())
    kinds = [layer.kind for layer in found.layers]
    assert kinds == ["conv2d", "relu", "avgpool", "reshape", "mul", "add", "linear"]
    assert found.edges == ((0, 1), (1, 2), (2, 3), (3, 4), (3, 5), (4, 5), (5, 6))
    assert found.layers[0].sizes == (
        *(("in", 1), ("out", 2), ("kernel0", 3), ("kernel1", 1), ("stride", 2), ("groups", 1)),
    )


class Mixer(nn.Module):
    """Mixes places, then channels."""

    def __init__(self) -> None:
        super().__init__()
        self.places, self.channels = nn.Linear(5, 5), nn.Linear(3, 3)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.places(x.mT).mT
        return self.channels(x.to(x.device, x.dtype)) * x.shape[0] / x.ndim


def test_a_view_of_data_is_a_layer_and_asking_what_they_are_is_none():
    found = describe(Mixer())
    kinds = [layer.kind for layer in found.layers]
    assert kinds == ["transpose", "linear", "transpose", "add", "to", "linear", "mul", "truediv"]
    assert found.edges == tuple((i, i + 1) for i in range(7))


def test_neither_names_nor_weights_matter():
    network = small()
    other = small()
    with torch.no_grad():
        for weight in other.parameters():
            weight.add_(1.0)
    assert describe(network).fingerprint == describe(other).fingerprint
    assert describe(nn.Sequential(network)).fingerprint == describe(other).fingerprint
    assert describe(Functional("here")).fingerprint == describe(Functional("there")).fingerprint


def test_the_order_of_growth_does_not_matter_but_its_place_does():
    network = small()
    one, other = copy.deepcopy(network), copy.deepcopy(network)
    for grown, order in ((one, [0, 1]), (other, [1, 0])):
        for block in order:
            deepen(grown, blocks(grown)[block])
    twice = copy.deepcopy(network)
    deepen(twice, blocks(twice)[0])
    deepen(twice, blocks(twice)[0])
    assert describe(one) == describe(other)
    assert len({describe(each).fingerprint for each in (network, one, twice)}) == 3


def test_a_residual_block_has_an_edge_around_it():
    found = describe(torchvision.models.resnet18(weights=None, num_classes=10))
    sums = [at for at, layer in enumerate(found.layers) if layer.kind == "add"]
    assert len(sums) == 8
    assert all(len([tail for tail, head in found.edges if head == at]) == 2 for at in sums)


def test_a_network_that_depends_on_its_input_is_its_layers_in_a_row():
    layer = Layer("linear", (("in", 2), ("out", 2)))
    assert describe(Depends()) == Structure((layer, layer), ((0, 1),))


@pytest.mark.parametrize("name", MODELS)
def test_every_model_has_a_structure(name):
    shapes = {"classification": ((3, 32, 32), 10), "language": ((16,), 20)}
    inputs, outputs = shapes.get(MODELS[name].task, ((4,), 2))
    found = describe(build(name, inputs, outputs))
    assert found.edges
    assert Structure.from_json(found.as_json()) == found
    assert any(layer.kind == "linear" for layer in found.layers)
