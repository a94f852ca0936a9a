"""How much networks compute, by hand and by growing them."""

import copy

import pytest
import torch
from torch import Tensor, nn

from rota.core.network import NOTHING, SHRINK, Change, Layer, Structure
from rota.learning.features import FLAT, POSITIONS, added, changed, costs, is_main
from rota.training.describe import describe, with_blocks
from rota.training.models.registry import build
from rota.training.net2net import NotGrowable, blocks, deepen, layer_in, widen

RELU = Layer("relu")


def conv(inputs: int, outputs: int, kernel: int = 3, stride: int = 1, groups: int = 1) -> Layer:
    sizes = {"in": inputs, "out": outputs, "kernel": kernel, "stride": stride, "groups": groups}
    return Layer("conv2d", tuple(sizes.items()))


def linear(inputs: int, outputs: int) -> Layer:
    return Layer("linear", (("in", inputs), ("out", outputs)))


def norm(outputs: int) -> Layer:
    return Layer("batchnorm", (("out", outputs),))


def pool(kernel: int, stride: int) -> Layer:
    return Layer("maxpool", (("kernel", kernel), ("stride", stride)))


def chain(*layers: Layer) -> Structure:
    return Structure(layers, tuple((at, at + 1) for at in range(len(layers) - 1)))


def areas(structure: Structure) -> list[float]:
    return [cost.area for cost in costs(structure)]


def total(structure: Structure) -> tuple[float, float]:
    found = costs(structure)
    return sum(cost.work for cost in found), sum(cost.weights for cost in found)


def test_a_convolution_works_once_per_position_and_weight():
    """3·32 pairs of channels by 3×3; with two groups half of them; a stride of 2 leaves 256 of 1024."""
    (plain,) = costs(chain(conv(3, 32)))
    assert (plain.area, plain.weights, plain.work) == (1.0, 3 * 32 * 9, 3 * 32 * 9 * 1024)
    (grouped,) = costs(chain(conv(4, 32, groups=2)))
    assert grouped.weights == 2 * 32 * 9
    (strided,) = costs(chain(conv(3, 32, stride=2)))
    assert (strided.area, strided.work) == (0.25, 3 * 32 * 9 * 256)


def test_kernels_and_strides_that_differ_by_direction():
    sizes = {"in": 2, "out": 4, "kernel0": 3, "kernel1": 1, "stride0": 2, "stride1": 1, "groups": 1}
    (found,) = costs(chain(Layer("conv2d", tuple(sizes.items()))))
    assert (found.area, found.weights) == (0.5, 2 * 4 * 3)


@pytest.mark.parametrize(("dimensions", "area", "weights"), [(1, 1 / 2, 24), (2, 1 / 4, 72), (3, 1 / 8, 216)])
def test_a_convolution_has_as_many_directions_as_its_name_says(dimensions, area, weights):
    sizes = {"in": 2, "out": 4, "kernel": 3, "stride": 2, "groups": 1}
    (found,) = costs(chain(Layer(f"conv{dimensions}d", tuple(sizes.items()))))
    assert (found.area, found.weights) == (area, weights)


def test_normalisation_works_once_per_channel_and_position_and_activations_are_free():
    _, normal, relu = costs(chain(conv(3, 32, stride=2), norm(32), RELU))
    assert (normal.work, normal.weights) == (32 * 256, 32)
    assert (relu.work, relu.weights, relu.area) == (0, 0, 0.25)


def test_a_pool_leaves_fewer_positions_for_what_follows():
    structure = chain(conv(1, 8), pool(2, 2), conv(8, 8), pool(3, 1), Layer("avgpool", (("out", 4),)))
    assert areas(structure) == [1.0, 0.25, 0.25, 0.25, 16 / POSITIONS]
    assert costs(structure)[1].work == costs(structure)[3].work == 0
    assert costs(structure)[2].work == 8 * 8 * 9 * 256


@pytest.mark.parametrize(
    "squeeze",
    [Layer("avgpool", (("out", 1),)), Layer("avgpool"), Layer("flatten"), Layer("mean"), Layer("reshape")],
)
def test_what_is_squeezed_has_one_position(squeeze):
    """So a linear layer works once per weight."""
    *_, last = costs(chain(conv(3, 8), squeeze, linear(8, 10)))
    assert last.area == FLAT == 1 / 1024
    assert (last.work, last.weights) == (80, 80)


def test_there_is_always_a_position_left():
    assert areas(chain(*[pool(2, 2)] * 8))[-1] == FLAT


def test_a_sum_is_as_large_as_both_of_its_sides():
    """conv by 2, relu, conv; a convolution by 2 beside them; sum."""
    layers = (conv(3, 8, stride=2), RELU, conv(8, 8), conv(3, 8, kernel=1, stride=2), Layer("add"))
    structure = Structure(layers, ((0, 1), (1, 2), (2, 4), (3, 4)))
    assert areas(structure) == [0.25] * 5
    assert [cost.weights for cost in costs(structure)] == [216, 0, 576, 24, 0]


def test_a_gate_of_one_position_does_not_shrink_what_it_is_spread_over():
    """Squeeze and excite: conv → (squeeze → conv 1×1 → sigmoid) · conv."""
    layers = (
        conv(3, 8),
        Layer("avgpool", (("out", 1),)),
        conv(8, 8, kernel=1),
        Layer("sigmoid"),
        Layer("mul"),
    )
    structure = Structure((*layers, conv(8, 8)), ((0, 1), (1, 2), (2, 3), (0, 4), (3, 4), (4, 5)))
    assert areas(structure) == [1.0, FLAT, FLAT, FLAT, 1.0, 1.0]


def test_channels_that_are_only_sorted_keep_their_positions():
    """A shuffle reshapes twice; the reshape at the end, with no convolution behind it, is another matter."""
    shuffle = (Layer("reshape"), Layer("transpose"), Layer("reshape"))
    structure = chain(conv(3, 8, stride=2), *shuffle, conv(8, 8), Layer("reshape"), linear(8, 2))
    assert areas(structure) == [0.25] * 5 + [FLAT, FLAT]


def test_shufflenet_works_in_all_of_its_stages():
    """Its three stages halve the image; a convolution in them never has fewer than 4×4 positions."""
    structure = describe(build("shufflenet", (3, 32, 32), 10))
    found = [
        cost.area
        for layer, cost in zip(structure.layers, costs(structure), strict=True)
        if layer.kind == "conv2d"
    ]
    assert sorted(set(found)) == [1 / 64, 1 / 16, 1 / 4, 1.0]


def test_the_work_of_convnet2_by_hand():
    """Batch norms count one weight per channel; what squeezes is all but nothing."""
    found = costs(describe(build("convnet2", (3, 32, 32), 10)))
    work = [3 * 32 * 9 * 1024, 32 * 1024, 0, 0, 32 * 32 * 9 * 256, 32 * 256, 0]
    assert [cost.work for cost in found[:7]] == work
    assert [cost.work for cost in found[-3:]] == [0, 320, 0]
    assert found[7].work <= 1


@pytest.mark.parametrize("name", ["convnet2", "convnet-large", "feedforward2", "resnet18"])
def test_the_weights_are_those_of_the_network(name):
    """But for biases, of which a layer has one per output, and a norm twice as many as are counted."""
    network = build(name, (3, 32, 32), 10)
    matrices = sum(weight.numel() for weight in network.parameters() if weight.dim() > 1)
    structure = describe(network)
    found = zip(structure.layers, costs(structure), strict=True)
    assert sum(cost.weights for layer, cost in found if is_main(layer)) == matrices


def test_the_work_of_a_convolution_is_what_pytorch_does():
    """Counted from the shapes that are really computed: outputs × what each is a sum of."""
    network = build("resnet18", (3, 32, 32), 10).eval()
    done: list[int] = []

    def count(module: nn.Module, _: tuple[Tensor, ...], output: Tensor) -> None:
        done.append(output.numel() * module.weight[0].numel())

    for part in network.modules():
        if isinstance(part, nn.Conv2d | nn.Linear):
            part.register_forward_hook(count)
    with torch.no_grad():
        network(torch.zeros(1, 3, 32, 32))
    structure = describe(network)
    found = [
        cost.work for layer, cost in zip(structure.layers, costs(structure), strict=True) if is_main(layer)
    ]
    assert found == done


def grown_by(network: nn.Module, change: Change) -> tuple[float, float]:
    """The work and the weights that a network really has more after a change."""
    larger = copy.deepcopy(network)
    name = blocks(network)[change.block]
    if change.kind == "deepen":
        deepen(larger, name)
    else:
        widen(larger, layer_in(larger, name), change.width)
    before, after = total(describe(network)), total(describe(larger))
    return after[0] - before[0], after[1] - before[1]


GROWING = ["convnet2", "convnet-large", "feedforward2", "resnet18", "vgg16"]


@pytest.mark.parametrize("name", GROWING)
def test_deepening_adds_what_was_expected_but_for_its_normalisation(name):
    """That is 1 in out·kernel² of the weights: at most 1 in 288 where the narrowest has 32 channels."""
    network = build(name, (3, 32, 32), 10)
    for _ in range(2):  # and once more when it has grown
        structure, parts = with_blocks(network)
        for block in range(0, len(parts), 3):
            change = Change("deepen", block)
            assert added(structure, parts[block], change) == pytest.approx(
                grown_by(network, change), rel=1 / 288
            )
        deepen(network, blocks(network)[0])


def test_behind_a_sum_a_layer_is_as_large_as_the_last_and_not_as_the_one_beside_it():
    """The first block of a stage has a 1×1 convolution beside its skip connection; the new one is 3×3."""
    network = build("resnet18", (3, 32, 32), 10)
    structure, parts = with_blocks(network)
    block = blocks(network).index("layer2.0")
    assert [structure.layers[at].size("kernel") for at in parts[block] if is_main(structure.layers[at])] == [
        3,
        3,
        1,
    ]
    assert added(structure, parts[block], Change("deepen", block)) == (128 * 128 * 9 * 256, 128 * 128 * 9)


@pytest.mark.parametrize("name", [*GROWING, "resnet50"])
def test_widening_adds_what_was_expected(name):
    """Own weights, those of its norm, and of what takes the channels in: all grow by the same ratio."""
    network = build(name, (3, 32, 32), 10)
    structure, parts = with_blocks(network)
    checked = 0
    for block in range(0, len(parts), 16 if name == "resnet50" else 3):
        try:
            widest = network.get_submodule(layer_in(network, blocks(network)[block])).weight.shape[0]
        except NotGrowable:
            continue
        change = Change("widen", block, 3 * widest // 2)
        assert added(structure, parts[block], change) == pytest.approx(grown_by(network, change), rel=1e-3)
        checked += 1
    assert checked


def test_in_a_deepened_block_the_first_layer_is_made_wider():
    network = build("convnet2", (3, 32, 32), 10)
    deepen(network, "conv1")
    structure, parts = with_blocks(network)
    change = Change("widen", 0, 64)
    assert changed(structure, parts[0], change) == 0
    assert changed(structure, parts[0], Change("deepen", 0)) == 3
    assert added(structure, parts[0], change) == grown_by(network, change)


def test_what_does_not_grow_adds_nothing():
    structure, parts = with_blocks(build("convnet2", (3, 32, 32), 10))
    assert added(structure, parts[0], NOTHING) == added(structure, parts[0], SHRINK) == (0, 0)
    assert added(structure, parts[0], Change("widen", 0, 16)) == (0, 0)
    assert added(chain(Layer("strange"), RELU), (0, 1), Change("deepen", 0)) == (0, 0)
