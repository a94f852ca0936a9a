"""Networks in Keras on real TensorFlow and back: the same outputs, to 1e-5, in both directions."""

import subprocess
import sys
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_digits
from torch import Tensor, nn
from torch.nn import functional

from rota.core.errors import InputError
from rota.training.keras import export_weights, import_weights, load, predict, save, to_keras
from rota.training.keras.operations import keras, parts
from rota.training.models.networks import conv_block, linear_block
from rota.training.models.registry import MODELS, build
from rota.training.net2net import blocks, deepen, widen

# Keras asks TensorFlow's variables for a copy in a way that NumPy will not know for ever.
pytestmark = pytest.mark.filterwarnings(
    "ignore:__array__ implementation doesn't accept a copy:DeprecationWarning"
)

INPUTS = {"classification": (3, 8, 8), "language": (12,), "a2c": (4,), "dqn": (4,)}
"""The shape of one input for the models of a task …"""
LARGER = {"vgg16": (3, 32, 32), "vgg19": (3, 32, 32)}
"""… and for those that need more than that."""


@pytest.fixture(scope="module", autouse=True)
def library() -> Any:
    """Keras, imported once."""
    return keras()


@pytest.mark.parametrize("name", MODELS)
def test_every_model_goes_to_keras_and_back(name: str) -> None:
    shape = LARGER.get(name, INPUTS[MODELS[name].task])
    network, other = (_lived(build(name, shape, 10, seed)) for seed in (1, 2))
    inputs = _integers(3, *shape) if MODELS[name].task == "language" else _numbers(3, *shape)
    model = to_keras(network, inputs)
    _same(_outputs(network, inputs), predict(model, inputs))
    import_weights(model, other)
    _same(_outputs(other, inputs), _outputs(network, inputs))
    export_weights(_lived(other, seed=5), model)
    _same(_outputs(other, inputs), predict(model, inputs))


def test_a_network_that_grew_goes_to_keras_and_back() -> None:
    network = _lived(build("convnet2", (3, 8, 8), 10, seed=1))
    for block in [*blocks(network), blocks(network)[0]]:
        deepen(network, block)
    widen(network, "conv1.0", 40)
    inputs, other = _numbers(4, 3, 8, 8), _lived(deepcopy(network), seed=9)
    model = to_keras(network, inputs)
    _same(_outputs(network, inputs), predict(model, inputs))
    import_weights(model, other)
    _same(_outputs(other, inputs), _outputs(network, inputs))


def test_what_keras_has_learnt_comes_back(library: Any) -> None:
    images, labels = load_digits(return_X_y=True)
    inputs = torch.from_numpy(images).float().reshape(-1, 1, 8, 8) / 16
    network = nn.Sequential(conv_block(1, 8), nn.Flatten(), nn.Linear(512, 10))
    model = to_keras(network, inputs[:2])
    model.compile("adam", library.losses.SparseCategoricalCrossentropy(from_logits=True))
    model.fit(inputs[:1500].movedim(1, -1).numpy(), labels[:1500], epochs=3, verbose=0)
    import_weights(model, network)
    outputs = _outputs(network, inputs[1500:])
    _same(outputs, predict(model, inputs[1500:]))
    accuracy = (outputs.argmax(1).numpy() == labels[1500:]).mean()
    assert accuracy > 0.6


def test_a_saved_model_is_read_back(tmp_path: Path) -> None:
    inputs, file = _integers(2, 12), tmp_path / "new" / "network.keras"
    model = to_keras(build("transformer", (12,), 10, seed=1), inputs)
    save(model, file)
    read, other = load(file), build("transformer", (12,), 10, seed=2)
    _same(predict(read, inputs), predict(model, inputs))
    import_weights(read, other)
    _same(_outputs(other, inputs), predict(model, inputs))
    assert [path.name for path in file.parent.iterdir()] == ["network.keras"]


def test_another_process_reads_the_file_and_hears_no_chatter(tmp_path: Path) -> None:
    file, inputs = tmp_path / "network.keras", torch.ones(1, 3, 8, 8)
    model = to_keras(build("convnet2", (3, 8, 8), 10), inputs)
    save(model, file)
    program = f"""
import numpy as np
from rota.training.keras.operations import keras
model = keras().saving.load_model({str(file)!r})
print(*model(np.ones((1, 8, 8, 3), "float32"), training=False).numpy()[0])
"""
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=350)
    assert run.stderr == ""
    expected = predict(model, inputs)[0].tolist()
    assert [float(number) for number in run.stdout.split()] == pytest.approx(expected, rel=1e-5, abs=1e-5)


# Where weights go, by hand.


def test_linear_kernels_are_in_times_out() -> None:
    network = nn.Sequential(nn.Linear(2, 3))
    network[0].weight.data = torch.tensor([[1.0, 2], [3, 4], [5, 6]])
    layer = to_keras(network, torch.zeros(1, 2)).get_layer("0")
    assert layer.kernel.numpy().tolist() == [[1, 3, 5], [2, 4, 6]]
    assert layer.bias.numpy().tolist() == network[0].bias.tolist()


def test_convolution_kernels_are_height_width_in_out() -> None:
    network = nn.Sequential(nn.Conv2d(3, 4, (5, 2)))
    kernel = to_keras(network, torch.zeros(1, 3, 6, 6)).get_layer("0").kernel.numpy()
    assert kernel.shape == (5, 2, 3, 4)
    assert kernel[4, 1, 2, 3] == network[0].weight[3, 2, 4, 1].item()


def test_batch_normalisation_has_its_own_epsilon_and_one_minus_momentum() -> None:
    network = _lived(nn.Sequential(nn.BatchNorm2d(3, eps=0.25, momentum=0.3)))
    layer = to_keras(network, torch.zeros(1, 3, 2, 2)).get_layer("0")
    assert (layer.epsilon, layer.momentum) == (0.25, pytest.approx(0.7))
    pairs = {
        "gamma": "weight",
        "beta": "bias",
        "moving_mean": "running_mean",
        "moving_variance": "running_var",
    }
    for theirs, ours in pairs.items():
        assert getattr(layer, theirs).numpy().tolist() == getattr(network[0], ours).tolist()


def test_pixels_are_flattened_in_pytorchs_order() -> None:
    image = torch.arange(12.0).reshape(1, 3, 2, 2)
    assert predict(to_keras(nn.Sequential(nn.Flatten()), image), image)[0].tolist() == list(range(12))


def test_an_image_that_comes_out_has_its_channels_last_in_keras() -> None:
    image = _numbers(2, 3, 4, 5)
    model = to_keras(nn.Sequential(nn.Identity()), image)
    assert model.output_shape == (None, 4, 5, 3)
    assert torch.equal(predict(model, image), image)


# Layers and operations in all their settings.


@st.composite
def convolutions(draw: st.DrawFn) -> tuple[nn.Module, Tensor]:
    groups, per_group, multiplier = draw(st.sampled_from([(1, 3, 2), (2, 2, 2), (4, 1, 1), (4, 1, 2)]))
    kernel = draw(st.tuples(st.integers(1, 4), st.integers(1, 4)))
    stride = draw(st.tuples(st.integers(1, 3), st.integers(1, 3)))
    dilation = draw(st.integers(1, 2)) if stride == (1, 1) else 1
    numbers = st.tuples(st.integers(0, 3), st.integers(0, 3))
    padding = draw(st.sampled_from(["same", "valid"]) | numbers if stride == (1, 1) else numbers)
    channels = groups * per_group
    layer = nn.Conv2d(
        *(channels, channels * multiplier, kernel, stride, padding, dilation, groups),
        bias=draw(st.booleans()),
    )
    return nn.Sequential(layer), _numbers(2, channels, draw(st.integers(7, 10)), draw(st.integers(7, 10)))


@pytest.mark.filterwarnings("ignore:Using padding='same' with even kernel lengths:UserWarning")
@given(convolutions())
@settings(max_examples=30)
def test_every_convolution(drawn: tuple[nn.Module, Tensor]) -> None:
    network, inputs = drawn
    model = to_keras(network, inputs)
    _same(_outputs(network, inputs), predict(model, inputs))
    other = deepcopy(network)
    nn.init.zeros_(other[0].weight)
    import_weights(model, other)
    assert torch.equal(other[0].weight, network[0].weight)


@pytest.mark.parametrize(
    "layer",
    [
        nn.MaxPool2d(3, stride=2, padding=1),
        nn.MaxPool2d((2, 3), ceil_mode=False),
        nn.AvgPool2d(3, stride=2, padding=1),
        nn.AvgPool2d(2),
        nn.AdaptiveAvgPool2d((3, 2)),
        nn.AdaptiveAvgPool2d(12),
        nn.BatchNorm2d(4, affine=False),
        nn.Dropout(0.4),
        nn.LeakyReLU(0.3),
        nn.ReLU6(),
        nn.SiLU(),
        nn.Tanh(),
        nn.Sigmoid(),
        nn.GELU(),
        nn.GELU("tanh"),
        nn.Softmax(dim=1),
        nn.LogSoftmax(dim=-1),
        nn.LayerNorm((6, 6)),
        nn.Linear(6, 3, bias=False),
    ],
    ids=repr,
)
def test_every_layer(layer: nn.Module) -> None:
    network, inputs = _lived(nn.Sequential(layer)), _numbers(2, 4, 6, 6) - 1  # mostly below zero
    _same(_outputs(network, inputs), predict(to_keras(network, inputs), inputs))


class Branches(nn.Module):
    """Uses a layer twice, a parameter and a buffer of its own, and most kinds of arithmetic."""

    def __init__(self) -> None:
        super().__init__()
        self.add = nn.Conv2d(4, 4, 1)  # called what Keras calls one of its own operations
        self.norm = nn.BatchNorm1d(4)
        self.scale = nn.Parameter(torch.rand(4, 1, 1))
        self.register_buffer("shift", torch.rand(4, 3, 3))

    def forward(self, x: Tensor) -> Any:
        left, right = torch.split(self.add(self.add(x)), [1, 3], dim=1)
        x = (torch.cat([right, left], 1) * self.scale - self.shift) / 2
        x = functional.relu(functional.max_pool2d(x + 1, 2, stride=1))
        rows = self.norm(x.reshape(x.size(0), 4, -1))
        return {
            "rows": rows @ rows.transpose(1, 2),
            "means": (x.mean((2, 3)), x[:, 1:, 0].tanh().unsqueeze(1)),
        }


def test_branches_and_loose_parameters() -> None:
    network, inputs = _lived(Branches()), _numbers(2, 4, 3, 3)
    model, other = to_keras(network, inputs), _lived(Branches(), seed=7)
    for ours, theirs in zip(parts(_outputs(network, inputs)), parts(predict(model, inputs)), strict=True):
        _same(ours, theirs)
    import_weights(model, other)
    assert torch.equal(other.scale, network.scale)
    assert torch.equal(other.shift, network.shift)
    assert "scale" in [variable.path.split("/")[0] for variable in model.trainable_variables]
    assert "shift" not in [variable.path.split("/")[0] for variable in model.trainable_variables]


def test_images_are_multiplied_as_matrices_of_their_pixels() -> None:
    network, inputs = Unusual(lambda x: torch.matmul(x, x) @ x), _numbers(2, 6, 6, 6)
    _same(_outputs(network, inputs), predict(to_keras(network, inputs), inputs))


class Optional(nn.Module):
    """Takes more than it needs."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 2)

    def forward(
        self, x: Tensor, mask: Tensor | None = None, scale: float = 2.0, deep: bool = False
    ) -> Tensor:
        x = self.linear(x) * scale
        return x if mask is None else x * mask


def test_arguments_that_may_be_left_out_are() -> None:
    network, inputs = Optional(), _numbers(2, 4)
    model = to_keras(network, inputs)
    _same(_outputs(network, inputs), predict(model, inputs))
    import_weights(model, network)


class Auxiliary(nn.Module):
    """Has a head and a buffer that only training needs."""

    def __init__(self) -> None:
        super().__init__()
        self.body, self.aux = nn.Linear(4, 2), nn.Linear(4, 2)
        self.register_buffer("seen", torch.zeros(3))

    def forward(self, x: Tensor) -> Any:
        return (self.body(x), self.aux(x) + self.seen.sum()) if self.training else self.body(x)


def test_what_only_training_uses_is_named() -> None:
    network = Auxiliary()
    with pytest.raises(InputError, match="layer 'aux': is not used in evaluation mode; remove it first"):
        to_keras(network, _numbers(2, 4))
    del network.aux
    with pytest.raises(InputError, match="layer 'seen': is not used in evaluation mode; remove it first"):
        to_keras(network, _numbers(2, 4))
    del network.seen
    _same(_outputs(network, _numbers(2, 4)), predict(to_keras(network, _numbers(2, 4)), _numbers(2, 4)))


def test_the_network_stays_as_it_was() -> None:
    network = build("convnet2", (3, 8, 8), 10).train()
    network.conv1.eval()
    before, modes = deepcopy(network.state_dict()), [module.training for module in network.modules()]
    to_keras(network, _numbers(2, 3, 8, 8))
    assert [module.training for module in network.modules()] == modes
    assert all(torch.equal(before[name], value) for name, value in network.state_dict().items())


# What cannot be done.


class Unusual(nn.Module):
    def __init__(self, step: Any) -> None:
        super().__init__()
        self.step = step

    def forward(self, x: Tensor) -> Any:
        return self.step(x)


@pytest.mark.parametrize(
    ("network", "said"),
    [
        (Unusual(torch.fft.fft), "unknown operation 'fft_fft'"),
        (Unusual(lambda x: x.cumsum(1)), "layer 'cumsum': .* unknown operation 'cumsum'"),
        (nn.Sequential(nn.PReLU()), "layer '0': .* unknown operation 'PReLU'"),
        (Unusual(lambda x: x if x.sum() > 0 else -x), "Unusual: its steps cannot be traced"),
        (Unusual(lambda x: x / x.size(0)), "Unusual: in Keras it computes something else"),
        (Unusual(lambda x: (x, 3)), "Unusual: answers with 3, which is not a tensor"),
        (Unusual(lambda x: x + torch.ones(6)), "make it a buffer"),
        (nn.Bilinear(4, 4, 2), "takes 2 inputs"),
        (nn.Linear(6, 2), "Linear: a layer by itself has no name"),
        (nn.Sequential(nn.Conv2d(4, 4, 3, padding=1, padding_mode="reflect")), "'0': .* this padding_mode"),
        (nn.Sequential(nn.BatchNorm2d(4, momentum=None)), "this momentum"),
        (nn.Sequential(nn.BatchNorm2d(4, track_running_stats=False)), "this track_running_stats"),
        (nn.Sequential(nn.MaxPool2d(2, dilation=2)), "this dilation"),
        (nn.Sequential(nn.AvgPool2d(2, padding=1, count_include_pad=False)), "this count_include_pad"),
        (nn.Sequential(nn.AvgPool2d(4, ceil_mode=True)), r"shape \(None, 1, 1, 4\), PyTorch \(2, 2, 2, 4\)"),
        (nn.Sequential(nn.AdaptiveAvgPool2d(4)), r"windows of one size from \(6, 6\) to \(4, 4\)"),
        (nn.Sequential(nn.Conv2d(4, 4, 2, stride=2, dilation=2)), "'0': .* Keras says"),
    ],
)
def test_what_has_no_counterpart_is_named(network: nn.Module, said: str) -> None:
    with pytest.raises(InputError, match=said):
        to_keras(network, _numbers(2, 4, 6, 6))


@pytest.mark.parametrize("inputs", [torch.zeros(0, 4), torch.tensor(1.0), [1.0]])
def test_example_inputs_that_are_none(inputs: Any) -> None:
    with pytest.raises(InputError, match="at least one example"):
        to_keras(nn.Sequential(nn.Linear(4, 4)), inputs)


@pytest.mark.parametrize(
    ("other", "said"),
    [
        (
            [linear_block(4, 5), nn.Linear(5, 2)],
            r"layer '0\.0': kernel is 4×5 in the network and 4×3 in Keras",
        ),
        (
            [linear_block(4, 3), nn.Linear(3, 2, bias=False)],
            "layer '1': bias is absent in the network and 2 in Keras",
        ),
        ([linear_block(4, 3), nn.Identity()], "layer '1': the Keras model has it, the network has not"),
        (
            [linear_block(4, 3), nn.Linear(3, 2), nn.Linear(2, 2)],
            "layer '2': the network has it, the Keras model",
        ),
        (
            [nn.Sequential(nn.Embedding(4, 3)), nn.Linear(3, 2)],
            r"layer '0\.0': embeddings is 4×3 in the network",
        ),
    ],
)
def test_weights_of_another_network_are_refused(other: list[nn.Module], said: str) -> None:
    """And the network keeps what it had."""
    model = to_keras(nn.Sequential(linear_block(4, 3), nn.Linear(3, 2)), torch.zeros(1, 4))
    network = nn.Sequential(*other)
    before = deepcopy(network.state_dict())
    for transfer in (lambda: import_weights(model, network), lambda: export_weights(network, model)):
        with pytest.raises(InputError, match=said):
            transfer()
    assert all(torch.equal(before[name], value) for name, value in network.state_dict().items())


def test_normalisation_with_another_epsilon_is_refused() -> None:
    model = to_keras(nn.Sequential(nn.BatchNorm1d(4)), torch.zeros(1, 4))
    with pytest.raises(InputError, match=r"layer '0': epsilon is 0\.5 in the network and 1e-05 in Keras"):
        import_weights(model, nn.Sequential(nn.BatchNorm1d(4, eps=0.5)))


def test_a_shared_weight_that_keras_trained_apart_is_refused() -> None:
    network = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4))
    network[1].weight = network[0].weight
    model = to_keras(network, torch.zeros(1, 4))
    import_weights(model, network)
    model.get_layer("1").kernel.assign(torch.eye(4).numpy())
    with pytest.raises(InputError, match="layer '1': shares a weight"):
        import_weights(model, network)


def test_files_that_are_not_models(tmp_path: Path) -> None:
    broken = tmp_path / "broken.keras"
    broken.write_bytes(b"PK\x03\x04 and no more")
    with pytest.raises(InputError, match=r"broken\.keras: is not a Keras model that can be read"):
        load(broken)
    with pytest.raises(InputError, match=r"absent\.keras: there is no such file"):
        load(tmp_path / "absent.keras")
    with pytest.raises(InputError, match=r"model\.h5: the name of a Keras model ends with \.keras"):
        load(tmp_path / "model.h5")


def test_without_tensorflow_there_is_a_hint(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "keras", None)
    with pytest.raises(InputError, match=r'pip install "rota\[tensorflow\]"'):
        to_keras(nn.Sequential(nn.Linear(4, 4)), torch.zeros(1, 4))


def _lived(network: nn.Module, seed: int = 0) -> nn.Module:
    """The network with weights and statistics as if it had been trained; those of a new one hide mistakes."""
    generator = torch.Generator().manual_seed(seed)
    for module in network.modules():
        if isinstance(module, nn.BatchNorm1d | nn.BatchNorm2d) and module.running_mean is not None:
            module.running_mean.normal_(0, 0.1, generator=generator)
            module.running_var.uniform_(0.5, 2, generator=generator)
        if isinstance(module, nn.BatchNorm1d | nn.BatchNorm2d | nn.LayerNorm) and module.weight is not None:
            nn.init.uniform_(module.weight, 0.5, 1.5, generator=generator)
            nn.init.normal_(module.bias, 0, 0.1, generator=generator)
    return network


def _numbers(*shape: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(3))


def _integers(*shape: int) -> Tensor:
    return torch.randint(0, 10, shape, generator=torch.Generator().manual_seed(3))


def _outputs(network: nn.Module, inputs: Tensor) -> Any:
    with torch.no_grad():
        return network.eval()(inputs)


def _same(ours: Any, theirs: Any) -> None:
    """Equal to 1e-5, of the largest number where that is above one."""
    assert len(parts(ours)) == len(parts(theirs)) > 0
    for mine, other in zip(parts(ours), parts(theirs), strict=True):
        assert mine.shape == other.shape
        assert (mine - other).abs().max() <= 1e-5 * max(1, mine.abs().max())
