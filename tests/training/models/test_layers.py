"""What the networks are made of."""

import pytest
import torch
from torch import nn

from rota.training.models.networks import Block
from rota.training.models.registry import build


def layers(name: str) -> list[str]:
    """The layers of a network of blocks in order; a convolution or linear layer with its widths."""
    return [line for part in build(name, (3, 32, 32), 10) for line in described(part)]


def described(part: nn.Module) -> list[str]:
    if isinstance(part, Block):
        return ["block", *(line for layer in part for line in described(layer))]
    match part:
        case nn.Conv2d():
            return [
                f"conv {part.in_channels} {part.out_channels} {part.kernel_size[0]}×{part.kernel_size[1]}"
            ]
        case nn.Linear():
            return [f"linear {part.in_features} {part.out_features}"]
        case nn.AvgPool2d():
            return [f"average pool {part.kernel_size}"]
    return [type(part).__name__]


def conv(inputs: int, outputs: int) -> list[str]:
    return ["block", f"conv {inputs} {outputs} 3×3", "BatchNorm2d", "ReLU"]


def test_convnet2_is_as_recorded_elsewhere():
    tail = ["AdaptiveAvgPool2d", "Flatten", "block", "linear 32 10", "ReLU"]
    assert layers("convnet2") == [*conv(3, 32), "average pool 2", *conv(32, 32), *tail]


def test_convnet3_is_as_recorded_elsewhere():
    tail = ["AdaptiveAvgPool2d", "Flatten", "block", "linear 32 10", "ReLU"]
    assert layers("convnet3") == [*conv(3, 64), *conv(64, 32), *tail]


def test_convnet_has_three_convolution_blocks_and_a_pool_after_the_second():
    kinds = [line.split()[0] for line in layers("convnet") if line.startswith(("conv", "average"))]
    assert kinds == ["conv", "conv", "average", "conv"]


@pytest.mark.parametrize(
    ("name", "blocks"), [("convnet", 4), ("convnet2", 3), ("convnet3", 3), ("convnet-large", 7)]
)
def test_convolutional_networks_consist_of_marked_blocks(name, blocks):
    assert sum(isinstance(part, Block) for part in build(name, (3, 32, 32), 10)) == blocks


@pytest.mark.parametrize("blocks", [1, 2, 3])
def test_feed_forward_networks_have_as_many_blocks_as_their_name_says(blocks):
    network = build(f"feedforward{blocks}", (1, 8, 8), 10)
    assert sum(isinstance(part, Block) for part in network) == blocks
    assert isinstance(network[-1], nn.Linear)


@pytest.mark.parametrize(
    ("name", "weights"),
    [
        ("convnet2", 3 * 32 * 9 + 32 + 2 * 32 + 32 * 32 * 9 + 32 + 2 * 32 + 32 * 10 + 10),
        ("convnet3", 3 * 64 * 9 + 64 + 2 * 64 + 64 * 32 * 9 + 32 + 2 * 32 + 32 * 10 + 10),
        (
            "resnet18",
            11_173_962,
        ),  # the published 11,689,512 with another stem (1,728) and another head (5,130)
    ],
)
def test_networks_have_the_number_of_weights_that_follows_from_their_layers(name, weights):
    assert sum(weight.numel() for weight in build(name, (3, 32, 32), 10).parameters()) == weights


class TestTransformer:
    def test_has_about_two_hundred_thousand_weights(self):
        network = build("transformer", (64,), 256)
        assert 150_000 < sum(weight.numel() for weight in network.parameters()) < 250_000

    def test_sees_only_what_came_before(self):
        network = build("transformer", (16,), 50).eval()
        text = torch.arange(16)[None]
        changed = text.clone()
        changed[0, 9] = 40
        with torch.no_grad():
            one, other = network(text)[0], network(changed)[0]
        torch.testing.assert_close(one[:9], other[:9])
        assert all((one[at] - other[at]).abs().max() > 1e-4 for at in range(9, 16))

    def test_a_shorter_text_is_read_as_the_beginning_of_a_longer_one(self):
        network = build("transformer", (16,), 50).eval()
        text = torch.arange(16)[None]
        with torch.no_grad():
            torch.testing.assert_close(network(text[:, :5]), network(text)[:, :5])

    def test_knows_where_in_the_text_a_symbol_is(self):
        network = build("transformer", (16,), 50).eval()
        with torch.no_grad():
            answer = network(torch.zeros(1, 16, dtype=torch.int64))[0]
        assert (answer[0] - answer[5]).abs().max() > 1e-3
