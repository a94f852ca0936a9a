"""Real networks as jobs of a cluster: what the workers of `rota run` train, assignment by assignment.

`[kinds.NAME]` in a configuration says what a job of that kind trains: images, language or games.
"""

import io
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch

from rota.config.bind import bind, own_growth
from rota.core.errors import ConfigError, InputError
from rota.core.network import GrowthPolicy
from rota.core.registry import is_outside
from rota.training.adaptive import AdaptiveJob, AdaptiveKind
from rota.training.device import device, synchronise
from rota.training.exchange import GangMember, Members, meet
from rota.training.recorder.gang import Iterations
from rota.training.setup import Setup, own_seed
from rota.training.task import Task, check_data

PATIENCE_S = 60.0
"""Seconds that a member waits for another before it fails."""
MEETINGS = 8
"""Number of meetings that are remembered, the latest ones."""


@dataclass(frozen=True, slots=True)
class JobKind:
    """The training of jobs of a kind."""

    setup: Setup = field(default_factory=Setup)
    """The network, its task and its optimiser; gangs share the batch, learning rates do not decay."""
    adaptive: AdaptiveKind | None = None
    """Settings of an opportunistic job, which grows and shrinks with the idle slots of a cluster."""

    def member(self, name: str, size: int) -> Setup:
        """Return the setup of one of `size` members that share a batch."""
        batch = self.setup.hyper.batch_size
        if batch % size:
            raise ConfigError(f"kinds.{name}: a batch of {batch} cannot be shared equally by {size}")
        try:
            return replace(self.setup, hyper=replace(self.setup.hyper, batch_size=batch // size))
        except ConfigError as error:
            raise ConfigError(f"kinds.{name}: shared by {size}: {error}") from None


class NetworkJob:
    """A network, or one member of the gang that trains it."""

    def __init__(self, work: Iterations, where: torch.device) -> None:
        self._work, self._where = work, where

    def load(self, content: bytes) -> None:
        """Load a checkpoint; games of members other than the first start anew."""
        state = torch.load(io.BytesIO(content), map_location=self._where, weights_only=True)
        check_data(self._work.task, state.get("data", ""), "the checkpoint of a job")
        self._work.network.load_state_dict(state["weights"])
        self._work.optimizer.load_state_dict(state["optimizer"])
        self._work.position = state["position"]
        if state["task"] and self._work.rank == 0:
            self._work.task.load_state_dict(state["task"])

    def save(self) -> bytes:
        work, body = self._work, io.BytesIO()
        torch.save(
            {
                "weights": work.network.state_dict(),
                "optimizer": work.optimizer.state_dict(),
                "position": work.position,
                "task": work.task.state_dict(),
                "data": work.task.digest,
            },
            body,
        )
        return body.getvalue()

    def fetch(self) -> None:
        self._work.fetch()

    def compute(self) -> None:
        self._work.compute()
        synchronise(self._where)

    def exchange(self) -> None:
        self._work.exchange()

    def update(self) -> None:
        self._work.update()
        synchronise(self._where)

    def tell(self, room: int, at_s: float) -> None:
        """Do nothing: training depends on neither the slots nor the time."""

    @property
    def metric(self) -> float:
        """The loss of the last batch."""
        return self._work.loss

    def notes(self) -> list[dict[str, Any]]:
        return []


class Networks:
    """A factory of jobs. Jobs of a kind see the same examples, and have weights of their own."""

    def __init__(
        self, kinds: Mapping[str, JobKind], seed: int, agent: Callable[[str], GrowthPolicy] | None = None
    ) -> None:
        """Prepare the kinds; `agent` reads the agent in a folder, if kinds name any."""
        self._kinds, self._seed, self._agent = kinds, seed, agent
        self._met: dict[str, Members] = {}
        self._tasks: dict[tuple[str, int], Task] = {}
        """Tasks without state, shared by all jobs of a kind."""
        torch.set_num_threads(max((kind.setup.threads or 1 for kind in kinds.values()), default=1))
        for kind in kinds:
            self._warm_up(kind)

    def open(self, job: int, kind: str, rank: int, size: int, meeting: str) -> "NetworkJob | AdaptiveJob":
        """Return the member `rank` of `size` that trains a job; members meet in the file `meeting`."""
        if kind not in self._kinds:
            raise ConfigError(f"job {job}: kinds.{kind} is not in the configuration; add it")
        chosen = self._kinds[kind]
        setup = chosen.member(kind, size)
        where = device(setup.device)
        exchange = self._exchange(meeting, rank, size, where) if size > 1 else None
        if chosen.adaptive is not None:
            gang = GangMember(rank, size, exchange) if exchange else None
            return self._adaptive(chosen.adaptive, chosen.setup, gang)
        weights, task = own_seed(self._seed, job), self._task(kind, setup, rank)
        work = Iterations(
            setup, where, seed=self._seed, weights=weights, task=task, rank=rank, exchange=exchange
        )
        return NetworkJob(work, where)

    def _adaptive(self, kind: AdaptiveKind, setup: Setup, gang: GangMember | None) -> AdaptiveJob:
        """Return an opportunistic job; members of a gang all start with the seed of the run."""
        policy: GrowthPolicy | None = None
        if is_outside(kind.agent):
            policy = own_growth(kind.agent, kind.options, "adaptive.").policy
        elif kind.agent:
            if self._agent is None:
                raise ConfigError('agent: needs another job; write job = "rota.learning.site:networks"')
            policy = self._agent(kind.agent)
        return AdaptiveJob(kind.course(setup, self._seed), policy, gang)

    def _warm_up(self, kind: str) -> None:
        """Check the listed changes, load the data and make a first iteration, which is slow."""
        work = self.open(0, kind, 0, 1, "")
        if isinstance(work, AdaptiveJob):
            try:
                work.check()
            except InputError as error:
                raise ConfigError(f"kinds.{kind}.adaptive: {error}") from None
        for stage in (work.fetch, work.compute, work.update):
            stage()

    def _task(self, kind: str, setup: Setup, rank: int) -> Task:
        task = self._tasks.get((kind, rank)) or setup.task(self._seed + rank)
        if not task.state_dict():
            self._tasks[kind, rank] = task
        return task

    def _exchange(self, meeting: str, rank: int, size: int, where: torch.device) -> Members:
        """Return the exchange of a gang; members that have met need not meet again."""
        if meeting not in self._met:
            self._met[meeting] = meet(Path(meeting), rank, size, where, PATIENCE_S)
            while len(self._met) > MEETINGS:
                del self._met[next(iter(self._met))]
        return self._met[meeting]


def networks(settings: Mapping[str, Any], seed: int) -> Networks:
    """Return the jobs that `[kinds]` in a configuration describes."""
    return Networks(bound(settings), seed)


def bound(settings: Mapping[str, Any]) -> dict[str, JobKind]:
    """Return the kinds of jobs by name. Raises ConfigError if a key is wrong."""
    return {name: bind(JobKind, table, f"kinds.{name}") for name, table in settings.items()}
