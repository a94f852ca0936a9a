"""Whatever the network and however it grows: it computes what it did, and goes on learning."""

import copy
from collections.abc import Callable

import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.nn import functional

from rota.training.describe import describe
from rota.training.net2net import blocks, deepen, layers, shrink, widen
from rota.training.net2net.identity import original

BATCH = 5


class Residual(nn.Module):
    """A residual block whose activation is one module for both places, as torchvision's, or a function."""

    def __init__(self, inputs: int, outputs: int, kernel: int, built: bool) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, kernel, padding=kernel // 2, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, kernel, padding=kernel // 2, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.relu = nn.ReLU(inplace=True) if built else None
        short = nn.Sequential(nn.Conv2d(inputs, outputs, 1, bias=False), nn.BatchNorm2d(outputs))
        self.downsample = None if inputs == outputs else short

    def forward(self, x: Tensor) -> Tensor:
        relu = self.relu if self.relu is not None else functional.relu
        aside = x if self.downsample is None else self.downsample(x)
        y = self.bn2(self.conv2(relu(self.bn1(self.conv1(x)))))
        return relu(y + aside)


def simple(inputs: int, outputs: int, kernel: int, norm: bool) -> list[nn.Module]:
    found: list[nn.Module] = [nn.Conv2d(inputs, outputs, kernel, padding=kernel // 2)]
    return [*found, *([nn.BatchNorm2d(outputs)] if norm else []), nn.ReLU()]


@st.composite
def networks(draw: st.DrawFn) -> nn.Module:
    """Convolutions, with and without normalisation, and residual blocks, nested; then linear layers."""
    torch.manual_seed(draw(st.integers(0, 99)))
    # so that a sum's channels are known on both sides
    parts: list[nn.Module] = simple(2, 3, 3, norm=True)
    width = 3
    for _ in range(draw(st.integers(1, 3))):
        outputs, kernel, flag = draw(st.integers(1, 5)), draw(st.sampled_from([1, 3, 5])), draw(st.booleans())
        kind = draw(st.sampled_from(["flat", "nested", "residual", "pooled"]))
        if kind == "residual":
            parts.append(Residual(width, outputs, kernel, flag))
        elif kind == "flat":
            parts += simple(width, outputs, kernel, flag)
        else:
            pool = [nn.MaxPool2d(2, 1)] if kind == "pooled" else []
            parts.append(nn.Sequential(nn.Sequential(*simple(width, outputs, kernel, flag)), *pool))
        width = outputs
    places = draw(st.sampled_from([1, 2]))
    parts += [nn.AdaptiveAvgPool2d(places), nn.Flatten(), nn.Linear(width * places**2, 6), nn.ReLU()]
    network = nn.Sequential(*parts, nn.Linear(6, 3))
    return with_history(network)


def with_history(network: nn.Module) -> nn.Module:
    """Give normalisations numbers as if the network had learnt for a while."""
    with torch.no_grad():
        for part in network.modules():
            if isinstance(part, nn.BatchNorm2d):
                part.running_mean.normal_()
                part.running_var.uniform_(0.5, 2.0)
                part.weight.uniform_(0.5, 1.5)
                part.bias.normal_(0.0, 0.5)
    return network


@st.composite
def growths(draw: st.DrawFn) -> Callable[[nn.Module, torch.optim.Optimizer | None], None]:
    """One way to grow: where is decided by a number, since what is possible depends on the network."""
    deeper, at = draw(st.booleans()), draw(st.integers(0, 99))
    more, seed = draw(st.integers(1, 4)), draw(st.none() | st.integers(0, 9))

    def grow(network: nn.Module, optimizer: torch.optim.Optimizer | None = None) -> None:
        if deeper:
            names = blocks(network)
            batch = None if seed is None else torch.linspace(-1, 1, BATCH * 72).reshape(BATCH, 2, 6, 6)
            deepen(network, names[at % len(names)], optimizer=optimizer, calibration=batch)
        else:
            names = layers(network)
            name = names[at % len(names)]
            generator = torch.Generator().manual_seed(seed) if seed is not None else None
            width = original(network, name).weight.shape[0] + more
            widen(network, name, width, optimizer=optimizer, generator=generator)

    return grow


def outputs(network: nn.Module) -> Tensor:
    images = torch.randn(BATCH, 2, 6, 6, generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        return copy.deepcopy(network).eval()(images)


def difference(one: Tensor, other: Tensor) -> float:
    return float((one - other).abs().max() / one.abs().max())


@settings(max_examples=40)
@given(networks(), st.lists(growths(), min_size=1, max_size=5))
def test_growth_keeps_what_a_network_computes(network, ways):
    expected, names, before = outputs(network), blocks(network), describe(network)
    for grow in ways:
        grow(network, None)
        assert difference(expected, outputs(network)) <= 1e-5
    assert blocks(network) == names
    assert describe(network).fingerprint != before.fingerprint


@settings(max_examples=15)
@given(networks(), st.lists(growths(), min_size=1, max_size=4))
def test_a_grown_network_is_copied_stored_and_described_like_any_other(network, ways):
    again = copy.deepcopy(network)
    with torch.no_grad():
        for weight in again.parameters():
            weight.mul_(0.5)
    for grow in ways:
        grow(network, None)
        grow(again, None)
    assert describe(copy.deepcopy(network)) == describe(network) == describe(again)
    again.load_state_dict(network.state_dict())
    assert torch.equal(outputs(again), outputs(network))


@settings(max_examples=15)
@given(networks(), st.lists(growths(), min_size=1, max_size=4), st.sampled_from(["SGD", "Adam", "AdamW"]))
def test_an_optimiser_goes_on_with_the_grown_network_and_with_the_small_one_again(network, ways, kind):
    settings = {"momentum": 0.9} if kind == "SGD" else {}
    optimizer = getattr(torch.optim, kind)(network.parameters(), lr=0.01, **settings)
    step(network, optimizer)
    small, expected = copy.deepcopy(network), outputs(network)
    known = [numbers(optimizer, weight) for weight in network.parameters()]
    for grow in ways:
        grow(network, optimizer)
    trained = optimizer.param_groups[0]["params"]
    assert [id(weight) for weight in trained] == [id(weight) for weight in network.parameters()]
    with torch.no_grad():
        for weight in small.parameters():
            weight.zero_()
    back = shrink(network, small, optimizer=optimizer)
    assert difference(expected, outputs(small)) <= 1e-5
    for before, weight in zip(known, small.parameters(), strict=True):
        torch.testing.assert_close(numbers(back, weight), before, rtol=1e-5, atol=1e-12)
    step(network, optimizer)
    step(small, back)


def step(network: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    optimizer.zero_grad()
    network.train()
    network(torch.randn(BATCH, 2, 6, 6, generator=torch.Generator().manual_seed(2))).square().sum().backward()
    optimizer.step()


def numbers(optimizer: torch.optim.Optimizer, weight: Tensor) -> dict[str, Tensor]:
    return {name: value.clone() for name, value in optimizer.state[weight].items() if value is not None}
