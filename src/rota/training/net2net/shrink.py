"""Shrink a network to a smaller one, which keeps what both have in common."""

import inspect
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from rota.training.net2net.identity import before
from rota.training.net2net.optimizer import power_of
from rota.training.net2net.widen import gather, leading, recalled


def shrink(network: nn.Module, smaller: nn.Module, *, optimizer: Optimizer | None = None) -> Optimizer | None:
    """Copy what a network has learnt into the smaller one it grew from, in place.

    Layers of both are matched by their names before growth; added layers are dropped. Of a widened layer the
    originals stay, and the outgoing weights of copies are added to those of their originals: right after
    widening that restores the smaller network. What only `smaller` has stays. Given the optimiser of
    `network`, return one for `smaller` with the state of the layers that stay.
    """
    with torch.no_grad():
        for part, larger, own in _pairs(network, smaller):
            values = _reduced(part, larger, own.shape)
            if values is not None:
                own.copy_(values)
    return carry(optimizer, network, smaller) if optimizer is not None else None


def carry(optimizer: Optimizer, network: nn.Module, smaller: nn.Module) -> Optimizer:
    """Return an optimiser for `smaller`, of the same class and settings, with the state of common weights.

    Weights are in the groups of their counterparts; those without one are in the first group.
    """
    counterparts = {id(own): (part, larger) for part, larger, own in _pairs(network, smaller)}
    groups = [{**group, "params": []} for group in optimizer.param_groups]
    number = {id(weight): at for at, group in enumerate(optimizer.param_groups) for weight in group["params"]}
    for weight in smaller.parameters():
        _, larger = counterparts.get(id(weight), (None, None))
        at = 0 if larger is None else number.get(id(larger))
        if at is not None:
            groups[at]["params"].append(weight)
    new = _another(optimizer, groups)
    for weight in (each for group in groups for each in group["params"]):
        part, larger = counterparts.get(id(weight), (None, None))
        if part is not None and larger is not None and larger in optimizer.state:
            new.state[weight] = _known(part, larger, weight, optimizer.state[larger])
    return new


def _another(optimizer: Optimizer, groups: list[dict[str, Any]]) -> Optimizer:
    """Return an optimiser of the same class; settings that are not arguments come with the groups."""
    takes = inspect.signature(type(optimizer)).parameters
    settings = {name: value for name, value in optimizer.defaults.items() if name in takes}
    new: Optimizer = type(optimizer)(groups, **settings)
    return new


def _pairs(network: nn.Module, smaller: nn.Module) -> Iterator[tuple[nn.Module, Tensor, Tensor]]:
    """Yield each weight and statistic of both: the larger network's layer and tensor, the smaller tensor."""
    parts = {before(network, name): part for name, part in network.named_modules()}
    for name, own in smaller.named_modules():
        part = parts.get(before(smaller, name))
        if part is not None and type(part) is type(own):
            both = _tensors(part)
            yield from ((part, both[each], tensor) for each, tensor in _tensors(own).items() if each in both)


def _tensors(part: nn.Module) -> dict[str, Tensor]:
    found = {**part._parameters, **part._buffers}
    return {name: tensor for name, tensor in found.items() if tensor is not None}


def _reduced(part: nn.Module, values: Tensor, shape: torch.Size, power: int | None = None) -> Tensor | None:
    """Return a tensor without its copies; None if these are not known.

    For an optimiser's state, `power` is 1 for means of gradients and 2 for those of squares.
    """
    if values.dim() != len(shape):
        return None
    for axis, (now, then) in enumerate(zip(values.shape, shape, strict=True)):
        steps = recalled(part, axis, now, then)
        if steps is None:
            return None
        for replicas in steps:
            if axis == 1 and power is None:
                values = gather(values, axis, replicas)
            else:
                values = leading(values, axis, replicas, (power or 0) if axis == 0 else 0)
    return values


def _known(part: nn.Module, larger: Tensor, own: Tensor, state: dict[str, Any]) -> dict[str, Any]:
    """Return the optimiser's state for a weight's counterpart; empty if shapes cannot be matched."""
    known = {}
    for name, value in state.items():
        if isinstance(value, Tensor) and value.shape == larger.shape:
            reduced = _reduced(part, value, own.shape, power_of(name))
            if reduced is None:
                return {}
            value = reduced
        known[name] = value.clone() if isinstance(value, Tensor) else value
    return known
