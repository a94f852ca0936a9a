"""Where networks can grow, where not and why; a refusal leaves everything as it was."""

import copy
import warnings

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils import parametrizations, prune

from rota.core.errors import InputError
from rota.training.describe import describe
from rota.training.models.networks import Block, conv_block, linear_block
from rota.training.net2net import NotGrowable, blocks, deepen, layers, widen


class Calls(nn.Module):
    """Runs its layers as a function says."""

    def __init__(self, run, **parts: nn.Module) -> None:
        super().__init__()
        self.run = run
        for name, part in parts.items():
            self.add_module(name, part)

    def forward(self, x: Tensor) -> Tensor:
        return self.run(self, x)


def twice(block: nn.Module) -> nn.Module:
    return nn.Sequential(block, nn.Identity(), block)


def tied() -> nn.Module:
    network = nn.Sequential(nn.Linear(3, 3), nn.ReLU(), nn.Linear(3, 3), nn.ReLU(), nn.Linear(3, 2))
    network[2].weight = network[0].weight
    return network


def two(first: nn.Module) -> nn.Module:
    return nn.Sequential(first, nn.ReLU(), nn.Linear(4, 2))


CONV, LINEAR = nn.Conv2d(1, 2, 3), nn.Linear(3, 3)
UNGROWABLE = {
    "even": (nn.Sequential(conv_block(1, 2, 4)), "0", "its kernel is 4×4; only an odd kernel"),
    "even part": (nn.Sequential(nn.Conv2d(1, 2, (3, 2)), nn.ReLU()), "0", "its kernel is 3×2"),
    "GELU block": (nn.Sequential(Block(LINEAR, nn.GELU())), "0", "ends in GELU; it must end in ReLU"),
    "GELU": (nn.Sequential(LINEAR, nn.GELU()), "0", "GELU comes after it; that must be ReLU"),
    "Tanh": (nn.Sequential(LINEAR, nn.Tanh()), "0", "Tanh comes after it"),
    "sigmoid": (Calls(lambda own, x: torch.sigmoid(own.a(x)), a=nn.Linear(3, 3)), "a", "sigmoid comes after"),
    "last": (nn.Sequential(LINEAR, nn.ReLU(), nn.Linear(3, 2)), "2", "output comes after it"),
    "nothing before": (nn.Sequential(Block(nn.ReLU()), LINEAR), "0", "is not one layer after the other"),
    "dropout between": (nn.Sequential(Block(LINEAR, nn.Dropout(), nn.ReLU())), "0", "Dropout is before its"),
    "transposed": (
        nn.Sequential(Block(nn.ConvTranspose2d(1, 1, 3), nn.ReLU())),
        "0",
        "ConvTranspose2d is bef",
    ),
    "statistics": (
        nn.Sequential(Block(CONV, nn.BatchNorm2d(2, track_running_stats=False), nn.ReLU())),
        *("0", "keeps no running statistics"),
    ),
    "shared block": (twice(linear_block(3, 3)), "0", "is used in several places"),
    "called twice": (
        Calls(lambda own, x: own.a(own.a(x)), a=linear_block(3, 3)),
        *("a", "is used in several places"),
    ),
    "shared layer": (twice(nn.Sequential(LINEAR, nn.ReLU())), "0.0", "is used in several places"),
    "aside": (
        Calls(
            lambda own, x: functional.relu(own.a(x)) * own.a_norm(own.a(x)), a=LINEAR, a_norm=nn.LayerNorm(3)
        ),
        *("a", "is used in several places"),
    ),
    "used without": (
        Calls(lambda own, x: (lambda y: functional.relu(y) + y)(own.a(x)), a=LINEAR),
        *("a", "its output is also used without its activation"),
    ),
    "unknown": (nn.Sequential(linear_block(3, 3)), "1", "unknown block '1'"),
    "misspelt": (nn.Sequential(nn.Linear(3, 3), nn.ReLU()), "O", "unknown block 'O'. Known: 0"),
}
UNWIDENABLE = {
    "output": (nn.Sequential(LINEAR, nn.ReLU()), "0", 9, "output.* is not the network's to choose"),
    "sum": (Calls(lambda own, x: own.b(own.a(x) + x), a=LINEAR, b=nn.Linear(3, 2)), "a", 9, "goes into add"),
    "norm": (nn.Sequential(LINEAR, nn.LayerNorm(3), nn.Linear(3, 2)), "0", 9, "goes into 1 .LayerNorm."),
    "softmax": (nn.Sequential(LINEAR, nn.Softmax(1), nn.Linear(3, 2)), "0", 9, "goes into 1 .Softmax."),
    "groups": (nn.Sequential(nn.Conv2d(2, 2, 3, groups=2), nn.Conv2d(2, 1, 3)), "0", 9, "in 2 groups"),
    "into groups": (nn.Sequential(nn.Conv2d(2, 2, 3), nn.Conv2d(2, 2, 3, groups=2)), "0", 9, "goes into 1"),
    "not flat": (nn.Sequential(nn.Conv2d(1, 3, 1), nn.Linear(3, 2)), "0", 9, "goes into 1 .Linear."),
    "narrower": (nn.Sequential(LINEAR, nn.Linear(3, 2)), "0", 3, "has 3 units already; give more"),
    "tied": (tied(), "0", 9, "its weights are also used elsewhere"),
    "read": (
        Calls(lambda own, x: own.b(own.a(x)) + own.b.weight.sum(), a=LINEAR, b=nn.Linear(3, 2)),
        *("a", 9, "b: its weights are also used elsewhere"),
    ),
    "shared": (Calls(lambda own, x: own.b(own.a(own.a(x))), a=LINEAR, b=nn.Linear(3, 2)), "a", 9, "several"),
    "unknown": (nn.Sequential(LINEAR, nn.Linear(3, 2)), "3", 9, "unknown layer '3'"),
    "depends": (
        Calls(lambda own, x: own.a(x) if x.sum() > 0 else x, a=LINEAR),
        "a",
        9,
        "depends on its input",
    ),
}


def weight_norm(part: nn.Module) -> nn.Module:
    with warnings.catch_warnings(action="ignore", category=FutureWarning):
        return nn.utils.weight_norm(part)


COMPUTED = {
    "weight_norm": weight_norm,
    "spectral_norm": nn.utils.spectral_norm,
    "pruning": lambda part: prune.random_unstructured(part, "weight", 0.3),
    "pruned bias": lambda part: prune.random_unstructured(part, "bias", 0.3),
    "parametrised": parametrizations.weight_norm,
    "orthogonal": parametrizations.orthogonal,
}
"""Ways to compute a layer's weights from others whenever it runs."""


def untouched(network: nn.Module, grow, error: str) -> None:
    """The error comes, and network and optimiser are as they were."""
    optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
    before, structure, shape = copy.deepcopy(network.state_dict()), describe(network), repr(network)
    weights = [id(weight) for weight in optimizer.param_groups[0]["params"]]
    with pytest.raises(NotGrowable, match=error) as raised:
        grow(network, optimizer)
    assert isinstance(raised.value, InputError)
    assert repr(network) == shape
    assert describe(network) == structure
    torch.testing.assert_close(network.state_dict(), before, rtol=0, atol=0)
    assert [id(weight) for weight in optimizer.param_groups[0]["params"]] == weights


@pytest.mark.parametrize("case", UNGROWABLE)
def test_what_cannot_grow_deeper_says_why_and_stays(case):
    network, name, error = UNGROWABLE[case]
    assert name not in blocks(network)
    untouched(network, lambda net, optimizer: deepen(net, name, optimizer=optimizer), error)


@pytest.mark.parametrize("case", UNWIDENABLE)
def test_what_cannot_grow_wider_says_why_and_stays(case):
    network, name, width, error = UNWIDENABLE[case]
    assert name not in layers(network) or case == "narrower"
    untouched(network, lambda net, optimizer: widen(net, name, width, optimizer=optimizer), error)


@pytest.mark.parametrize("way", COMPUTED)
@pytest.mark.parametrize("at", ["1", "4"])
def test_weights_that_are_computed_from_others_do_not_become_wider(way, at):
    network = nn.Sequential(nn.Flatten(), nn.Linear(3, 3), nn.BatchNorm1d(3), nn.ReLU(), nn.Linear(3, 2))
    COMPUTED[way](network.get_submodule(at))
    with torch.no_grad():
        network(torch.ones(2, 3))
    assert layers(network) == []
    computed = f"^{at}: its weights are computed from others"
    error = computed if type(network[4]) is nn.Linear else r"goes into 4 \(ParametrizedLinear\)"
    with pytest.raises(NotGrowable, match=error):
        widen(network, "1", 5)
    assert network(torch.ones(2, 3)).shape == (2, 2)


@pytest.mark.parametrize("way", COMPUTED)
@pytest.mark.parametrize("marked", [False, True])
def test_weights_that_are_computed_from_others_are_not_imitated(way, marked):
    network = nn.Sequential((Block if marked else nn.Sequential)(nn.Linear(3, 3), nn.ReLU()))
    COMPUTED[way](network[0][0])
    name = "0" if marked else "0.0"
    assert blocks(network) == []
    with pytest.raises(NotGrowable, match=f"^{name}: its weights are computed from others"):
        deepen(network, name)


@pytest.mark.parametrize("way", ["pruning", "parametrised"])
def test_nor_are_those_of_what_has_grown(way):
    network = nn.Sequential(nn.Linear(3, 3), nn.ReLU())
    deepen(network, "0")
    COMPUTED[way](network[1].new[0])
    assert blocks(network) == []
    with pytest.raises(NotGrowable, match=r"^1: its weights are computed from others"):
        deepen(network, "0")


def test_a_normalisation_whose_weights_are_computed_stays():
    network = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.ReLU(), nn.Conv2d(2, 1, 3))
    prune.random_unstructured(network[1], "weight", 0.5)
    assert layers(network) == blocks(network) == []
    with pytest.raises(NotGrowable, match=r"^1: its weights are computed from others"):
        widen(network, "0", 5)
    with pytest.raises(NotGrowable, match=r"^0: its weights are computed from others"):
        deepen(network, "0")


POSITIONS = {
    "positions": (
        lambda: nn.Sequential(nn.Linear(2, 4), nn.BatchNorm1d(4), nn.ReLU(), nn.Linear(4, 3)),
        *((5, 4, 2), r"goes into 1 \(BatchNorm1d\), and .*; if not, put nn.Flatten"),
    ),
    "planes": (
        lambda: nn.Sequential(nn.Linear(2, 4), nn.BatchNorm2d(4), nn.ReLU(), nn.Linear(4, 3)),
        *((5, 4, 3, 2), r"goes into 1 \(BatchNorm2d\)"),
    ),
    "one mean of three": (
        lambda: Calls(
            lambda own, x: own.b(own.a(x).mean([2, 3])), **{"a": nn.Conv3d(1, 4, 1), "b": nn.Linear(8, 3)}
        ),
        *((5, 1, 2, 2, 8), "goes into mean"),
    ),
}


@pytest.mark.parametrize("case", POSITIONS)
def test_what_might_be_about_positions_does_not_become_wider(case):
    build, shape, error = POSITIONS[case]
    network, name = build(), "a" if case == "one mean of three" else "0"
    network(torch.randn(shape))
    assert layers(network) == []
    with pytest.raises(NotGrowable, match=error):
        widen(network, name, 6)
    network(torch.randn(shape))


@pytest.mark.parametrize(
    ("batch", "error"),
    [
        (torch.zeros(2, 3, 6, 6), "calibration: the network does not take this batch"),
        (torch.full((2, 1, 6, 6), float("nan")), "calibration: .* is not finite; give another"),
    ],
)
def test_a_calibration_batch_that_will_not_do_is_refused(learnt, batch, error):
    network = copy.deepcopy(learnt)
    with pytest.raises(InputError, match=error):
        deepen(network, "0", calibration=batch)
    assert describe(network) == describe(learnt)
    torch.testing.assert_close(network.state_dict(), learnt.state_dict(), rtol=0, atol=0)
    assert network[0][1].track_running_stats


def test_an_optimiser_of_another_network_is_refused(learnt):
    network, foreign = copy.deepcopy(learnt), torch.optim.Adam(learnt.parameters())
    with pytest.raises(InputError, match="optimizer: it holds no weight of this network"):
        deepen(network, "0", optimizer=foreign)
    with pytest.raises(InputError, match="optimizer: it holds no weight of this network"):
        widen(network, "0.0", 20, optimizer=foreign)
    assert describe(network) == describe(learnt)


def test_marked_blocks_are_the_only_ones_where_there_are_any(learnt):
    assert blocks(learnt) == ["0", "2", "5"]
    mixed = nn.Sequential(nn.Linear(3, 3), nn.ReLU(), nn.Sequential(linear_block(3, 3)))
    assert blocks(mixed) == ["2.0"]


def test_an_activation_that_is_applied_as_a_function_will_do():
    def run(own: nn.Module, x: Tensor) -> Tensor:
        return own.c(torch.relu(own.norm(own.b(functional.relu(own.a(x)).relu()))))

    parts = {"a": nn.Linear(3, 4), "b": nn.Linear(4, 4), "norm": nn.BatchNorm1d(4), "c": nn.Linear(4, 2)}
    network = Calls(run, **parts).eval()
    x = torch.randn(6, 3, generator=torch.Generator().manual_seed(0))
    before = network(x)
    assert blocks(network) == ["a", "b"]
    for name in ("a", "b", "b", "a"):
        deepen(network, name)
    assert blocks(network) == ["a", "b"]
    assert len(describe(network).layers) == 7 + 2 * 2 + 2 * 3
    torch.testing.assert_close(network(x), before, rtol=1e-5, atol=1e-6)


class Sum(nn.Module):
    """A residual block that gives out its sum in one way or another."""

    def __init__(self, give) -> None:
        super().__init__()
        self.conv, self.relu, self.give = nn.Conv2d(3, 3, 3, padding=1), nn.ReLU(), give

    def forward(self, x: Tensor) -> Tensor:
        return self.give(self, self.conv(self.relu(x)) + x)


@pytest.mark.parametrize(
    ("give", "grows"),
    [
        (lambda own, y: own.relu(y), True),
        (lambda own, y: functional.relu(y), True),
        (lambda own, y: own.relu(y) * 2, False),
        (lambda own, y: (lambda z: z + z.mean())(own.relu(y)), False),
    ],
)
def test_a_residual_block_grows_behind_its_sum_only_where_that_is_what_it_gives_out(give, grows):
    network = nn.Sequential(nn.Conv2d(1, 3, 3), Sum(give), nn.Conv2d(3, 1, 3))
    assert ("1" in blocks(network)) == grows


class Conditioned(nn.Module):
    """A residual block that is given two things, and may give out more than one."""

    def __init__(self, give=lambda y, emb: y) -> None:
        super().__init__()
        self.conv, self.give = nn.Conv2d(3, 3, 3, padding=1), give

    def forward(self, x: Tensor, emb: Tensor) -> Tensor:
        return self.give(functional.relu(self.conv(x + emb) + x), emb)


@pytest.mark.parametrize("call", [lambda block, h, e: block(h, e), lambda block, h, e: block(h, emb=e)])
def test_a_block_that_is_given_more_than_one_thing_grows(call):
    def run(own: nn.Module, x: Tensor) -> Tensor:
        h = own.stem(x)
        return own.head(call(own.block, h, h.mean((2, 3), keepdim=True)))

    parts = {"stem": nn.Conv2d(1, 3, 3), "block": Conditioned(), "head": nn.Conv2d(3, 1, 3)}
    network, x = Calls(run, **parts), torch.randn(2, 1, 8, 8, generator=torch.Generator().manual_seed(0))
    before = network(x)
    for _ in range(2):
        deepen(network, "block")
    assert blocks(network) == ["block"]
    assert len(describe(network).layers) == 7 + 2 * 2
    torch.testing.assert_close(network(x), before, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("give", [lambda y, emb: (y, emb), lambda y, emb: [y], lambda y, emb: {"y": y}])
def test_a_block_that_gives_out_more_than_a_tensor_does_not_grow(give):
    def run(own: nn.Module, x: Tensor) -> Tensor:
        h = own.stem(x)
        found = own.block(h, h)
        return own.head(found["y"] if isinstance(found, dict) else found[0])

    parts = {"stem": nn.Conv2d(1, 3, 3), "block": Conditioned(give), "head": nn.Conv2d(3, 1, 3)}
    assert "block" not in blocks(Calls(run, **parts))


def test_a_sum_whose_channels_are_not_known_does_not_grow():
    network = nn.Sequential(Sum(lambda own, y: own.relu(y)), nn.Conv2d(3, 1, 3))
    assert blocks(network) == []
    with pytest.raises(NotGrowable, match="0: its sum is not, for all that is known, of as many channels"):
        deepen(network, "0")


def test_a_block_under_two_names_is_refused_even_where_nothing_can_be_followed():
    block = linear_block(3, 3)
    network = Calls(lambda own, x: own.a(x) if x.sum() > 0 else own.b(x), a=block, b=block)
    assert blocks(network) == []
    with pytest.raises(NotGrowable, match="a: is used in several places"):
        deepen(network, "a")


def test_a_network_that_depends_on_its_input_grows_in_its_sequences():
    def run(own: nn.Module, x: Tensor) -> Tensor:
        return own.a(x) if x.sum() > 0 else own.b(x)

    a = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3), nn.ReLU(), nn.Linear(3, 2))
    b = nn.Sequential(nn.Linear(2, 3), nn.GELU(), nn.Sequential(nn.Linear(3, 2), nn.ReLU()))
    network = Calls(run, a=a, b=b).eval()
    x = torch.randn(6, 2, generator=torch.Generator().manual_seed(0))
    before = [network(x), network(-x)]
    assert blocks(network) == ["a.0", "b.2.0"]
    for name in ("a.0", "b.2.0", "a.0"):
        deepen(network, name)
    assert blocks(network) == ["a.0", "b.2.0"]
    assert len(a[2].new) == 6
    torch.testing.assert_close([network(x), network(-x)], before, rtol=1e-5, atol=1e-6)
    with pytest.raises(NotGrowable, match=r"b\.0: GELU comes after it"):
        deepen(network, "b.0")
