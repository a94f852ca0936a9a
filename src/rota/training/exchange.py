"""Gangs: processes that train one network together and exchange gradients; and slow storage."""

import os
import sys
import time
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple

import torch
import torch.distributed as dist
from torch import Tensor, nn

from rota.core.errors import InputError
from rota.training.task import Batch, Task


class GangMember(NamedTuple):
    """One of several processes that train a network together."""

    rank: int
    size: int
    exchange: "Members"

    def share(self, batch: int) -> tuple[int, int]:
        """Return where this member's share of a batch begins, and its size."""
        if batch % self.size:
            raise InputError(f"a batch of {batch} cannot be shared equally by {self.size}")
        return self.rank * (batch // self.size), batch // self.size


class Members:
    """The exchange between the members of a gang, processes that have met."""

    def __init__(self, group: Any, size: int, where: torch.device) -> None:
        self._group, self._size, self._where = group, size, where

    def average(self, network: nn.Module) -> None:
        """Give every member the mean of all members' gradients, in one message."""
        gradients = [weight.grad for weight in network.parameters() if weight.grad is not None]
        together = torch.cat([gradient.flatten() for gradient in gradients])
        self._group.allreduce([together]).wait()
        together /= self._size
        parts = torch.split(together, [gradient.numel() for gradient in gradients])
        for gradient, part in zip(gradients, parts, strict=True):
            gradient.copy_(part.view_as(gradient))

    def share(self, network: nn.Module) -> None:
        """Give every member the first member's weights and statistics, tensor by tensor, as types differ."""
        with torch.no_grad():
            for values in (*network.parameters(), *network.buffers()):
                self._group.broadcast(values.data, root=0).wait()

    def any(self, mine: bool) -> bool:
        """Return whether any member says so; all members wait for each other."""
        said = torch.tensor([float(mine)], device=self._where)
        self._group.allreduce([said]).wait()
        return bool(said.item())


def meet(file: Path, rank: int, size: int, where: torch.device, patience_s: float) -> Members:
    """Wait for all members; waiting longer than `patience_s`, now or in an exchange, is an error."""
    store = dist.FileStore(str(file), size)  # type: ignore[attr-defined]
    patience = timedelta(seconds=patience_s)
    if where.type == "cuda":
        torch.cuda.set_device(where)
        options = dist.ProcessGroupNCCL.Options()
        options._timeout = patience
        return Members(dist.ProcessGroupNCCL(store, rank, size, options), size, where)
    return Members(dist.ProcessGroupGloo(store, rank, size, patience), size, where)


def stay_on_this_machine() -> None:
    """Let members listen on the loopback only, whatever this machine's name resolves to."""
    if sys.platform == "linux":
        os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")


MB = 1_000_000


class FromStorage(Task):
    """A task whose batches arrive no faster than from storage of a given speed."""

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
        """Evaluate from memory: evaluation data are read only once."""
        return self._task.evaluate(network, split)

    def state_dict(self) -> dict[str, Any]:
        return self._task.state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._task.load_state_dict(state)
