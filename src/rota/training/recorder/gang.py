"""Timed iterations by stage, of one process or of a gang."""

import hashlib
import math
import signal
import time
from contextlib import ExitStack, suppress
from multiprocessing.connection import Connection, wait
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import torch
from torch import nn

from rota.core.errors import InputError, RotaError
from rota.training.children import children
from rota.training.device import device, synchronise
from rota.training.exchange import Members, meet, stay_on_this_machine
from rota.training.hyper import optimizer
from rota.training.models.registry import build
from rota.training.recorder.profile_config import ProfileCell, ProfilesConfig
from rota.training.setup import Setup
from rota.training.task import Batch, Task

FEWEST = 3
"""Least number of measured iterations, however long they take."""


class Stages(NamedTuple):
    """Seconds of one iteration, by stage."""

    load_s: float
    compute_s: float
    synchronise_s: float

    @property
    def iteration_s(self) -> float:
        """Seconds of the whole iteration."""
        return sum(self)


class Iterations:
    """A network trained by timed iterations; `exchange` is None if it is trained by one process.

    Members of a gang start with the same weights and have examples of their own.
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
        exchange: Members | None = None,
    ) -> None:
        """Prepare the network; weights may have a seed of their own, and the task may be shared."""
        drawn = seed if weights is None else weights
        self.task = task or setup.task(seed + rank)
        self.network = build(setup.model, self.task.inputs, self.task.outputs, drawn).to(where).train()
        self.optimizer = optimizer(setup.optimizer, self.network.parameters(), setup.hyper)
        self.position = 0
        """Number of examples that this member has taken."""
        self._loss = torch.tensor(math.nan)
        self.rank = rank
        self._batch: Batch | None = None
        self._size = setup.hyper.batch_size
        self._where = where
        self._exchange = exchange
        torch.manual_seed(drawn + rank)  # dropout draws from the global generator

    def measure(self, *, iterations: int, warm: int, limit_s: float) -> list[Stages]:
        """Time so many iterations after some to warm up; fewer, but at least three, beyond the time limit."""
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
        """Make one iteration."""
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
        """Fetch the next batch."""
        self._batch = self.task.batch(self.network, self.position, self._size)
        self.position += self._size

    def compute(self) -> None:
        """Compute the gradients of the batch."""
        assert self._batch is not None
        self.optimizer.zero_grad()
        loss = self.task.loss(self.network(self._batch.inputs), self._batch)
        loss.backward()  # type: ignore[no-untyped-call]
        self._loss = loss.detach()

    def exchange(self) -> None:
        """Average the gradients over all members."""
        if self._exchange is not None:
            self._exchange.average(self.network)

    def update(self) -> None:
        """Make a step of the optimiser."""
        self.optimizer.step()

    @property
    def loss(self) -> float:
        """The loss of the last batch."""
        return self._loss.item()

    def _now_s(self) -> float:
        synchronise(self._where)
        return time.perf_counter()


def digest(network: nn.Module) -> str:
    """Return a digest of the weights."""
    found = hashlib.sha256()
    for weight in network.parameters():
        found.update(weight.detach().cpu().contiguous().numpy().tobytes())
    return found.hexdigest()


PATIENCE_S = 900.0
"""Seconds after which a gang that has not measured a cell is lost."""
GRACE_S = 0.5
"""Seconds between the end of a member's connections and its end."""
FAILURES = (MemoryError, RuntimeError, ValueError, InputError)
"""Errors of a measurement: too little memory, or a batch that the model does not accept."""

Answer = tuple[list[Stages], str] | str
"""A member's measurements and the digest of its weights, or the reason of its failure."""


class CellFailed(Exception):
    """A cell cannot be measured; others can."""


class GangLost(RotaError):
    """A member has died or does not answer."""


class ProcessGang:
    """Member processes, started and ended by a `with` statement."""

    def __init__(self, members: int, config: ProfilesConfig, *, patience_s: float = PATIENCE_S) -> None:
        self.members = members
        self.weights = ""
        """Digest of the weights, equal in all members, at the end of the last cell."""
        self._config = config
        self._patience_s = patience_s
        self._open = ExitStack()

    def __enter__(self) -> "ProcessGang":
        meeting = Path(self._open.enter_context(TemporaryDirectory(prefix="rota-gang-")), "meeting")
        members = children(self.members, _serve, self.members, meeting, self._config)
        self.processes, self._lines = self._open.enter_context(members)
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def measure(self, cell: ProfileCell) -> list[Stages]:
        """Return the stages of each iteration, by its slowest member; all must end with equal weights."""
        for line in self._lines:
            try:
                line.send(cell)
            except OSError:
                raise self._lost(cell) from None
        answers = self._answers(cell)
        self.weights, *others = (weights for _, weights in answers)
        if any(weights != self.weights for weights in others):
            raise CellFailed("the members ended with different weights")
        iterations = zip(*(stages for stages, _ in answers), strict=True)
        return [max(each, key=lambda stages: stages.iteration_s) for each in iterations]

    def _answers(self, cell: ProfileCell) -> list[tuple[list[Stages], str]]:
        found: dict[int, tuple[list[Stages], str]] = {}
        until_s = time.monotonic() + self._patience_s
        while len(found) < self.members:
            waiting = {line: rank for rank, line in enumerate(self._lines) if rank not in found}
            ready = wait(list(waiting), timeout=max(until_s - time.monotonic(), 0.0))
            if not ready:
                raise GangLost(f"{cell.name}: the gang has not answered within {self._patience_s:g} s")
            for line in ready:
                found[waiting[line]] = self._answer(line, cell)  # type: ignore[index, arg-type]
        return [found[rank] for rank in range(self.members)]

    def _answer(self, line: Connection, cell: ProfileCell) -> tuple[list[Stages], str]:
        try:
            answer: Answer = line.recv()
        except (EOFError, OSError):
            raise self._lost(cell) from None
        if isinstance(answer, str):
            if wait([process.sentinel for process in self.processes], timeout=GRACE_S):
                raise self._lost(cell)  # what failed is the exchange with the one that died
            raise CellFailed(answer)
        return answer

    def _lost(self, cell: ProfileCell) -> GangLost:
        return GangLost(
            f"{cell.name}: a member of the gang of {self.members} died, perhaps for lack of memory; "
            "start again to go on from here"
        )


def member_device(name: str, rank: int, members: int) -> torch.device:
    """Return the device of a member: members share the CPU, but not GPUs."""
    first = device(name)
    if first.type != "cuda":
        return first
    index, there = (first.index or 0) + rank, torch.cuda.device_count()
    if index + members - rank > there:
        raise InputError(f"a gang of {members} from {first} on needs as many GPUs; there are {there}")
    return torch.device("cuda", index)


def _serve(members: int, meeting: Path, config: ProfilesConfig, rank: int, line: Connection) -> None:
    """Run one member in its process: receive cells and send answers until the connection ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that was started
    torch.set_num_threads(config.threads)
    exchange: Members | None = None
    with suppress(EOFError, ConnectionError):
        while True:
            cell: ProfileCell = line.recv()
            try:
                exchange = exchange or _meet(rank, members, meeting, config)
                answer = _measure(cell, rank, config, exchange)
            except FAILURES as error:
                answer = reason(error)
            line.send(answer)


def _meet(rank: int, members: int, meeting: Path, config: ProfilesConfig) -> Members:
    stay_on_this_machine()
    return meet(meeting, rank, members, member_device(config.device, rank, members), PATIENCE_S)


def _measure(cell: ProfileCell, rank: int, config: ProfilesConfig, exchange: Members) -> Answer:
    where = member_device(config.device, rank, cell.gang)
    work = Iterations(config.setup(cell), where, seed=config.seed, rank=rank, exchange=exchange)
    found = work.measure(iterations=config.iterations, warm=config.warm, limit_s=config.limit_s)
    return found, digest(work.network)


def reason(error: BaseException) -> str:
    """Return the first line of an error's message."""
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__
