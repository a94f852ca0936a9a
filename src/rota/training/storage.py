"""Data that come from storage which is slower than the memory that they are in."""

import time
from typing import Any

from torch import Tensor, nn

from rota.training.task import Batch, Task

MB = 1_000_000


class FromStorage:
    """A task whose batches come no sooner than storage of that speed would give them."""

    def __init__(self, task: Task, mb_s: float) -> None:
        self._task, self._mb_s = task, mb_s
        self.inputs, self.outputs, self.examples = task.inputs, task.outputs, task.examples
        self.metric, self.scores, self.digest = task.metric, task.scores, task.digest

    def batch(self, network: nn.Module, position: int, size: int) -> Batch:
        began_s = time.perf_counter()
        found = self._task.batch(network, position, size)
        due_s = began_s + found.inputs.nbytes / (self._mb_s * MB)
        time.sleep(max(0.0, due_s - time.perf_counter()))
        return found

    def loss(self, outputs: Any, batch: Batch) -> Tensor:
        return self._task.loss(outputs, batch)

    def evaluate(self, network: nn.Module, split: str = "validation") -> dict[str, float]:
        """From memory: it is read once and stays there."""
        return self._task.evaluate(network, split)

    def state_dict(self) -> dict[str, Any]:
        return self._task.state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._task.load_state_dict(state)
