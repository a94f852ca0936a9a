"""Workers on Ray: an actor per slot, reused from interval to interval, and their checkpoints."""

import os
import platform
import time
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rota.core.cluster import Cluster
from rota.core.errors import InputError, RotaError
from rota.execution.assignments import CheckpointInfo, Done, parse_done
from rota.execution.checkpoints import CheckpointContents, Checkpoints, DamagedCheckpoint
from rota.execution.engine import Answered, AnyAssignment, Died, Message, NodeCame, NodeWent, parse_answer
from rota.execution.folder import TAIL, last_of
from rota.execution.jobs.worker import JobWorker
from rota.execution.journal import NotWritten
from rota.execution.ray_cluster import RayCluster, RayNode, first_line
from rota.execution.starting import CannotStart, StartAttempts
from rota.execution.trainable import check_name
from rota.execution.worker import Worker, WorkerHello, make_handler, parse_hello


class StoreActor:
    """An actor on the controller's node that accesses checkpoints for actors elsewhere."""

    def __init__(self, folder: str) -> None:
        self._checkpoints = Checkpoints(Path(folder))

    def read(self, which: tuple[Any, ...]) -> tuple[dict[str, Any], bytes] | str:
        """Return answer and content of a checkpoint, or why it cannot be read."""
        try:
            kept = self._checkpoints.read(CheckpointInfo(*which))
        except DamagedCheckpoint as damage:
            return str(damage)
        return kept.answer.record(), kept.content

    def write(
        self, answer: dict[str, Any], which: tuple[Any, ...], content: bytes, over: tuple[int, int] | None
    ) -> str:
        """Write a checkpoint; return nothing, or why it failed."""
        try:
            self._checkpoints.write(parse_done(answer), CheckpointInfo(*which), content, over)
        except NotWritten as error:
            return str(error)
        return ""


class FarCheckpoints:
    """Access to checkpoints through a StoreActor."""

    def __init__(self, store: Any) -> None:
        import ray

        self._store, self._ray = store, ray

    def read(self, which: CheckpointInfo) -> CheckpointContents:
        found = self._asked(self._store.read, tuple(which))
        if isinstance(found, str):
            raise DamagedCheckpoint(found)
        answer, content = found
        return CheckpointContents(parse_done(answer), content)

    def write(
        self, answer: Done, which: CheckpointInfo, content: bytes, over: tuple[int, int] | None = None
    ) -> None:
        why = self._asked(self._store.write, answer.record(), tuple(which), content, over)
        if why:
            raise NotWritten(why)

    def _asked(self, method: Any, *arguments: Any) -> Any:
        """Return the store's answer; raise NotWritten if it is gone, which is not a trial's fault."""
        try:
            return self._ray.get(method.remote(*arguments))
        except self._ray.exceptions.RayTaskError:
            raise
        except self._ray.exceptions.RayError as error:
            raise NotWritten(
                f"the store of checkpoints does not answer ({first_line(error)}); check its node"
            ) from None


class SlotActor:
    """The actor of a slot. Messages are the lines of other workers, so nothing is pickled."""

    def __init__(self, trial: str, hello: bytes, log: str, store: Any, *, sees_gpu: bool) -> None:
        if not sees_gpu:
            os.environ["CUDA_VISIBLE_DEVICES"] = ""
        self._why_not = ""
        try:
            self._worker = _worker(trial, parse_hello(hello), log, store)
        except RotaError as error:
            self._why_not = str(error)

    def ready(self) -> str:
        """Return nothing if it can train, or why it cannot."""
        return self._why_not

    def carry_out(self, assignment: bytes) -> bytes:
        """Return the answer to a line of JSON, also a line of JSON."""
        return self._worker.answer(assignment)

    def pid(self) -> int:
        """Return the process id of the actor."""
        return os.getpid()


def _worker(trial: str, hello: WorkerHello, log: str, store: Any) -> Worker | JobWorker:
    """Return the worker, with checkpoints in the run folder or behind a store."""
    if store is None:
        _check_shared(hello.checkpoints)
        _print_to(log)
    checkpoints = FarCheckpoints(store) if store is not None else Checkpoints(Path(hello.checkpoints))
    return make_handler(trial, hello, checkpoints)


def _check_shared(folder: str) -> None:
    if not Path(folder).is_dir():
        raise InputError(
            f"{folder}: not there on {platform.node()}; put the run on storage that all nodes share, "
            "or set ray.shared to false"
        )


def _print_to(log: str) -> None:
    """Redirect output to the run folder, as Ray deletes its session."""
    printed = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    for descriptor in (1, 2):
        os.dup2(printed, descriptor)
    os.close(printed)


LOOK_EVERY_S = 1.0
"""Seconds between two looks at the nodes of the cluster."""
DOUBT_S = 60.0
"""Seconds after which an unreachable actor counts as dead."""
PAUSE_S = 0.1
"""Seconds between two attempts to reach an actor."""


@dataclass(frozen=True, slots=True)
class SlotResources:
    """The resources of a slot."""

    cpus: float = 1.0
    gpus: float = 0.0
    resources: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class NodeSelector:
    """The condition on a node of the Ray cluster: these labels, or else this name."""

    name: str = ""
    """A name, address or host; empty: any node."""
    labels: Mapping[str, str] = field(default_factory=dict)

    def fits(self, node: RayNode) -> bool:
        """Return whether a node of the Ray cluster meets the condition."""
        if self.labels:
            return self.labels.items() <= node.labels.items()
        return not self.name or self.name in node.names


@dataclass(frozen=True, slots=True)
class ActorSetup:
    """What all slots have in common."""

    trial: str
    hello: WorkerHello
    logs: Path
    shared: bool = True
    """Whether all nodes see the run folder."""


class RayWorkers:
    """Workers that are Ray actors, one per slot. Ray ends them with the process that started them."""

    def __init__(
        self,
        cluster: Cluster,
        wanted: Sequence[NodeSelector],
        bundles: Sequence[SlotResources],
        ray_cluster: RayCluster,
        setup: ActorSetup,
        *,
        wait_s: float,
    ) -> None:
        check_name(setup.trial)
        self._cluster, self._wanted, self._bundles, self._setup = cluster, wanted, bundles, setup
        self._ray_cluster, self._wait_s = ray_cluster, wait_s
        self._ray: Any = None
        self._store: Any = None
        """The actor that accesses checkpoints for others."""
        self._placed: dict[int, str] = {}
        """Node → id of its Ray node."""
        self._actors: dict[int, _Actor] = {}
        self._starts = StartAttempts(setup.trial, len(bundles))
        self._look_at_s = 0.0

    def nodes(self) -> list[int]:
        """Return the nodes that are there, once each of their slots has an actor that is ready."""
        until_s = time.monotonic() + self._wait_s
        self._contact(until_s)
        while missing := self._missing():
            for slot in missing - set(self._actors):
                self._start(slot)
            self.wait(PAUSE_S)
            self._check_time(until_s, f"no room for slots {sorted(missing)}, or they take long to start")
        return sorted(self._placed)

    def send(self, slot: int, assignment: AnyAssignment) -> None:
        if self._node_of(slot) in self._placed:  # else it is known, or will be, that the node is gone
            actor = self._actors.get(slot) or self._start(slot)
            actor.say(assignment.line())

    def wait(self, timeout_s: float) -> list[Message]:
        messages = self._look()
        heads = {actor.calls[0]: actor for actor in self._actors.values() if actor.calls}
        if not heads:
            time.sleep(0.0 if messages else timeout_s)
            return messages
        self._ray.wait(list(heads), timeout=0 if messages else timeout_s)
        ready, _ = self._ray.wait(list(heads), num_returns=len(heads), timeout=0)
        for call in ready:
            if heads[call].slot in self._actors:  # its node may have gone meanwhile
                messages += self._hear(heads[call])
        return messages

    def close(self) -> None:
        if self._ray is None:
            return
        for slot in list(self._actors):
            self._end(slot)
        self._ray_cluster.close()

    def pids(self) -> list[int]:
        """Return the process ids of the actors."""
        found: list[int] = self._ray.get([actor.handle.pid.remote() for actor in self._actors.values()])
        return found

    def _contact(self, until_s: float) -> None:
        """Connect to the cluster, and wait for the first node."""
        self._ray = self._ray_cluster.connect()
        if not self._setup.shared:
            folder = self._setup.hello.checkpoints
            self._store = self._on(self._ray_cluster.here(), StoreActor, num_cpus=0).remote(folder)
        while not self._place():
            self._check_time(until_s, "none of the nodes is there")
            time.sleep(PAUSE_S)

    # ── actors ──────────────────────────────────────────────────────────────────────────────────────────────

    def _start(self, slot: int) -> "_Actor":
        bundle, log = self._bundles[slot], self._setup.logs / f"slot{slot}.log"
        remote = self._on(
            self._placed[self._node_of(slot)],
            SlotActor,
            num_cpus=bundle.cpus,
            num_gpus=bundle.gpus,
            resources=dict(bundle.resources),
        )
        handle = remote.remote(
            self._setup.trial,
            self._setup.hello.line(),
            str(log.absolute()),
            self._store,
            sees_gpu=bundle.gpus > 0,
        )
        actor = _Actor(slot, handle, log)
        self._actors[slot] = actor
        return actor

    def _on(self, node: str, kind: type, **takes: Any) -> Any:
        """Return an actor class on a node; rota, not Ray, replaces actors that die."""
        strategy = self._ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(node, soft=False)
        return self._ray.remote(kind).options(scheduling_strategy=strategy, max_restarts=0, **takes)

    def _hear(self, actor: "_Actor") -> list[Message]:
        """Return the messages that follow from the oldest call of an actor."""
        try:
            said = self._ray.get(actor.calls.popleft())
        except self._ray.exceptions.ActorUnavailableError as error:
            return self._doubt(actor, error)
        except self._ray.exceptions.RayError as error:
            return self._gone(actor, error)
        if actor.doubted_since_s:
            return self._gone(actor, "it could not be reached for a while")
        if actor.ready:
            return [Answered(actor.slot, parse_answer(said))]
        if said:
            raise CannotStart(said)
        actor.ready = True
        self._starts.succeeded(actor.slot)
        return []

    def _doubt(self, actor: "_Actor", error: Exception) -> list[Message]:
        """Wait until Ray knows whether the actor or its node is gone."""
        now_s = time.monotonic()
        actor.doubted_since_s = actor.doubted_since_s or now_s
        if now_s - actor.doubted_since_s > DOUBT_S:
            return self._gone(actor, error)
        time.sleep(PAUSE_S)
        actor.calls.clear()
        actor.ask()
        return []

    def _gone(self, actor: "_Actor", why: object) -> list[Message]:
        """Handle the death of an actor, or of its node with all others there."""
        node = self._node_of(actor.slot)
        if self._placed[node] not in {there.id for there in self._ray_cluster.nodes()}:
            return [self._went(node)]
        self._end(actor.slot)
        said = f"the worker died ({_brief(why)}): {actor.last_words()}"
        if not actor.ready:
            self._starts.failed(actor.slot, said)
        return [Died(actor.slot, said)]

    def _end(self, slot: int) -> None:
        actor = self._actors.pop(slot)
        with suppress(self._ray.exceptions.RayError):
            self._ray.kill(actor.handle)

    # ── nodes ───────────────────────────────────────────────────────────────────────────────────────────────

    def _look(self) -> list[Message]:
        """Return which nodes have gone and come, at intervals."""
        now_s = time.monotonic()
        if now_s < self._look_at_s:
            return []
        self._look_at_s = now_s + LOOK_EVERY_S
        there = {node.id for node in self._ray_cluster.nodes()}
        messages: list[Message] = [
            self._went(node) for node, where in list(self._placed.items()) if where not in there
        ]
        return messages + [NodeCame(node) for node in self._place()]

    def _place(self) -> list[int]:
        """Match further nodes with nodes of the Ray cluster, one to one; return the matched ones."""
        free = [node for node in self._ray_cluster.nodes() if node.id not in self._placed.values()]
        came = []
        for node, wanted in enumerate(self._wanted):
            if node not in self._placed and (fitting := [each for each in free if wanted.fits(each)]):
                free.remove(fitting[0])
                self._placed[node] = fitting[0].id
                came.append(node)
        return came

    def _went(self, node: int) -> NodeWent:
        del self._placed[node]
        for slot in [slot for slot in self._actors if self._node_of(slot) == node]:
            self._end(slot)
        return NodeWent(node)

    def _node_of(self, slot: int) -> int:
        return self._cluster.all_slots[slot].node

    def _missing(self) -> set[int]:
        """Return the slots without a ready actor on nodes that are there."""
        slots = {slot for slot in range(len(self._bundles)) if self._node_of(slot) in self._placed}
        return {slot for slot in slots if slot not in self._actors or not self._actors[slot].ready}

    def _check_time(self, until_s: float, what: str) -> None:
        if time.monotonic() > until_s:
            raise CannotStart(f"Ray: {what} after {self._wait_s:g} s; see `ray status`, or raise ray.wait_s")


class _Actor:
    """The actor of a slot, and its unanswered calls, oldest first."""

    def __init__(self, slot: int, handle: Any, log: Path) -> None:
        self.slot, self.handle, self.ready = slot, handle, False
        self.doubted_since_s = 0.0
        self.calls: deque[Any] = deque()
        self._log = log
        self.ask()

    def ask(self) -> None:
        """Ask whether it is ready."""
        self.calls.append(self.handle.ready.remote())

    def say(self, line: bytes) -> None:
        self.calls.append(self.handle.carry_out.remote(line))

    def last_words(self) -> str:
        return last_of(self._log)


def _brief(why: object) -> str:
    lines = [line.strip() for line in str(why).splitlines() if line.strip()]
    return "; ".join(lines)[:TAIL] or type(why).__name__
