"""How a network is looked at without changing it."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import nn


@contextmanager
def evaluating(network: nn.Module) -> Iterator[None]:
    """Evaluation mode and no gradients; afterwards every module is in the mode that it was in."""
    modes = [(module, module.training) for module in network.modules()]
    network.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        for module, training in modes:
            module.training = training
