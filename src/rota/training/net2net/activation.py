"""Activations for which twice is once: f(f(x)) = f(x)."""

from typing import Any

import torch
from torch import fx, nn
from torch.nn import functional

from rota.training.net2net.graph import View

_MODULES = (nn.ReLU, nn.ReLU6, nn.Hardtanh, nn.Identity)
_FUNCTIONS: dict[Any, type[nn.Module]] = {  # the same where they are called and not built
    functional.relu: nn.ReLU,
    functional.relu_: nn.ReLU,
    torch.relu: nn.ReLU,
    torch.relu_: nn.ReLU,
    functional.relu6: nn.ReLU6,
    "relu": nn.ReLU,
    "relu_": nn.ReLU,
}


def is_idempotent(part: nn.Module | None) -> bool:
    """Whether a layer is such an activation."""
    return type(part) in _MODULES


def activation_of(view: View, node: fx.Node) -> nn.Module | None:
    """The activation that a node applies, as a module, if twice is once for it."""
    if node.op in ("call_function", "call_method"):
        kind = _FUNCTIONS.get(node.target)
        return kind() if kind is not None else None
    part = view.module(node)
    return part if is_idempotent(part) else None


def another(activation: nn.Module) -> nn.Module:
    """Another activation of the same kind."""
    if isinstance(activation, nn.ReLU | nn.ReLU6):
        new: nn.Module = type(activation)(inplace=activation.inplace)
    elif isinstance(activation, nn.Hardtanh):
        new = nn.Hardtanh(activation.min_val, activation.max_val, activation.inplace)
    else:
        new = nn.Identity()
    return new.train(activation.training)
