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

from rota.core.errors import InputError, RotaError
from rota.core.population.cluster import PopulationCluster
from rota.execution.assignments import CheckpointInfo, Done, done
from rota.execution.checkpoints import CheckpointContents, Checkpoints, DamagedCheckpoint
from rota.execution.engine import Answered, AnyOrder, Died, Message, NodeCame, NodeWent, parse_answer
from rota.execution.folder import TAIL, last_of
from rota.execution.journal import NotWritten
from rota.execution.local import STARTS, CannotStart
from rota.execution.ray_cluster import RayCluster, RayNode
from rota.execution.trainable import check_name
from rota.execution.worker import AssignmentHandler, WorkerHello, hand, parse_hello


class StoreActor:
    """On the node of the controller: it reads and writes for those that cannot."""

    def __init__(self, folder: str) -> None:
        self._checkpoints = Checkpoints(Path(folder))

    def read(self, which: tuple[Any, ...]) -> tuple[dict[str, Any], bytes] | str:
        """What was answered and the content; or why there is none."""
        try:
            kept = self._checkpoints.read(CheckpointInfo(*which))
        except DamagedCheckpoint as damage:
            return str(damage)
        return kept.answer.record(), kept.content

    def write(
        self, answer: dict[str, Any], which: tuple[Any, ...], content: bytes, over: tuple[int, int] | None
    ) -> str:
        """Nothing, or why it could not."""
        try:
            self._checkpoints.write(done(answer), CheckpointInfo(*which), content, over)
        except NotWritten as error:
            return str(error)
        return ""


class FarCheckpoints:
    """What `Checkpoints` is to a worker, where they are elsewhere."""

    def __init__(self, store: Any) -> None:
        import ray

        self._store, self._ray = store, ray

    def read(self, which: CheckpointInfo) -> CheckpointContents:
        found = self._asked(self._store.read, tuple(which))
        if isinstance(found, str):
            raise DamagedCheckpoint(found)
        answer, content = found
        return CheckpointContents(done(answer), content)

    def write(
        self, answer: Done, which: CheckpointInfo, content: bytes, over: tuple[int, int] | None = None
    ) -> None:
        why = self._asked(self._store.write, answer.record(), tuple(which), content, over)
        if why:
            raise NotWritten(why)

    def _asked(self, method: Any, *arguments: Any) -> Any:
        """What the store answers. That it is gone has nothing to do with a trial."""
        try:
            return self._ray.get(method.remote(*arguments))
        except self._ray.exceptions.RayTaskError:
            raise
        except self._ray.exceptions.RayError as error:
            said = str(error).strip().partition("\n")[0] or type(error).__name__
            raise NotWritten(
                f"the store of checkpoints does not answer ({said}); see how its node is"
            ) from None


class SlotActor:
    """Orders and answers are the lines that other workers read and write, so nothing of ours is pickled."""

    def __init__(self, trial: str, hello: bytes, log: str, store: Any, *, sees_gpu: bool) -> None:
        if not sees_gpu:
            os.environ["CUDA_VISIBLE_DEVICES"] = ""
        self._why_not = ""
        try:
            self._worker = _worker(trial, parse_hello(hello), log, store)
        except RotaError as error:
            self._why_not = str(error)

    def ready(self) -> str:
        """Nothing if it can train; else why not."""
        return self._why_not

    def carry_out(self, order: bytes) -> bytes:
        return self._worker.answer(order)

    def pid(self) -> int:
        return os.getpid()


def _worker(trial: str, hello: WorkerHello, log: str, store: Any) -> AssignmentHandler:
    """What it needs is in the folder of the run, or with whoever keeps it."""
    if store is None:
        _check_shared(hello.checkpoints)
        _print_to(log)
    checkpoints = FarCheckpoints(store) if store is not None else Checkpoints(Path(hello.checkpoints))
    return hand(trial, hello, checkpoints)


def _check_shared(folder: str) -> None:
    if not Path(folder).is_dir():
        raise InputError(
            f"{folder}: not there on {platform.node()}; put the run on storage that all nodes share, "
            "or set ray.shared to false"
        )


def _print_to(log: str) -> None:
    """What a trial prints belongs to the run, not to Ray's session, which is gone after it."""
    printed = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    for descriptor in (1, 2):
        os.dup2(printed, descriptor)
    os.close(printed)


LOOK_EVERY_S = 1.0
"""Which nodes there are."""
DOUBT_S = 60.0
"""Whoever cannot be reached for so long is dead."""
PAUSE_S = 0.1
"""Between two attempts to reach somebody."""


@dataclass(frozen=True, slots=True)
class SlotResources:
    """What of its node a slot is given."""

    cpus: float = 1.0
    gpus: float = 0.0
    resources: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class NodeSelector:
    """Which node of the cluster a node of the fleet is: one with these labels, or else of this name."""

    name: str = ""
    """Nothing: any will do."""
    labels: Mapping[str, str] = field(default_factory=dict)

    def fits(self, node: RayNode) -> bool:
        if self.labels:
            return self.labels.items() <= node.labels.items()
        return not self.name or self.name in node.names


@dataclass(frozen=True, slots=True)
class ActorSetup:
    """What is the same for all slots."""

    trial: str
    hello: WorkerHello
    logs: Path
    shared: bool = True
    """Whether all nodes see the folder of the run."""


class RayWorkers:
    """An actor per slot. They end with the process that started them: Ray sees to it."""

    def __init__(
        self,
        fleet: PopulationCluster,
        wanted: Sequence[NodeSelector],
        bundles: Sequence[SlotResources],
        cluster: RayCluster,
        crew: ActorSetup,
        *,
        wait_s: float,
    ) -> None:
        check_name(crew.trial)
        self._fleet, self._wanted, self._bundles, self._crew = fleet, wanted, bundles, crew
        self._cluster, self._wait_s = cluster, wait_s
        self._ray: Any = None
        self._store: Any = None
        """Reads and writes checkpoints for actors that cannot."""
        self._placed: dict[int, str] = {}
        """Node of the fleet → id of the node that it is."""
        self._actors: dict[int, _Actor] = {}
        self._starts = [0] * len(bundles)
        self._look_at_s = 0.0

    def nodes(self) -> list[int]:
        """Those that are there, once each of their slots has an actor that is ready."""
        until_s = time.monotonic() + self._wait_s
        self._contact(until_s)
        while missing := self._missing():
            for slot in missing - set(self._actors):
                self._start(slot)
            self.wait(PAUSE_S)
            self._check_time(until_s, f"no room for slots {sorted(missing)}, or they take long to start")
        return sorted(self._placed)

    def send(self, slot: int, order: AnyOrder) -> None:
        if self._node_of(slot) in self._placed:  # else it is known, or will be, that the node is gone
            actor = self._actors.get(slot) or self._start(slot)
            actor.say(order.line())

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
        self._cluster.close()

    def pids(self) -> list[int]:
        found: list[int] = self._ray.get([actor.handle.pid.remote() for actor in self._actors.values()])
        return found

    def _contact(self, until_s: float) -> None:
        """With the cluster, and with some of the nodes."""
        self._ray = self._cluster.connect()
        if not self._crew.shared:
            folder = self._crew.hello.checkpoints
            self._store = self._on(self._cluster.here(), StoreActor, num_cpus=0).remote(folder)
        while not self._place():
            self._check_time(until_s, "none of the nodes is there")
            time.sleep(PAUSE_S)

    # ── actors ──────────────────────────────────────────────────────────────────────────────────────────────

    def _start(self, slot: int) -> "_Actor":
        bundle, log = self._bundles[slot], self._crew.logs / f"slot{slot}.log"
        remote = self._on(
            self._placed[self._node_of(slot)],
            SlotActor,
            num_cpus=bundle.cpus,
            num_gpus=bundle.gpus,
            resources=dict(bundle.resources),
        )
        handle = remote.remote(
            self._crew.trial,
            self._crew.hello.line(),
            str(log.absolute()),
            self._store,
            sees_gpu=bundle.gpus > 0,
        )
        actor = _Actor(slot, handle, log)
        self._actors[slot] = actor
        return actor

    def _on(self, node: str, kind: type, **takes: Any) -> Any:
        """An actor class, on a node of the cluster; who dies is replaced by us, not by Ray."""
        strategy = self._ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(node, soft=False)
        return self._ray.remote(kind).options(scheduling_strategy=strategy, max_restarts=0, **takes)

    def _hear(self, actor: "_Actor") -> list[Message]:
        """What came of the oldest of its calls."""
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
        self._starts[actor.slot] = 0
        return []

    def _doubt(self, actor: "_Actor", error: Exception) -> list[Message]:
        """Is it gone, or its node? Ray will know after a while."""
        now_s = time.monotonic()
        actor.doubted_since_s = actor.doubted_since_s or now_s
        if now_s - actor.doubted_since_s > DOUBT_S:
            return self._gone(actor, error)
        time.sleep(PAUSE_S)
        actor.calls.clear()
        actor.ask()
        return []

    def _gone(self, actor: "_Actor", why: object) -> list[Message]:
        """The actor, or its node with all others that are there."""
        node = self._node_of(actor.slot)
        if self._placed[node] not in {there.id for there in self._cluster.nodes()}:
            return [self._went(node)]
        self._end(actor.slot)
        said = f"the worker died ({_brief(why)}): {actor.last_words()}"
        if not actor.ready:
            self._starts[actor.slot] += 1
            if self._starts[actor.slot] >= STARTS:
                raise CannotStart(f"workers of {self._crew.trial} end before they are ready: {said}")
        return [Died(actor.slot, said)]

    def _end(self, slot: int) -> None:
        actor = self._actors.pop(slot)
        with suppress(self._ray.exceptions.RayError):
            self._ray.kill(actor.handle)

    # ── nodes ───────────────────────────────────────────────────────────────────────────────────────────────

    def _look(self) -> list[Message]:
        """Nodes that have gone, and nodes that have come, each once in a while."""
        now_s = time.monotonic()
        if now_s < self._look_at_s:
            return []
        self._look_at_s = now_s + LOOK_EVERY_S
        there = {node.id for node in self._cluster.nodes()}
        messages: list[Message] = [
            self._went(node) for node, where in list(self._placed.items()) if where not in there
        ]
        return messages + [NodeCame(node) for node in self._place()]

    def _place(self) -> list[int]:
        """Nodes of the fleet that have become nodes of the cluster, each another one."""
        free = [node for node in self._cluster.nodes() if node.id not in self._placed.values()]
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
        return self._fleet.slots[slot].node

    def _missing(self) -> set[int]:
        """Slots of nodes that are there whose actors are not ready."""
        slots = {slot for slot in range(len(self._bundles)) if self._node_of(slot) in self._placed}
        return {slot for slot in slots if slot not in self._actors or not self._actors[slot].ready}

    def _check_time(self, until_s: float, what: str) -> None:
        if time.monotonic() > until_s:
            raise CannotStart(f"Ray: {what} after {self._wait_s:g} s; see `ray status`, or raise ray.wait_s")


class _Actor:
    """One worker, and what it was asked, oldest first."""

    def __init__(self, slot: int, handle: Any, log: Path) -> None:
        self.slot, self.handle, self.ready = slot, handle, False
        self.doubted_since_s = 0.0
        self.calls: deque[Any] = deque()
        self._log = log
        self.ask()

    def ask(self) -> None:
        """Whether it is there."""
        self.calls.append(self.handle.ready.remote())

    def say(self, line: bytes) -> None:
        self.calls.append(self.handle.carry_out.remote(line))

    def last_words(self) -> str:
        return last_of(self._log)


def _brief(why: object) -> str:
    lines = [line.strip() for line in str(why).splitlines() if line.strip()]
    return "; ".join(lines)[:TAIL] or type(why).__name__
