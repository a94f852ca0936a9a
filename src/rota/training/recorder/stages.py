"""The stages of an iteration, each on the clock: load, compute, synchronise.

Loading gets the next batch onto the device; for tasks that are learned by playing, it plays. Computing is the
forward and the backward pass and the step of the optimiser. Synchronising is the exchange of gradients.
"""

import hashlib
import time
from typing import NamedTuple, Protocol

import torch
from torch import nn

from rota.training.device import synchronise
from rota.training.hyper import optimizer
from rota.training.models.registry import build
from rota.training.setup import Setup
from rota.training.task import Batch

FEWEST = 3
"""So many iterations are measured however long they take."""


class Stages(NamedTuple):
    """The seconds of one iteration."""

    load_s: float
    compute_s: float
    synchronise_s: float

    @property
    def iteration_s(self) -> float:
        return sum(self)


class Exchange(Protocol):
    """What the members of a gang say to each other."""

    def average(self, network: nn.Module) -> None:
        """Give every member the mean of all members' gradients."""
        ...

    def any(self, mine: bool) -> bool:
        """Whether one of the members says so; nobody goes on before all have spoken."""
        ...


class Iterations:
    """A network that learns, one timed iteration after the other; `exchange` is None if it learns alone.

    Members of a gang begin with the same weights and have examples of their own.
    """

    def __init__(
        self,
        setup: Setup,
        where: torch.device,
        *,
        seed: int = 0,
        rank: int = 0,
        exchange: Exchange | None = None,
    ) -> None:
        self.task = setup.task(seed + rank)
        self.network = build(setup.model, self.task.inputs, self.task.outputs, seed).to(where).train()
        self._size = setup.hyper.batch_size
        self._optimizer = optimizer(setup.optimizer, self.network.parameters(), setup.hyper)
        self._where = where
        self._exchange = exchange
        self._position = 0
        torch.manual_seed(seed + rank)  # dropout draws from the global generator

    def measure(self, *, iterations: int, warm: int, limit_s: float) -> list[Stages]:
        """So many iterations after some to get warm; fewer, but not too few, if they take too long."""
        for _ in range(warm):
            self.once()
        found: list[Stages] = []
        began_s = time.perf_counter()
        while len(found) < iterations:
            late = len(found) >= FEWEST and time.perf_counter() - began_s > limit_s
            if late if self._exchange is None else self._exchange.any(late):
                break
            found.append(self.once())
        return found

    def once(self) -> Stages:
        """One iteration."""
        began_s = self._now_s()
        batch = self.task.batch(self.network, self._position, self._size)
        self._position += self._size
        loaded_s = self._now_s()
        self._gradients(batch)
        computed_s = exchanged_s = self._now_s()
        if self._exchange is not None:
            self._exchange.average(self.network)
            exchanged_s = self._now_s()
        self._optimizer.step()
        stepped_s = self._now_s()
        compute_s = computed_s - loaded_s + stepped_s - exchanged_s
        return Stages(loaded_s - began_s, compute_s, exchanged_s - computed_s)

    def _gradients(self, batch: Batch) -> None:
        self._optimizer.zero_grad()
        loss = self.task.loss(self.network(batch.inputs), batch)
        loss.backward()  # type: ignore[no-untyped-call]

    def _now_s(self) -> float:
        synchronise(self._where)
        return time.perf_counter()


def digest(network: nn.Module) -> str:
    """Short for the weights, to the last bit."""
    found = hashlib.sha256()
    for weight in network.parameters():
        found.update(weight.detach().cpu().contiguous().numpy().tobytes())
    return found.hexdigest()
