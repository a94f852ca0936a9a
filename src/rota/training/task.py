"""What a network is trained for: where its batches come from, what the loss is, how well it does."""

from dataclasses import dataclass
from typing import Any, Protocol

from torch import Tensor, nn

from rota.core.errors import InputError


@dataclass(frozen=True)
class Batch:
    """What goes into the network and what should come out; tensors on the task's device."""

    inputs: Any
    targets: Any


class Task(Protocol):
    """Everything about a training run that is not the network, its optimiser or time.

    Examples come from an endless stream: pass after pass over the data, each shuffled anew. `position` says
    how many examples were taken before, so a supervised task has no state, and a resumed run sees what it
    would have.
    """

    inputs: tuple[int, ...]
    """The shape of one input."""
    outputs: int
    """How many numbers the network answers with."""
    metric: str
    """The entry of `evaluate` that says how well the network does; larger is better."""
    scores: bool
    """Whether the outputs are scores of classes, which a smaller network can learn from a larger one."""
    examples: int
    """How many examples one pass over the data has."""
    digest: str
    """Of the data, if these are not the same on every machine; otherwise empty."""

    def batch(self, network: nn.Module, position: int, size: int) -> Batch:
        """The `size` examples from `position` on."""
        ...

    def loss(self, outputs: Any, batch: Batch) -> Tensor:
        """What training makes smaller; `outputs` is the network's answer to `batch.inputs`."""
        ...

    def evaluate(self, network: nn.Module, split: str = "validation") -> dict[str, float]:
        """How well the network does on a split, in evaluation mode and without gradients."""
        ...

    def state_dict(self) -> dict[str, Any]:
        """What exact resumption needs besides the position."""
        ...

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from what `state_dict` gave."""
        ...


def check_data(task: Task, digest: str, what: object) -> None:
    """Whether a task has the data of that digest: what goes on would otherwise not be what it was."""
    if digest and digest != task.digest:
        raise InputError(
            f"{what}: was trained on other data than there are here; go on with the version of Python that "
            "it was begun with, or begin it again"
        )
