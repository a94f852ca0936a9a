"""Deeper networks: what holds in evaluation mode, in training mode, and for the optimiser."""

import copy
import pickle

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from rota.training.describe import describe
from rota.training.models.networks import Block, conv_block, linear_block
from rota.training.net2net import NotGrowable, blocks, deepen, widen
from rota.training.net2net.identity import GrownPart
from rota.training.torchvision import torchvision


def resnet() -> nn.Module:
    torch.manual_seed(0)
    basic = torchvision.models.resnet.BasicBlock
    network = torchvision.models.ResNet(basic, [1, 1, 1, 1], num_classes=5)
    with torch.no_grad():
        for part in network.modules():
            if isinstance(part, nn.BatchNorm2d):
                part.running_mean.normal_()
                part.running_var.uniform_(0.5, 2.0)
                part.bias.normal_(0.0, 0.3)
    return network


def evaluated(network: nn.Module, images: Tensor) -> Tensor:
    with torch.no_grad():
        return copy.deepcopy(network).eval()(images)


def difference(one: Tensor, other: Tensor) -> float:
    return float((one - other).abs().max() / one.abs().max())


def training_loss(network: nn.Module, digits: tuple[Tensor, Tensor]) -> float:
    """The loss on digits that were not learnt, with the statistics of the batch."""
    images, labels = digits
    with torch.no_grad():
        answers = copy.deepcopy(network).train()(images[1200:1456])
    return float(functional.cross_entropy(answers, labels[1200:1456]))


@pytest.mark.parametrize("block", ["0", "2", "5"])
@pytest.mark.parametrize("calibrated", [False, True])
def test_a_network_that_has_learnt_computes_what_it_did(learnt, digits, block, calibrated):
    network, (images, _) = copy.deepcopy(learnt), digits
    for _ in range(3):
        deepen(network, block, calibration=images[:100] if calibrated else None)
    assert difference(evaluated(learnt, images), evaluated(network, images)) <= 1e-6


@pytest.mark.parametrize("block", ["0", "2"])
def test_the_loss_hardly_jumps_in_training_mode(learnt, digits, block):
    before = training_loss(learnt, digits)
    promised, measured, naive = (copy.deepcopy(learnt) for _ in range(3))
    deepen(promised, block)
    deepen(measured, block, calibration=digits[0][:256])
    deepen(naive, block)
    norm = naive.get_submodule(block)[4]
    nn.init.ones_(norm.weight)
    nn.init.zeros_(norm.bias)
    jumps = [abs(training_loss(each, digits) - before) / before for each in (promised, measured, naive)]
    assert jumps[0] < 0.02
    assert jumps[1] < 0.005
    assert jumps[2] > 2 * max(jumps[0], jumps[1])


def test_a_batch_with_just_these_moments_passes_in_training_mode(learnt, digits):
    network, images = copy.deepcopy(learnt), digits[0][:256]
    deepen(network, "2", calibration=images)
    one, other = copy.deepcopy(learnt).train()(images), copy.deepcopy(network).train()(images)
    assert difference(one.detach(), other.detach()) < 1e-4


def test_a_linear_block_is_the_same_in_training_mode_too(learnt, digits):
    network = copy.deepcopy(learnt)
    deepen(network, "5")
    assert training_loss(network, digits) == training_loss(learnt, digits)


def test_calibration_touches_nothing_else(learnt, digits):
    network = copy.deepcopy(learnt).train()
    network[1].eval()
    deepen(network, "0", calibration=digits[0][:50])
    for name, values in learnt.state_dict().items():
        assert torch.equal(network.state_dict()[name], values)
    assert not network[1].training
    assert network[2][1].training
    assert network[2][1].track_running_stats


def test_calibration_leaves_the_statistics_of_other_normalisations(digits):
    norm = nn.InstanceNorm2d(4, track_running_stats=True)
    network = nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), norm)
    before = copy.deepcopy(network.state_dict())
    deepen(network, "0", calibration=digits[0][:50])
    torch.testing.assert_close(norm.state_dict(), nn.InstanceNorm2d(4, track_running_stats=True).state_dict())
    assert all(torch.equal(network.state_dict()[name], before[name]) for name in ("1.running_mean", "0.bias"))


def test_the_new_layers_are_an_identity_and_imitate_the_block():
    block = conv_block(2, 3, 5).double().eval()
    block[1].eps, block[1].momentum = 0.01, 0.3
    block[0].weight.requires_grad_(False)
    network = nn.Sequential(block)
    deepen(network, "0")
    conv, norm, relu = block[3:]
    assert conv.weight.shape == (3, 3, 5, 5)
    assert conv.weight.sum() == 3
    assert conv.weight[1, 1, 2, 2] == 1
    assert conv.bias.tolist() == [0, 0, 0]
    assert (norm.eps, norm.momentum) == (0.01, 0.3)
    torch.testing.assert_close(norm.weight.detach(), (norm.running_var + 0.01).sqrt())
    assert torch.equal(norm.bias, norm.running_mean)
    assert {each.dtype for each in block.parameters()} == {torch.float64}
    assert not conv.weight.requires_grad
    assert conv.bias.requires_grad
    assert not any(part.training for part in (conv, norm, relu))


def test_new_moments_are_those_of_a_rectified_gaussian():
    network = nn.Sequential(conv_block(1, 2))
    with torch.no_grad():
        network[0][1].weight.copy_(torch.tensor([1.0, 2.0]))
    deepen(network, "0")
    norm = network[0][4]
    # for N(0, s²) cut off at 0 the mean is s/√(2π) and the variance s²(1/2 − 1/(2π))
    torch.testing.assert_close(norm.running_mean, torch.tensor([0.398942, 0.797885]))
    torch.testing.assert_close(norm.running_var, torch.tensor([0.340845, 1.363380]))


@pytest.mark.parametrize(("eps", "kind"), [(1e-5, torch.float64), (1e-6, torch.float32)])
def test_a_normalisation_that_has_not_learnt_is_not_taken_for_one_that_has_grown(eps, kind):
    network = nn.Sequential(conv_block(1, 1)).to(kind)
    network[0][1].eps = eps
    deepen(network, "0")
    assert network[0][4].running_mean.item() == pytest.approx((2 * torch.pi) ** -0.5)
    deepen(network, "0")
    assert torch.equal(network[0][7].running_mean, network[0][4].running_mean)
    assert torch.equal(network[0][7].running_var, network[0][4].running_var)


def test_groups_stay():
    network = nn.Sequential(nn.Conv2d(4, 4, 3, groups=4), nn.ReLU())
    images = torch.randn(2, 4, 5, 5, generator=torch.Generator().manual_seed(0))
    before = evaluated(network, images)
    deepen(network, "0")
    assert network[1].new[0].weight.shape == (4, 1, 3, 3)
    assert torch.equal(evaluated(network, images), before)


@pytest.mark.parametrize("activation", [nn.ReLU6(), nn.Hardtanh(-0.5, 0.25), nn.Identity()])
def test_other_activations_for_which_twice_is_once(activation):
    torch.manual_seed(3)
    network = nn.Sequential(nn.Conv2d(1, 3, 3), nn.BatchNorm2d(3), activation, nn.Flatten(), nn.Linear(48, 2))
    images = torch.randn(9, 1, 6, 6)
    before = evaluated(network, images)
    deepen(network, "0", calibration=images)
    deepen(network, "0")
    assert difference(before, evaluated(network, images)) <= 1e-6


def test_residual_blocks_grow_inside_and_behind_their_sum():
    network, images = resnet(), torch.randn(2, 3, 32, 32, generator=torch.Generator().manual_seed(0))
    inside, behind = ([f"layer{i}.0{part}" for i in range(1, 5)] for part in (".conv1", ""))
    assert sorted(blocks(network)) == sorted(["conv1", *inside, *behind])
    before, names = evaluated(network, images), blocks(network)
    for name in [*names, *reversed(names)]:
        deepen(network, name, calibration=images if name == "layer2.0" else None)
        assert difference(before, evaluated(network, images)) <= 1e-5
    assert blocks(network) == names
    assert [len(network.layer1), type(network.layer1[0])] == [1, GrownPart]


@pytest.mark.parametrize(
    ("name", "start", "kinds"),
    [
        ("layer1.0.conv1", 4, "conv2d batchnorm relu conv2d batchnorm relu conv2d batchnorm add relu"),
        ("layer1.0", 4, "conv2d batchnorm relu conv2d batchnorm add relu conv2d batchnorm relu"),
    ],
)
def test_an_activation_stands_between_old_and_new(name, start, kinds):
    network = resnet()
    deepen(network, name)
    found = [layer.kind for layer in describe(network).layers]
    assert found[start : start + 10] == kinds.split()


def test_the_new_layer_has_the_kernel_of_the_branch_not_of_the_short_cut():
    network = resnet()
    deepen(network, "layer2.0")
    assert network.layer2[0].new[0].kernel_size == (3, 3)


def test_a_sum_behind_what_has_grown_deeper_and_wider_still_grows():
    network, images = resnet(), torch.randn(2, 3, 32, 32, generator=torch.Generator().manual_seed(0))
    before, names = evaluated(network, images), blocks(network)
    deepen(network, "conv1")
    widen(network, "conv1", 70)
    assert blocks(network) == names
    deepen(network, "layer1.0")
    assert difference(before, evaluated(network, images)) <= 1e-5


def test_the_promise_behind_a_sum_adds_up():
    torch.manual_seed(0)
    network = torchvision.models.ResNet(torchvision.models.resnet.BasicBlock, [1, 1, 1, 1], num_classes=5)
    deepen(network, "layer2.0")
    norm = network.layer2[0].new[1]
    # both sides of the sum are N(0, 1): N(0, 2) cut off at 0 has mean √2/√(2π)
    torch.testing.assert_close(norm.running_mean, torch.full((128,), 0.564190))


@pytest.mark.parametrize("kind", ["SGD", "Adam", "AdamW"])
def test_the_optimiser_keeps_what_it_knows_and_takes_the_new_weights_in(learnt, digits, kind):
    network, images = copy.deepcopy(learnt), digits[0][:32]
    layers, head = [*network[0].parameters(), *network[2].parameters()], list(network[5].parameters())
    settings = {"momentum": 0.9} if kind == "SGD" else {}
    groups = [{"params": head, "lr": 0.5}, {"params": layers}]
    optimizer = getattr(torch.optim, kind)(groups, lr=0.1, **settings)
    network(images).sum().backward()
    optimizer.step()
    known = {
        weight: {key: value.clone() for key, value in optimizer.state[weight].items()} for weight in layers
    }
    deepen(network, "0", optimizer=optimizer)
    assert [list(map(id, group["params"])) for group in optimizer.param_groups] == [
        list(map(id, head)),
        [id(weight) for weight in [*network[0].parameters(), *network[2].parameters()]],
    ]
    for weight, state in known.items():
        torch.testing.assert_close(dict(optimizer.state[weight]), state, rtol=0, atol=0)
    optimizer.zero_grad()
    network(images).sum().backward()
    optimizer.step()
    assert len(optimizer.state) == len(list(network.parameters()))


def test_a_new_optimiser_for_the_grown_network_takes_the_old_ones_state(learnt):
    network = copy.deepcopy(learnt)
    optimizer = torch.optim.Adam(network.parameters())
    deepen(network, "0", optimizer=optimizer)
    for weight in network.parameters():
        weight.grad = torch.full_like(weight, float(weight.numel()))
    optimizer.step()
    fresh = torch.optim.Adam(network.parameters())
    fresh.load_state_dict(optimizer.state_dict())
    for weight in network.parameters():
        assert torch.equal(fresh.state[weight]["exp_avg"], optimizer.state[weight]["exp_avg"])


@pytest.mark.parametrize("marked", [False, True])
def test_new_weights_of_a_normalisation_without_any_join_those_of_the_layer(marked):
    parts = [nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2, affine=False), nn.ReLU()]
    block = Block(*parts) if marked else nn.Sequential(*parts)
    network = nn.Sequential(block, nn.Conv2d(2, 1, 3))
    groups = [{"params": network[1].parameters()}, {"params": network[0].parameters(), "lr": 0.5}]
    optimizer = torch.optim.SGD(groups, lr=0.1)
    deepen(network, "0" if marked else "0.0", optimizer=optimizer)
    trained = [id(weight) for weight in optimizer.param_groups[1]["params"]]
    assert trained == [id(weight) for weight in network[0].parameters()]
    assert len(trained) == 6


class Reading(nn.Module):
    """Asks its layers for their sizes and weights."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.fc, self.head = nn.Conv2d(1, 3, 3), nn.Linear(12, 4), nn.Linear(4, 2)
        self.norm = nn.BatchNorm2d(3)

    def forward(self, x: Tensor) -> Tensor:
        x = functional.relu(self.norm(self.conv(x))) * self.norm.eps * 1e5
        y = functional.relu(self.fc(x.reshape(-1, self.fc.in_features)))
        return self.head(y) + self.fc.weight.sum()


def test_a_network_that_asks_its_layers_for_what_they_have_goes_on_doing_so():
    torch.manual_seed(0)
    network, images = Reading(), torch.randn(5, 1, 4, 4)
    before = evaluated(network, images)
    for name in ("conv", "fc", "fc", "conv"):
        deepen(network, name, calibration=images)
    assert isinstance(network.fc, GrownPart)
    assert isinstance(network.norm, GrownPart)
    assert network.fc.weight is network.fc.part.weight
    assert "track_running_stats" not in vars(network.norm)
    for each in (network, copy.deepcopy(network), pickle.loads(pickle.dumps(network))):
        assert difference(before, evaluated(each, images)) <= 1e-6
        assert list(each.state_dict()) == list(network.state_dict())
        assert len(describe(each).layers) == len(describe(network).layers)
    with pytest.raises(NotGrowable, match=r"fc\.original: its weights are also used elsewhere"):
        widen(network, "fc", 9)
    with pytest.raises(AttributeError, match="'Linear' object has no attribute 'missing'"):
        _ = network.fc.missing


class Copied(nn.ReLU):
    """Says how it is to be copied."""

    def __deepcopy__(self, memo: dict) -> "Copied":
        return Copied()


def test_what_has_grown_around_a_part_is_copied_whole():
    grown = GrownPart(Copied())
    grown.grow([nn.Linear(2, 2)])
    again = copy.deepcopy(grown)
    assert [type(each) for each in again] == [Copied, nn.Linear]
    assert not hasattr(GrownPart.__new__(GrownPart), "anything")


def test_what_is_frozen_and_not_trained_stays_so():
    network = nn.Sequential(linear_block(2, 3), linear_block(3, 2))
    optimizer = torch.optim.SGD(network[1].parameters(), lr=0.1)
    deepen(network, "0", optimizer=optimizer)
    assert len(optimizer.param_groups[0]["params"]) == 2
