"""Evaluate a network without changing it: modes and running statistics are restored."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import nn


class Statistics:
    """What a network gathers while it computes, and how to undo what one batch has done to it."""

    def __init__(self, network: nn.Module) -> None:
        self._now = list(network.buffers())
        self._kept = [buffer.clone() for buffer in self._now]

    def keep(self) -> None:
        """Remember it as it is."""
        for kept, now in zip(self._kept, self._now, strict=True):
            kept.copy_(now)

    def restore(self) -> None:
        """Make it what it was."""
        for kept, now in zip(self._kept, self._now, strict=True):
            now.copy_(kept)


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
