"""The stages of an iteration, each on the clock: load, compute, synchronise.

Loading gets the next batch onto the device; for tasks that are learned by playing, it plays. Computing is the
forward and the backward pass and the step of the optimiser. Synchronising is the exchange of gradients.
"""

import hashlib
import math
import time
from typing import NamedTuple

import torch
from torch import nn

from rota.training.device import synchronise
from rota.training.exchange import Exchange
from rota.training.hyper import optimizer
from rota.training.models.registry import build
from rota.training.setup import Setup
from rota.training.task import Batch, Task

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
        weights: int | None = None,
        task: Task | None = None,
        rank: int = 0,
        exchange: Exchange | None = None,
    ) -> None:
        """Weights may have a seed of their own, and the task may be one that others have, too."""
        drawn = seed if weights is None else weights
        self.task = task or setup.task(seed + rank)
        self.network = build(setup.model, self.task.inputs, self.task.outputs, drawn).to(where).train()
        self.optimizer = optimizer(setup.optimizer, self.network.parameters(), setup.hyper)
        self.position = 0
        """Examples that this member has taken."""
        self._loss = torch.tensor(math.nan)
        self.rank = rank
        self._batch: Batch | None = None
        self._size = setup.hyper.batch_size
        self._where = where
        self._exchange = exchange
        torch.manual_seed(drawn + rank)  # dropout draws from the global generator

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
        self.fetch()
        loaded_s = self._now_s()
        self.compute()
        computed_s = self._now_s()
        self.exchange()
        exchanged_s = self._now_s() if self._exchange is not None else computed_s
        self.update()
        stepped_s = self._now_s()
        compute_s = computed_s - loaded_s + stepped_s - exchanged_s
        return Stages(loaded_s - began_s, compute_s, exchanged_s - computed_s)

    def fetch(self) -> None:
        """The next batch."""
        self._batch = self.task.batch(self.network, self.position, self._size)
        self.position += self._size

    def compute(self) -> None:
        """Its gradients."""
        assert self._batch is not None
        self.optimizer.zero_grad()
        loss = self.task.loss(self.network(self._batch.inputs), self._batch)
        loss.backward()  # type: ignore[no-untyped-call]
        self._loss = loss.detach()

    def exchange(self) -> None:
        """The mean of all members' gradients."""
        if self._exchange is not None:
            self._exchange.average(self.network)

    def update(self) -> None:
        """A step of the optimiser."""
        self.optimizer.step()

    @property
    def loss(self) -> float:
        """Of the last batch."""
        return self._loss.item()

    def _now_s(self) -> float:
        synchronise(self._where)
        return time.perf_counter()


def digest(network: nn.Module) -> str:
    """Short for the weights, to the last bit."""
    found = hashlib.sha256()
    for weight in network.parameters():
        found.update(weight.detach().cpu().contiguous().numpy().tobytes())
    return found.hexdigest()
