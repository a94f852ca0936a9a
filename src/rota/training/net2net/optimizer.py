"""The optimiser of a network that changes: its state of layers that stay is kept."""

from collections.abc import Callable, Iterable
from typing import Any

from torch import Tensor, nn
from torch.optim import Optimizer

from rota.core.errors import InputError


def refuse_foreign(optimizer: Optimizer, network: nn.Module) -> None:
    """Raise if an optimiser holds no weight of the network."""
    held = {id(weight) for group in optimizer.param_groups for weight in group["params"]}
    if not any(id(weight) in held for weight in network.parameters()):
        raise InputError("optimizer: it holds no weight of this network; give the one that trains it")


def adopt(optimizer: Optimizer, network: nn.Module, new: Iterable[tuple[nn.Module, nn.Module]]) -> None:
    """Add the weights of new layers to the groups of the layers given with them, in the network's order."""
    for layer, like in new:
        for name, weight in layer.named_parameters():
            group = _group(optimizer, getattr(like, name, None), like)
            if group is not None:
                group["params"].append(weight)
    in_order(optimizer, network)


def in_order(optimizer: Optimizer, network: nn.Module) -> None:
    """Sort each group in the network's order, as in a new optimiser."""
    order = {id(weight): at for at, weight in enumerate(network.parameters())}
    for group in optimizer.param_groups:
        group["params"].sort(key=lambda weight: order.get(id(weight), len(order)))


def _group(optimizer: Optimizer, twin: Any, like: nn.Module) -> dict[str, Any] | None:
    weights = [twin] if twin is not None else list(like.parameters())
    for group in optimizer.param_groups:
        if any(each is weight for each in group["params"] for weight in weights):
            return group
    return None


def converted(
    optimizer: Optimizer, weight: Tensor, convert: Callable[[Tensor, int], Tensor]
) -> dict[str, Any] | None:
    """Return the state of a weight with tensors of its shape converted; `convert` also gets the power."""
    if weight not in optimizer.state:
        return None
    known = dict(optimizer.state[weight])
    for name, value in known.items():
        if isinstance(value, Tensor) and value.shape == weight.shape:
            known[name] = convert(value, power_of(name))
    return known


def exchange(optimizer: Optimizer, old: Tensor, new: Tensor, known: dict[str, Any] | None) -> None:
    """Replace a weight by another with the given state."""
    for group in optimizer.param_groups:
        group["params"] = [new if weight is old else weight for weight in group["params"]]
    optimizer.state.pop(old, None)
    if known is not None:
        optimizer.state[new] = known


def power_of(name: str) -> int:
    """Return the power of the gradient that a state tensor is proportional to."""
    return 2 if "sq" in name or name == "sum" else 1
