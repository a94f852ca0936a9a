"""The protocol of an engine: its configuration, and workers that carry out assignments, one per slot."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from rota.core.population.cluster import PopulationCluster
from rota.execution.assignments import Assignment, Done, FailedAnswer, done
from rota.execution.folder import RunPaths
from rota.execution.jobs.assignments import PARTS, JobAnswer, JobAssignment, sliced
from rota.execution.worker import WorkerHello

AnyOrder = Assignment | JobAssignment
AnyAnswer = Done | FailedAnswer | JobAnswer


def parse_answer(line: bytes) -> AnyAnswer:
    found = json.loads(line)
    if PARTS in found:
        return sliced(found[PARTS])
    if "metric" in found:
        return done(found)
    return FailedAnswer(**found)


class Answered(NamedTuple):
    """The worker of a slot has carried out the oldest of its orders, or could not."""

    slot: int
    answer: AnyAnswer


class Died(NamedTuple):
    """The worker of a slot is gone, and with it all orders that it has not answered."""

    slot: int
    why: str


class NodeCame(NamedTuple):
    """A node can be used, or can be used again."""

    node: int


class NodeWent(NamedTuple):
    """A node is gone, with the workers of all its slots; nothing more is heard of their orders."""

    node: int


Message = Answered | Died | NodeCame | NodeWent


class Workers(Protocol):
    """Long-lived workers, one per slot, whatever runs them: processes here, actors, job steps.

    Slots and nodes are numbered as in the fleet of the run. A worker is reused from order to order; after
    `Died` the next order starts another one. It carries out its orders one after the other and answers each
    once, in that order. An order may be given again: what was made is there, and is answered from there.
    """

    def nodes(self) -> list[int]:
        """Start workers; the nodes that can be used once some of them are ready to train.

        Asked once, before the first order. The time that it takes is not the run's. What changes later is a
        message.
        """

    def send(self, slot: int, order: AnyOrder) -> None:
        """Give an order to the worker of a slot, behind those that it has. Returns at once."""

    def wait(self, timeout_s: float) -> list[Message]:
        """What was heard, at least one message unless the time is over. A signal may end it early."""

    def close(self) -> None:
        """End all workers, at once. What they were at is lost, what they have made stays."""


@dataclass(frozen=True, slots=True)
class WorkerSetup:
    """What workers are for."""

    trial: str
    """`module:function`, which makes what is trained."""
    settings: Mapping[str, Any]
    """That it is given."""
    seed: int
    books: RunPaths
    """Where checkpoints and logs are kept."""
    mode: str = "max"
    """Whether more is better, or less: "min"."""

    def hello(self) -> WorkerHello:
        """What workers are told first."""
        return WorkerHello(
            str(self.books.checkpoints.folder.absolute()), self.seed, self.settings, mode=self.mode
        )


class Engine(Protocol):
    """A section of the configuration: `[local]` …"""

    def fleet(self) -> PopulationCluster:
        """The slots, which must be the same when a run is resumed."""

    def check(self) -> None:
        """Raise ConfigError, before a run begins, if it asks for what is known not to be there."""

    def workers(self, fleet: PopulationCluster, assignment: WorkerSetup) -> Workers:
        """One worker per slot, none of them started yet."""
