"""The task of a network: its batches, its loss and its evaluation."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from rota.core.errors import InputError


@dataclass(frozen=True)
class Batch:
    """Inputs of the network and the desired outputs, on the task's device."""

    inputs: Any
    targets: Any


class Task(Protocol):
    """A training run without its network, optimiser and clock.

    Examples come from an endless stream: pass after pass over the data, each shuffled anew. `position` is the
    number of examples taken before, so a supervised task has no state, and a resumed run sees the same
    examples.
    """

    inputs: tuple[int, ...]
    """Shape of one input."""
    outputs: int
    """Number of outputs of the network."""
    metric: str
    """Entry of `evaluate` that says how good the network is; larger is better."""
    scores: bool = False
    """Whether outputs are scores of classes, which a smaller network can learn from a larger one."""
    examples: int
    """Number of examples in one pass over the data."""
    digest: str = ""
    """Digest of the data if they differ between machines; otherwise empty."""

    def batch(self, network: nn.Module, position: int, size: int) -> Batch:
        """Return the `size` examples from `position` on."""

    def loss(self, outputs: Any, batch: Batch) -> Tensor:
        """Return the loss to minimise; `outputs` is what the network gives for `batch.inputs`."""

    def evaluate(self, network: nn.Module, split: str = "validation") -> dict[str, float]:
        """Return the metrics on a split, in evaluation mode and without gradients."""

    def state_dict(self) -> dict[str, Any]:
        """Return what exact resumption needs in addition to the position."""
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Resume from what `state_dict` returned."""
        return


def check_data(task: Task, digest: str, what: object) -> None:
    """Raise if a task has other data than those of that digest."""
    if digest and digest != task.digest:
        raise InputError(
            f"{what}: was trained on other data than there are here; go on with the version of Python that "
            "it was begun with, or begin it again"
        )


class Statistics:
    """The running statistics of a network, which one batch changes and `restore` resets."""

    def __init__(self, network: nn.Module) -> None:
        self._now = list(network.buffers())
        self._kept = [buffer.clone() for buffer in self._now]

    def keep(self) -> None:
        """Store the current values."""
        for kept, now in zip(self._kept, self._now, strict=True):
            kept.copy_(now)

    def restore(self) -> None:
        """Reset to the stored values."""
        for kept, now in zip(self._kept, self._now, strict=True):
            now.copy_(kept)


@contextmanager
def evaluating(network: nn.Module) -> Iterator[None]:
    """Evaluate without gradients; afterwards every module is in its former mode."""
    modes = [(module, module.training) for module in network.modules()]
    network.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        for module, training in modes:
            module.training = training
