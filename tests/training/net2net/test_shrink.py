"""Back to a smaller network: what both have moves, what is known of it too."""

import copy

import pytest
import torch
from torch import nn
from torch.nn import functional

from rota.training.net2net import carry, deepen, shrink, widen


def learn(network: nn.Module, optimizer: torch.optim.Optimizer, digits, steps: int) -> None:
    network.train()
    for step in range(steps):
        batch = slice(64 * step, 64 * step + 64)
        optimizer.zero_grad()
        functional.cross_entropy(network(digits[0][batch]), digits[1][batch]).backward()
        optimizer.step()


def test_what_both_have_moves_with_what_was_learnt_since(learnt, digits):
    network, smaller = copy.deepcopy(learnt), copy.deepcopy(learnt)
    optimizer = torch.optim.SGD(network.parameters(), lr=0.05)
    for block in ("0", "2", "5"):
        deepen(network, block, optimizer=optimizer)
    learn(network, optimizer, digits, 3)
    assert shrink(network, smaller) is None
    large = network.state_dict()
    for name, values in smaller.state_dict().items():
        assert torch.equal(values, large[name])
    assert not torch.equal(smaller[0][0].weight, learnt[0][0].weight)


def test_copies_that_have_moved_apart_are_added_up():
    network = nn.Sequential(nn.Linear(1, 2), nn.ReLU(), nn.Linear(2, 1))
    smaller = copy.deepcopy(network)
    widen(network, "0", 3)
    with torch.no_grad():
        network[0].weight.copy_(torch.tensor([[1.0], [2.0], [9.0]]))
        network[2].weight.copy_(torch.tensor([[10.0, 20.0, 40.0]]))
    shrink(network, smaller)
    assert smaller[0].weight.flatten().tolist() == [1, 2]
    assert smaller[2].weight.flatten().tolist() == [50, 20]


def test_what_does_not_match_stays_as_it_is():
    network, smaller = (
        nn.Sequential(nn.Linear(4, 3), nn.Linear(3, 2)),
        nn.Sequential(nn.Linear(4, 2), nn.Tanh()),
    )
    before = copy.deepcopy(smaller.state_dict())
    shrink(network, smaller)
    torch.testing.assert_close(smaller.state_dict(), before, rtol=0, atol=0)


class Numbered(nn.Sequential):
    """A residual block whose parts have numbers for names."""

    def forward(self, x):
        return functional.relu(self[1](self[0](x)) + x)


def test_new_layers_are_not_mistaken_for_parts_of_what_they_stand_behind():
    convs = [nn.Conv2d(2, 2, 3, padding=1) for _ in range(2)]
    network = nn.Sequential(nn.Conv2d(1, 2, 3), Numbered(*convs), nn.Conv2d(2, 1, 3))
    smaller, weight = copy.deepcopy(network), convs[1].weight.detach().clone()
    deepen(network, "1")
    nn.init.zeros_(smaller[1][1].weight)
    shrink(network, smaller)
    assert torch.equal(smaller[1][1].weight, weight)


@pytest.mark.parametrize("kind", ["SGD", "Adam", "AdamW"])
def test_the_optimiser_of_the_smaller_network_goes_on(learnt, digits, kind):
    network, smaller = copy.deepcopy(learnt), copy.deepcopy(learnt)
    settings = (
        {"momentum": 0.9, "nesterov": True} if kind == "SGD" else {"betas": (0.8, 0.99), "amsgrad": True}
    )
    head = list(network[5].parameters())
    rest = [*network[0].parameters(), *network[2].parameters()]
    groups = [{"params": rest, "weight_decay": 0.5}, {"params": head, "lr": 0.5}]
    optimizer = getattr(torch.optim, kind)(groups, lr=0.01, **settings)
    deepen(network, "0", optimizer=optimizer)
    learn(network, optimizer, digits, 2)
    new = shrink(network, smaller, optimizer=optimizer)
    assert type(new) is type(optimizer)
    kept = [{k: v for k, v in group.items() if k != "params"} for group in optimizer.param_groups]
    assert [{k: v for k, v in group.items() if k != "params"} for group in new.param_groups] == kept
    for name, weight in smaller.named_parameters():
        state = optimizer.state[network.get_parameter(name)]
        torch.testing.assert_close(dict(new.state[weight]), dict(state), rtol=0, atol=0)
        assert all(
            mine is not theirs
            for mine, theirs in zip(new.state[weight].values(), state.values(), strict=True)
        )
    learn(smaller, new, digits, 2)


def test_the_smaller_network_learns_as_if_it_had_never_grown(learnt, digits):
    """Grown and shrunk before the next step: the same numbers as without."""
    plain, network, smaller = (copy.deepcopy(learnt) for _ in range(3))
    stayed, optimizer = (torch.optim.AdamW(each.parameters(), lr=0.001) for each in (plain, network))
    learn(plain, stayed, digits, 2)
    learn(network, optimizer, digits, 2)
    deepen(network, "0", optimizer=optimizer)
    new = shrink(network, smaller, optimizer=optimizer)
    learn(plain, stayed, digits, 3)
    learn(smaller, new, digits, 3)
    torch.testing.assert_close(smaller.state_dict(), plain.state_dict(), rtol=0, atol=0)


def test_weights_the_optimiser_does_not_train_stay_out(learnt):
    network, smaller = copy.deepcopy(learnt), copy.deepcopy(learnt)
    optimizer = torch.optim.SGD(network[5].parameters(), lr=0.1)
    new = carry(optimizer, network, smaller)
    assert new.param_groups[0]["params"] == list(smaller[5].parameters())
