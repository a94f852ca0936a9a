"""The protocol of an engine: its configuration, and workers that carry out assignments, one per slot."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from rota.core.cluster import Cluster
from rota.execution.assignments import Assignment, Done, FailedAnswer, parse_done
from rota.execution.folder import RunPaths
from rota.execution.jobs.assignments import PARTS, JobAnswer, JobAssignment, parse_job_answer
from rota.execution.worker import WorkerHello

AnyAssignment = Assignment | JobAssignment
AnyAnswer = Done | FailedAnswer | JobAnswer


def parse_answer(line: bytes) -> AnyAnswer:
    """Return the answer of a worker, of trials or of jobs, in a line of JSON."""
    found = json.loads(line)
    if PARTS in found:
        return parse_job_answer(found[PARTS])
    if "metric" in found:
        return parse_done(found)
    return FailedAnswer(**found)


class Answered(NamedTuple):
    """The worker of a slot has answered the oldest of its assignments."""

    slot: int
    answer: AnyAnswer


class Died(NamedTuple):
    """The worker of a slot has died, and all its unanswered assignments are lost."""

    slot: int
    why: str


class NodeCame(NamedTuple):
    """A node can be used, or can be used again."""

    node: int


class NodeWent(NamedTuple):
    """A node is gone with all its workers; their assignments will not be answered."""

    node: int


Message = Answered | Died | NodeCame | NodeWent


class Workers(Protocol):
    """Long-lived workers, one per slot: local processes, Ray actors or Slurm job steps.

    Slots and nodes are numbered as in the cluster of the run. A worker carries out its assignments in order,
    and answers each once. After `Died`, the next assignment starts a new worker. An assignment may be sent
    again; it is then answered from its checkpoint.
    """

    def nodes(self) -> list[int]:
        """Start the workers; return the nodes that can be used, once some workers are ready.

        Called once, before the first assignment. The time it takes does not count as the run's. Later changes
        are messages.
        """

    def send(self, slot: int, assignment: AnyAssignment) -> None:
        """Append an assignment to those of a slot's worker; return immediately."""

    def wait(self, timeout_s: float) -> list[Message]:
        """Return new messages, at least one unless the time is up; a signal may end it early."""

    def close(self) -> None:
        """Kill all workers. Unfinished assignments are lost, checkpoints stay."""


@dataclass(frozen=True, slots=True)
class WorkerSetup:
    """What all workers of a run have in common."""

    trial: str
    """The `module:function` that makes what is trained."""
    settings: Mapping[str, Any]
    """The settings that this function is called with."""
    seed: int
    paths: RunPaths
    """The run folder, with checkpoints and logs."""
    mode: str = "max"
    """Whether a larger ("max") or a smaller metric ("min") is better."""

    def hello(self) -> WorkerHello:
        """Return the first message to each worker."""
        return WorkerHello(
            str(self.paths.checkpoints.folder.absolute()), self.seed, self.settings, mode=self.mode
        )


class Engine(Protocol):
    """The section of a configuration that describes slots: `[local]`, `[ray]` or `[slurm]`."""

    def cluster(self) -> Cluster:
        """Return the cluster, which must be the same when a run is resumed."""

    def check(self) -> None:
        """Raise ConfigError, before a run begins, if it requires what is known to be missing."""

    def workers(self, cluster: Cluster, setup: WorkerSetup) -> Workers:
        """Return the workers of a cluster, none of them started yet."""
