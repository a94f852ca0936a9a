"""Which layers of a network belong to which block, before and after it has grown."""

import pytest
from torch import Tensor, nn

from rota.core.network import NOTHING, Change
from rota.training.describe import describe, observation_of, with_blocks
from rota.training.models.registry import build
from rota.training.net2net import blocks, deepen, layer_in, widen


def grown(name: str, *names: str, inputs: tuple[int, ...] = (3, 32, 32), outputs: int = 10) -> nn.Module:
    """A model with a layer more behind each of these blocks."""
    network = build(name, inputs, outputs)
    for block in names:
        deepen(network, block)
    return network


def kinds(network: nn.Module) -> list[list[str]]:
    """Of the layers of each block."""
    structure, parts = with_blocks(network)
    return [[structure.layers[at].kind for at in part] for part in parts]


class Depends(nn.Module):
    """A network that cannot be traced: how often it runs its layers depends on what it is given."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(3, 3), nn.ReLU(), nn.Linear(3, 2))

    def forward(self, x: Tensor) -> Tensor:
        return self.body(x) if x.sum() > 0 else self.body(-x)


def test_the_blocks_of_convnet2():
    """conv, norm, relu; pool; conv, norm, relu; squeeze, flatten; linear, relu."""
    structure, parts = with_blocks(grown("convnet2"))
    assert len(structure.layers) == 11
    assert parts == ((0, 1, 2), (4, 5, 6), (9, 10))


def test_new_layers_belong_to_the_block_that_has_grown():
    assert with_blocks(grown("convnet2", "conv1"))[1] == ((0, 1, 2, 3, 4, 5), (7, 8, 9), (12, 13))
    assert with_blocks(grown("convnet2", "linear", "conv2"))[1] == (
        *((0, 1, 2), (4, 5, 6, 7, 8, 9), (12, 13, 14, 15)),
    )


def test_a_block_that_grows_twice_has_all_three():
    assert with_blocks(grown("convnet2", "conv1", "conv1"))[1] == (tuple(range(9)), (10, 11, 12), (15, 16))


def test_a_wider_network_has_the_same_blocks():
    network = grown("convnet2")
    before = with_blocks(network)
    widen(network, layer_in(network, "conv1"), 64)
    structure, parts = with_blocks(network)
    assert parts == before[1]
    assert structure != before[0]
    assert structure.layers[0].size("out") == 64


def test_the_head_of_a_feed_forward_network_is_no_block():
    """flatten; linear, relu; linear, relu; head."""
    assert with_blocks(grown("feedforward2"))[1] == ((1, 2), (3, 4))
    assert with_blocks(grown("feedforward2", "linear1"))[1] == ((1, 2, 3, 4), (5, 6))


def test_plain_sequences_have_blocks_without_marks():
    assert with_blocks(grown("dqn", inputs=(4,), outputs=2))[1] == ((0, 1), (2, 3))
    assert with_blocks(grown("dqn", "0", inputs=(4,), outputs=2))[1] == ((0, 1, 2, 3), (4, 5))


def test_ten_layers_on_a_name_is_not_mistaken_for_the_beginning_of_another():
    """Layer 1 is the activation of layer 0, and layers 10 and 11 are not in it."""
    network = nn.Sequential(*(part for _ in range(6) for part in (nn.Linear(2, 2), nn.ReLU())))
    assert with_blocks(network)[1] == tuple((at, at + 1) for at in range(0, 12, 2))


def test_residual_blocks_of_resnet18():
    """A block of two convolutions is one place to grow, behind its sum; its first convolution another.

    conv1, norm, relu, identity; then conv, norm, relu, conv, norm, sum, relu twice; the first block of the
    second stage has a convolution and a norm beside its skip connection.
    """
    network = grown("resnet18")
    parts = with_blocks(network)[1]
    assert len(parts) == len(blocks(network)) == 1 + 2 * 8
    assert parts[:3] == ((0, 2), (4, 5), (4, 5, 6, 7, 8, 9, 10))
    assert parts[5:7] == ((18, 19), tuple(range(18, 27)))


def test_growth_behind_a_sum_belongs_to_the_residual_block_and_not_to_its_first_layer():
    """Three layers more: new conv, norm, relu behind position 26, and nowhere else."""
    before = with_blocks(grown("resnet18"))[1]
    after = with_blocks(grown("resnet18", "layer2.0"))[1]
    assert after[:6] == before[:6]
    assert after[6] == tuple(range(18, 30))
    assert after[7:] == tuple(tuple(at + 3 for at in part) for part in before[7:])


def test_growth_inside_a_residual_block_belongs_to_both():
    """Behind the first norm: relu, conv, norm, in front of the relu that both convolutions share."""
    parts = with_blocks(grown("resnet18", "layer1.0.conv1"))[1]
    assert parts[:3] == ((0, 2), (4, 5, 6, 7, 8), tuple(range(4, 14)))
    assert kinds(grown("resnet18", "layer1.0.conv1"))[1] == [
        "conv2d",
        "batchnorm",
        "relu",
        "conv2d",
        "batchnorm",
    ]


def test_growth_behind_an_activation_of_its_own_belongs_to_the_layer_before_it():
    assert with_blocks(grown("resnet18", "conv1", "conv1"))[1][0] == (0, 2, 3, 4, 5, 6, 7, 8)


def test_a_network_that_cannot_be_traced_has_blocks_too():
    network = Depends()
    assert with_blocks(network)[1] == ((0, 1),)
    deepen(network, "body.0")
    assert with_blocks(network)[1] == ((0, 1, 2, 3),)


def test_a_network_in_which_nothing_can_grow_has_none():
    assert with_blocks(build("transformer", (16,), 20))[1] == ()


@pytest.mark.parametrize("name", ["convnet", "convnet-large", "resnet18", "vgg16", "shufflenet"])
def test_each_block_has_exactly_the_new_layers_more_when_it_grows(name):
    """Wherever it grows: as many layers more in its blocks as in the network, and no block loses any."""
    network = build(name, (3, 32, 32), 10)
    names = blocks(network)
    for at in {0, len(names) // 2, len(names) - 1}:
        structure, before = with_blocks(network)
        deepen(network, names[at])
        after_structure, after = with_blocks(network)
        more = len(after_structure.layers) - len(structure.layers)
        assert more >= 2
        assert len(after[at]) == len(before[at]) + more
        assert all(
            len(one) <= len(other) <= len(one) + more for one, other in zip(before, after, strict=True)
        )


def test_a_sight_is_the_network_as_it_is_now():
    network = grown("convnet2", "conv1")
    actions = [Change("deepen", 0), NOTHING]
    observation = observation_of(network, left_s=30.0, budget_s=120.0, actions=actions, made=[0])
    assert observation.structure == describe(network)
    assert observation.blocks == with_blocks(network)[1]
    assert (observation.left, observation.actions, observation.made) == (0.25, tuple(actions), (0,))
