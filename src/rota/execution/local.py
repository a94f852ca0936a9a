"""Workers on this machine: a process per slot, and the configuration of local slots."""

import json
import os
import re
import selectors
import signal
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rota.core.cluster import LARGEST, Cluster, Slot, own_cores
from rota.core.errors import ConfigError
from rota.core.limits import at_least
from rota.execution.engine import Answered, AnyAssignment, Died, Message, WorkerSetup, parse_answer
from rota.execution.folder import last_line, opened
from rota.execution.pipe import Pipe
from rota.execution.starting import CannotStart, StartAttempts
from rota.execution.trainable import check_name
from rota.execution.worker import WorkerHello

LIST = ("nvidia-smi", "-L")
LISTS_S = 60.0
"""Timeout of nvidia-smi in seconds: a sleeping driver takes a while."""
AMD = Path("/dev/kfd")
"""A device that exists if there are AMD GPUs, which no command lists reliably."""


def is_missing(gpu: str) -> bool:
    """Return whether this machine is known to lack the GPU with this number or UUID.

    `CUDA_VISIBLE_DEVICES` hides the GPUs that it does not name.
    """
    given = os.environ.get("CUDA_VISIBLE_DEVICES")
    if given is not None:
        shown = [word.strip() for word in given.split(",") if word.strip()]
        if not shown or (all(map(str.isdecimal, [gpu, *shown])) and gpu not in shown):
            return True
    there = _listed()
    return there is not None and not any(
        name == gpu or (not gpu.isdecimal() and name.startswith(gpu)) for name in there
    )


def _listed() -> list[str] | None:
    """Return the numbers and UUIDs of all GPUs; None if there may be others."""
    if AMD.exists():
        return None
    try:
        text = subprocess.run(LIST, capture_output=True, text=True, timeout=LISTS_S, check=False).stdout
    except (OSError, subprocess.TimeoutExpired):
        text = ""
    return [*re.findall(r"^GPU (\d+):", text, re.MULTILINE), *re.findall(r"UUID: ([\w-]+)", text)]


LINGER_S = 2.0
WAKE_S = 0.2
LOOPBACK = {"GLOO_SOCKET_IFNAME": "lo"} if sys.platform == "linux" else {}
"""The environment of gangs on one machine: they listen on the loopback interface only."""


@dataclass(frozen=True, slots=True)
class LocalSlot:
    """The cores and the GPU of a local slot."""

    cores: tuple[int, ...] = ()
    """The cores to compute on; any if none are named."""
    gpu: str = ""
    """The value of CUDA_VISIBLE_DEVICES, as `0`; empty: no GPU."""


class LocalWorkers:
    """Workers that are local processes, one per slot. They end with the thread that started them."""

    def __init__(
        self,
        cluster: Cluster,
        slots: Sequence[LocalSlot],
        trial: str,
        hello: WorkerHello,
        logs: Path,
    ) -> None:
        check_name(trial)
        self._cluster, self._slots = cluster, slots
        self._trial, self._hello, self._logs = trial, hello, logs
        self._selector = selectors.DefaultSelector()
        self._running: dict[int, _Process] = {}
        self._starts = StartAttempts(trial, len(slots))

    def nodes(self) -> list[int]:
        """Return all nodes, once each slot has a worker that is ready."""
        missing = set(range(len(self._slots)))
        while missing:
            for slot in missing - set(self._running):
                self._start(slot)
            self.wait(WAKE_S)
            missing = {slot for slot in missing if slot not in self._running or not self._running[slot].ready}
        return list(range(len(self._cluster.nodes)))

    def send(self, slot: int, assignment: AnyAssignment) -> None:
        process = self._running.get(slot) or self._start(slot)
        process.say(assignment.line())

    def wait(self, timeout_s: float) -> list[Message]:
        messages: list[Message] = []
        for key, _ in self._selector.select(timeout_s):
            messages += self._hear(key.data)
        return messages + self._unheard()

    def close(self) -> None:
        for slot in list(self._running):
            self._end(slot)
        self._selector.close()

    def pids(self) -> list[int]:
        """Return the process ids of the workers."""
        return [process.pid for process in self._running.values()]

    def _start(self, slot: int) -> "_Process":
        local_slot = self._slots[slot]
        hello = replace(self._hello, cores=local_slot.cores)
        process = _Process(slot, self._trial, hello, _environment(local_slot), self._logs / f"slot{slot}.log")
        self._running[slot] = process
        self._selector.register(process.answers, selectors.EVENT_READ, process)
        return process

    def _unheard(self) -> list[Message]:
        """Return the deaths of workers whose pipe is still open in a process that they forked."""
        gone = [process for process in self._running.values() if process.has_ended()]
        if not gone:
            return []
        speaking = {key.fd for key, _ in self._selector.select(0)}  # what they said before is heard first
        return [self._died(process) for process in gone if process.answers not in speaking]

    def _hear(self, process: "_Process") -> list[Message]:
        lines = process.heard()
        if lines is None:
            return [self._died(process)]
        messages: list[Message] = []
        for line in lines:
            if process.ready:
                messages.append(Answered(process.slot, parse_answer(line)))
            else:
                self._take_ready(process, json.loads(line))
        return messages

    def _take_ready(self, process: "_Process", found: Mapping[str, Any]) -> None:
        if not found["ready"]:
            raise CannotStart(found["why"])
        process.ready = True
        self._starts.succeeded(process.slot)

    def _died(self, process: "_Process") -> Died:
        process.linger()
        self._end(process.slot)
        why = process.last_words()
        if not process.ready:
            self._starts.failed(process.slot, f"{last_line(why)}; all that they printed: {process.log}")
        return Died(process.slot, why)

    def _end(self, slot: int) -> None:
        process = self._running.pop(slot)
        self._selector.unregister(process.answers)
        process.end()


class _Process(Pipe):
    """The process of one worker."""

    def __init__(
        self, slot: int, trial: str, hello: WorkerHello, environment: dict[str, str], log: Path
    ) -> None:
        self.slot, self.log, self.ready = slot, log, False
        answers, theirs = os.pipe()
        command = [sys.executable, "-m", "rota.execution.worker", str(theirs), str(os.getpid()), trial]
        try:
            printed = opened(log)
            process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=printed, stderr=printed, pass_fds=[theirs],
                env=environment, start_new_session=True,
            )  # fmt: skip
            os.close(printed)
        finally:
            os.close(theirs)
        super().__init__(process, answers, log)
        self.say(hello.line())

    def last_words(self) -> str:
        """Return how it ended, and the end of its log."""
        code = self._process.returncode
        how = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
        return f"the worker died ({how}): {super().last_words()}"

    def has_ended(self) -> bool:
        return self._process.poll() is not None

    def linger(self) -> None:
        """Wait a little for it to end by itself, so that its exit code is known."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(LINGER_S)

    def end(self) -> None:
        """Kill it, if necessary, with everything that it started."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self.hang_up()
        os.close(self.answers)


def _environment(local_slot: LocalSlot) -> dict[str, str]:
    """Return the environment of a worker: its one GPU or none, and as many threads as cores."""
    environment = {**LOOPBACK, **os.environ, "CUDA_VISIBLE_DEVICES": local_slot.gpu}
    if local_slot.cores:
        environment["OMP_NUM_THREADS"] = str(len(local_slot.cores))
    return environment


MOST_PROCESSES = 1024
"""Maximal number of slots on one machine."""
NODE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*", re.ASCII)
GPU = re.compile(r"[A-Za-z0-9-]*", re.ASCII)


def check_group(count: int, node: str) -> None:
    """Raise ConfigError for an impossible number of slots, or a name that no node has."""
    if not 1 <= count <= LARGEST:
        raise ConfigError(f"count is {count}; it must be 1 to {LARGEST:,}")
    if not NODE.fullmatch(node):
        raise ConfigError(f"node is {node!r}; use letters, digits, dots, dashes and underscores")


def cluster_of_groups(groups: Iterable[tuple[int, str, float, str]]) -> Cluster:
    """Return a cluster of groups of slots in their order: number, node, speed and device of each."""
    nodes: dict[str, int] = {}
    slots: list[Slot] = []
    for count, node, speed, device in groups:
        slots += [Slot(nodes.setdefault(node, len(nodes)), speed, device=device)] * count
    return Cluster.of_slots(tuple(slots), tuple(nodes))


@dataclass(frozen=True, slots=True)
class LocalSlotConfig:
    """Some equal slots of this machine."""

    count: int = 1
    """Number of slots."""
    speed: float = 1.0
    """Expected speed relative to other slots; it is measured from the first report on."""
    cores: int = 1
    """Number of cores that each slot is pinned to, each time the next ones; 0: it may use all."""
    gpu: str = ""
    """The GPU of these slots, as in CUDA_VISIBLE_DEVICES; several slots may share one."""
    node: str = "here"
    """The name of the node."""

    def __post_init__(self) -> None:
        check_group(self.count, self.node)
        at_least(0, cores=self.cores)
        if not GPU.fullmatch(self.gpu):
            raise ConfigError(f"gpu is {self.gpu!r}; give the number or the UUID of one GPU")


@dataclass(frozen=True, slots=True)
class LocalConfig:
    """Slots of this machine, each with a process of its own."""

    slots: tuple[LocalSlotConfig, ...] = (LocalSlotConfig(count=2),)
    """Groups of slots, in the order in which they are first assigned."""

    def __post_init__(self) -> None:
        if (slots := len(self.cluster().all_slots)) > MOST_PROCESSES:
            raise ConfigError(
                f"slots: they are {slots:,}, each with a process on this machine; at most {MOST_PROCESSES:,}"
            )

    def cluster(self) -> Cluster:
        """Return the cluster: the groups of slots in their order, on their nodes."""
        return cluster_of_groups(
            (each.count, each.node, each.speed, f"gpu {each.gpu}" if each.gpu else "cpu")
            for each in self.slots
        )

    def check(self) -> None:
        """Raise ConfigError if a slot requires more cores than there are, or a missing GPU.

        Slots may share cores and GPUs.
        """
        there = len(own_cores())
        for number, group in enumerate(self.slots):
            where, mend = f"local.slots[{number}]", "change the file, or --set local.slots="
            if group.cores > there:
                raise ConfigError(
                    f"{where}: cores is {group.cores}, but this process may use {there} of this machine's; "
                    f"{mend}'[{{count = {group.count}, cores = {there}}}]'"
                )
            if group.gpu and is_missing(group.gpu):
                raise ConfigError(
                    f"{where}: gpu is {group.gpu!r}, but this process sees no such GPU (nvidia-smi -L, "
                    f"CUDA_VISIBLE_DEVICES); {mend}'[{{count = {group.count}}}]'"
                )

    def pinned(self, cores: list[int]) -> list[LocalSlot]:
        """Return the slots, pinned to these cores in turn, and from the first again when they run out."""
        slots, at = [], 0
        for group in self.slots:
            for _ in range(group.count):
                mine = {cores[(at + more) % len(cores)] for more in range(group.cores)}
                slots.append(LocalSlot(tuple(sorted(mine)), group.gpu))
                at += group.cores
        return slots

    def workers(self, cluster: Cluster, setup: WorkerSetup) -> LocalWorkers:
        """Return workers that are pinned to the cores of this process."""
        slots = self.pinned(own_cores())
        return LocalWorkers(cluster, slots, setup.trial, setup.hello(), setup.paths.logs)
