"""Every network of the registry keeps the same promises."""

import copy
import subprocess
import sys

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

from rota.core.errors import ConfigError
from rota.training.models.registry import MODELS, build, model

IMAGES = [name for name, entry in MODELS.items() if entry.task == "classification"]
CONVOLUTIONAL = [name for name in IMAGES if not name.startswith("feedforward")]
HEAVY = ["resnet50", "vgg16", "vgg19"]
LIGHT = [name for name in MODELS if name not in (*HEAVY, "resnet18")]
SHAPES = {"classification": ((3, 32, 32), 10), "language": ((64,), 256), "a2c": ((4,), 2), "dqn": ((4,), 2)}


def shapes(name: str) -> tuple[tuple[int, ...], int]:
    return SHAPES[model(name).task]


def fresh(name: str, seed: int = 0) -> nn.Module:
    return build(name, *shapes(name), seed=seed)


def some_inputs(name: str, count: int = 2) -> Tensor:
    shape, outputs = shapes(name)
    generator = torch.Generator().manual_seed(1)
    if model(name).task == "language":
        return torch.randint(outputs, (count, *shape), generator=generator)
    return torch.randn(count, *shape, generator=generator)


def answers(outputs: Tensor | tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    return outputs if isinstance(outputs, tuple) else (outputs,)


@pytest.mark.parametrize("name", MODELS)
def test_every_model_answers_in_the_shape_of_its_task(name):
    shape = {"classification": [(2, 10)], "language": [(2, 64, 256)], "a2c": [(2, 2), (2,)], "dqn": [(2, 2)]}
    network = fresh(name)
    assert network.training
    with torch.no_grad():
        found = answers(network(some_inputs(name)))
    assert [tuple(part.shape) for part in found] == shape[model(name).task]
    assert all(part.isfinite().all() for part in found)


@pytest.mark.parametrize("name", LIGHT)
def test_a_step_down_the_gradient_reaches_every_weight_and_lowers_the_loss(name):
    network, inputs = fresh(name), some_inputs(name)

    def loss() -> Tensor:
        return sum((part - 0.5).square().mean() for part in answers(network(inputs)))

    before = loss()
    before.backward()
    weights = dict(network.named_parameters())
    assert [key for key, weight in weights.items() if weight.grad is None] == []
    torch.optim.SGD(network.parameters(), lr=1e-3).step()
    assert loss() < before


@pytest.mark.parametrize("name", LIGHT)
def test_the_seed_alone_decides_the_weights(name):
    torch.manual_seed(5)
    one = fresh(name, seed=3)
    torch.manual_seed(6)
    same, other = fresh(name, seed=3), fresh(name, seed=4)
    assert one.state_dict().keys() == same.state_dict().keys()
    assert all(torch.equal(a, b) for a, b in zip(one.parameters(), same.parameters(), strict=True))
    assert not all(torch.equal(a, b) for a, b in zip(one.parameters(), other.parameters(), strict=True))


@pytest.mark.parametrize("name", ["convnet2", "shufflenet", "transformer", "a2c"])
@pytest.mark.parametrize("error", [False, True])
def test_building_leaves_the_global_generator_as_it_was(name, error):
    state = torch.get_rng_state()
    if error:
        with pytest.raises(ConfigError):
            build(name, (2, 2), 2)
    else:
        fresh(name)
    assert torch.equal(torch.get_rng_state(), state)


@pytest.mark.parametrize("name", LIGHT)
def test_a_copy_and_a_network_with_the_same_weights_compute_the_same(name):
    network, inputs = fresh(name).eval(), some_inputs(name)
    duplicate, filled = copy.deepcopy(network), fresh(name, seed=9).eval()
    filled.load_state_dict(network.state_dict())
    with torch.no_grad():
        for twin in (duplicate, filled):
            for mine, other in zip(answers(network(inputs)), answers(twin(inputs)), strict=True):
                assert torch.equal(mine, other)


@pytest.mark.parametrize("name", LIGHT)
def test_a_traced_network_computes_the_same(name):
    network, inputs = fresh(name).eval(), some_inputs(name)
    traced = torch.fx.symbolic_trace(network)
    with torch.no_grad():
        for mine, other in zip(answers(network(inputs)), answers(traced(inputs)), strict=True):
            assert torch.equal(mine, other)


@pytest.mark.parametrize("name", ["resnet18", "resnet50", "shufflenet"])
def test_small_images_are_still_a_map_when_they_reach_the_last_stage(name):
    network = fresh(name).eval()
    last = {"shufflenet": "conv5"}.get(name, "layer4")
    sizes = []
    network.get_submodule(last).register_forward_hook(lambda _, __, output: sizes.append(output.shape[2:]))
    with torch.no_grad():
        network(some_inputs(name, 1))
    assert sizes == [(4, 4)]


@pytest.mark.parametrize("name", [name for name in CONVOLUTIONAL if name not in HEAVY])
def test_image_models_take_grey_images_and_other_sizes_and_numbers_of_classes(name):
    network = build(name, (1, 16, 12), 7)
    with torch.no_grad():
        assert network(torch.zeros(2, 1, 16, 12)).shape == (2, 7)


def test_vgg_takes_grey_images():
    with torch.no_grad():
        assert build("vgg16", (1, 32, 40), 100)(torch.zeros(2, 1, 32, 40)).shape == (2, 100)


@pytest.mark.parametrize("name", CONVOLUTIONAL)
@pytest.mark.parametrize("inputs", [(4,), (3, 32), (1, 3, 32, 32), (0, 32, 32), ()])
def test_what_is_no_image_is_refused_by_image_models(name, inputs):
    with pytest.raises(
        ConfigError, match=rf"^model '{name}': takes images of shape \(channels, height, width\)"
    ):
        build(name, inputs, 10)


@pytest.mark.parametrize(
    ("name", "inputs"), [("convnet2", (3, 1, 8)), ("convnet-large", (3, 8, 3)), ("vgg16", (3, 16, 16))]
)
def test_images_that_would_be_pooled_away_are_refused(name, inputs):
    with pytest.raises(
        ConfigError, match=rf"^model '{name}': takes images of .* give a larger size or another"
    ):
        build(name, inputs, 10)


@pytest.mark.parametrize("name", ["transformer", "a2c", "dqn"])
@pytest.mark.parametrize("inputs", [(3, 32, 32), (), (0,)])
def test_images_are_refused_by_models_that_take_none(name, inputs):
    with pytest.raises(
        ConfigError, match=f"^model '{name}': takes (texts|observations) .*, not inputs of shape"
    ):
        build(name, inputs, 2)


@pytest.mark.parametrize("inputs", [(), (0,), (3, 0, 4)])
def test_a_feed_forward_network_needs_something_to_look_at(inputs):
    with pytest.raises(ConfigError, match=r"^model 'feedforward1': takes inputs of at least one number"):
        build("feedforward1", inputs, 10)


def test_a_network_without_outputs_is_refused():
    with pytest.raises(ConfigError, match=r"^model 'convnet': needs at least one output, not 0"):
        build("convnet", (3, 32, 32), 0)


@pytest.mark.parametrize(
    ("name", "guess"), [("convnet4", "convnet"), ("resnet-18", "resnet18"), ("DQN", None)]
)
def test_an_unknown_name_suggests_what_was_probably_meant(name, guess):
    hint = f" Did you mean '{guess}" if guess else " Known: convnet, convnet2"
    with pytest.raises(ConfigError, match=rf"^unknown model '{name}'\.{hint}"):
        build(name, (3, 32, 32), 10)


def test_a_small_network_is_built_without_torchvision_and_gymnasium():
    code = (
        "import sys; from rota.training.models.registry import build; build('convnet2', (3, 8, 8), 10);"
        "print({'torchvision', 'gymnasium', 'sklearn'} & set(sys.modules))"
    )
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "set()"


@given(
    shape=st.lists(st.integers(1, 5), min_size=1, max_size=4).map(tuple),
    outputs=st.integers(1, 5),
    blocks=st.integers(1, 3),
)
def test_feed_forward_networks_take_inputs_of_any_shape(shape, outputs, blocks):
    network = build(f"feedforward{blocks}", shape, outputs)
    with torch.no_grad():
        assert network(torch.zeros(2, *shape)).shape == (2, outputs)
