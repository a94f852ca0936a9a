"""Workers on Slurm: a job step per slot, reused from interval to interval, and the pipes to them."""

import hashlib
import json
import logging
import os
import selectors
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rota.core.cluster import Cluster
from rota.execution.engine import Answered, AnyAssignment, Died, Message, NodeCame, NodeWent, parse_answer
from rota.execution.folder import last_line, opened
from rota.execution.pipe import Pipe
from rota.execution.slurm_commands import (
    NodeRequest,
    Queue,
    StepTarget,
    check_commands,
    end_jobs,
    is_there,
    job_command,
    outside,
    step_command,
)
from rota.execution.starting import CannotStart, StartAttempts
from rota.execution.trainable import check_name
from rota.execution.worker import WorkerHello

PATIENCE_S = {signal.SIGTERM: 1.0, signal.SIGKILL: 10.0}
"""Seconds that a command may take to end before it gets this signal."""


class SlurmCommand(Pipe):
    """A command of Slurm that answers on its output."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str], log: Path) -> None:
        printed = opened(log)
        try:
            process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=printed,
                env=environment, start_new_session=True,
            )  # fmt: skip
        finally:
            os.close(printed)
        assert process.stdout is not None
        super().__init__(process, process.stdout.fileno(), log)

    def heard(self) -> list[bytes] | None:
        """Return complete lines of JSON, without what a prolog of Slurm prints; None at the end."""
        lines = super().heard()
        return lines and [line for line in lines if line.startswith(b"{")]

    def last_words(self) -> str:
        """Return the end of its log. Its exit code says nothing: an srun whose node failed exits with 0."""
        return super().last_words().strip()

    def kill(self) -> None:
        """Kill a command whose node is gone."""
        self._process.kill()
        self.end()

    def end(self) -> None:
        """Make sure that it ends, by a signal if it is queued and does not read its input."""
        self.hang_up()
        for more in (signal.SIGTERM, signal.SIGKILL):
            try:
                self._process.wait(PATIENCE_S[more])
                break
            except subprocess.TimeoutExpired:
                self._process.send_signal(more)
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()


@dataclass(eq=False, slots=True)
class SlurmStep:
    """The worker of a slot, a job step."""

    slot: int
    node: int
    pipe: SlurmCommand
    ready: bool = False
    pending: int = 0
    """Number of unanswered assignments."""
    ended_s: float = 0.0


@dataclass(eq=False, slots=True)
class Hold:
    """The job that holds a node."""

    node: int
    pipe: SlurmCommand


log = logging.getLogger(__name__)

WAKE_S = 0.2
SETTLE_S = 1.0
"""Maximal seconds between the end of a step and the end of its job."""
SILENCE_S = 5.0
"""Seconds of waiting after which it is logged what is waited for."""


class SlurmWorkers:
    """Workers that are job steps, one per slot. They end when the pipe to them is closed."""

    def __init__(
        self,
        cluster: Cluster,
        requests: Sequence[NodeRequest],
        allocated: Mapping[int, StepTarget] | None,
        queue: Queue,
        trial: str,
        hello: WorkerHello,
        logs: Path,
    ) -> None:
        check_name(trial)
        self._cluster, self._requests, self._allocated, self._queue = cluster, requests, allocated, queue
        self._trial, self._hello, self._logs = trial, hello, logs
        self._name = f"rota-{hashlib.sha256(str(logs.absolute()).encode()).hexdigest()[:16]}"
        """The name of the jobs, unique to the run."""
        self._selector = selectors.DefaultSelector()
        self._holds: dict[int, Hold] = {}
        self._targets: dict[int, StepTarget] = {}
        self._steps: dict[int, SlurmStep] = {}
        self._doubtful: dict[int, SlurmStep] = {}
        """Slot → a step that has ended for a reason not yet known."""
        self._there: set[int] = set()
        """Nodes that the controller knows it can use."""
        self._begun = False
        """Whether the run has begun, which needs some nodes only."""
        self._starts = StartAttempts(trial, len(cluster.all_slots))

    def nodes(self) -> list[int]:
        """Return the nodes of the allocation; without one, those that are granted soon."""
        check_commands()
        if self._allocated is None:
            end_jobs(self._name)
            for node in range(len(self._cluster.nodes)):
                self._ask(node)
        for node, target in (self._allocated or {}).items():
            self._begin(node, target)
        self._wait_for_nodes()
        self._begun = True
        return sorted(self._there)

    def _wait_for_nodes(self) -> None:
        """Wait until all nodes are ready, or one is and the others have had their time."""
        since_s, said = time.monotonic(), False
        while not self._complete():
            none_yet = not self._there
            self.wait(WAKE_S)
            now_s = time.monotonic()
            if none_yet and self._there:
                since_s = now_s
            if self._there and now_s > since_s + self._queue.patience_s:
                return
            if not self._there and not said and now_s > since_s + SILENCE_S:
                log.warning("waiting until Slurm grants the jobs called %s", self._name)
                said = True

    def _complete(self) -> bool:
        """Return whether all expected nodes have a worker on each slot."""
        expected = self._allocated if self._allocated is not None else range(len(self._cluster.nodes))
        slots = [slot for node in expected for slot in self._slots(node)]
        return all(slot in self._steps and self._steps[slot].ready for slot in slots)

    def send(self, slot: int, assignment: AnyAssignment) -> None:
        if slot in self._doubtful or self._cluster.all_slots[slot].node not in self._targets:
            return  # a message says so in a moment, and this is lost
        step = self._steps.get(slot) or self._start(slot)
        step.pending += 1
        step.pipe.say(assignment.line())

    def wait(self, timeout_s: float) -> list[Message]:
        if self._begun and not self._targets and not self._holds:
            raise CannotStart("no node is left, and none will come; go on with --resume in another job")
        messages: list[Message] = []
        for key, _ in self._selector.select(min(timeout_s, WAKE_S) if self._doubtful else timeout_s):
            if self._is_open(key.data):
                messages += self._hear(key.data)
        return messages + self._settled()

    def close(self) -> None:
        open_pipes = [step.pipe for step in self._steps.values()]
        open_pipes += [hold.pipe for hold in self._holds.values()]
        self._steps.clear()
        self._holds.clear()
        for pipe in open_pipes:
            pipe.hang_up()
        for pipe in open_pipes:
            pipe.end()
        self._selector.close()

    def pids(self) -> list[int]:
        """Return the process ids of the local commands: of steps, then of those that hold jobs."""
        return [each.pipe.pid for held in (self._steps, self._holds) for each in held.values()]

    def targets(self) -> dict[int, StepTarget]:
        """Return the present job and host of each node."""
        return dict(self._targets)

    # ── nodes ───────────────────────────────────────────────────────────────────────────────────────────────

    def _ask(self, node: int) -> None:
        command = job_command(self._requests[node], self._name, self._queue.arguments)
        pipe = SlurmCommand(command, outside(os.environ), self._logs / f"job{node}.log")
        self._holds[node] = Hold(node, pipe)
        self._selector.register(pipe.answers, selectors.EVENT_READ, self._holds[node])

    def _begin(self, node: int, target: StepTarget) -> None:
        log.info("%s is %s of job %s", self._cluster.names[node], target.host, target.job)
        self._targets[node] = target
        for slot in self._slots(node):
            self._start(slot)

    def _lose(self, node: int) -> list[Message]:
        """Drop a node with all its steps; request another one if nodes are requested."""
        del self._targets[node]
        for slot in self._slots(node):
            self._doubtful.pop(slot, None)
            if slot in self._steps:
                self._close(self._steps.pop(slot)).kill()
        if node in self._holds:
            self._close(self._holds.pop(node)).end()
            self._ask(node)
        if node not in self._there:
            return []
        self._there.discard(node)
        return [NodeWent(node)]

    def _slots(self, node: int) -> list[int]:
        return [number for number, slot in enumerate(self._cluster.all_slots) if slot.node == node]

    # ── steps ───────────────────────────────────────────────────────────────────────────────────────────────

    def _start(self, slot: int) -> SlurmStep:
        node = self._cluster.all_slots[slot].node
        request = self._requests[node]
        printed = self._logs / f"slot{slot}.log"
        command = step_command(self._targets[node], request, slot, self._trial, printed)
        environment = {**outside(os.environ), "OMP_NUM_THREADS": str(request.cpus)}
        if not request.gres:
            environment["CUDA_VISIBLE_DEVICES"] = ""
        step = SlurmStep(slot, node, SlurmCommand(command, environment, printed))
        self._steps[slot] = step
        self._selector.register(step.pipe.answers, selectors.EVENT_READ, step)
        step.pipe.say(self._hello.line())
        return step

    def _is_open(self, source: SlurmStep | Hold) -> bool:
        """Return whether a step or job was not closed since its output arrived."""
        if isinstance(source, Hold):
            return self._holds.get(source.node) is source
        return self._steps.get(source.slot) is source

    def _close(self, source: SlurmStep | Hold) -> SlurmCommand:
        """Stop listening to a step or job; return its pipe."""
        self._selector.unregister(source.pipe.answers)
        return source.pipe

    # ── what is heard ───────────────────────────────────────────────────────────────────────────────────────

    def _hear(self, source: SlurmStep | Hold) -> list[Message]:
        lines = source.pipe.heard()
        if isinstance(source, Hold):
            return self._hold_ended(source) if lines is None else self._granted(source, lines)
        if lines is None:
            return self._step_ended(source)
        messages: list[Message] = []
        for line in lines:
            if source.ready:
                source.pending -= 1
                messages.append(Answered(source.slot, parse_answer(line)))
            else:
                messages += self._take_ready(source, json.loads(line))
        return messages

    def _granted(self, hold: Hold, lines: list[bytes]) -> list[Message]:
        for line in lines:
            self._begin(hold.node, StepTarget(**json.loads(line)))
        return []

    def _hold_ended(self, hold: Hold) -> list[Message]:
        """Handle the end of a job: a time limit, a failed node, a cancellation or a refusal."""
        if hold.node in self._targets:
            return self._lose(hold.node)
        self._close(self._holds.pop(hold.node)).end()
        why = f"Slurm grants no job for {self._cluster.names[hold.node]}: {hold.pipe.last_words()}"
        if not self._begun:
            raise CannotStart(why)
        log.warning("%s; the run continues without it", why)
        return []

    def _take_ready(self, step: SlurmStep, found: Mapping[str, Any]) -> list[Message]:
        if not found["ready"]:
            raise CannotStart(found["why"])
        step.ready = True
        self._starts.succeeded(step.slot)
        if step.node in self._there:
            return []
        self._there.add(step.node)
        return [NodeCame(step.node)]

    def _step_ended(self, step: SlurmStep) -> list[Message]:
        """Handle the end of a step; one with assignments is examined a moment later.

        A job that is over ends its steps first.
        """
        self._close(self._steps.pop(step.slot)).end()
        if not step.pending:
            return self._verdict(step)
        step.ended_s = time.monotonic()
        self._doubtful[step.slot] = step
        return []

    def _settled(self) -> list[Message]:
        """Return the messages about steps that ended a moment ago."""
        messages: list[Message] = []
        for slot, step in list(self._doubtful.items()):
            if slot in self._doubtful and time.monotonic() >= step.ended_s + SETTLE_S:
                del self._doubtful[slot]
                messages += self._verdict(step)
        return messages

    def _verdict(self, step: SlurmStep) -> list[Message]:
        """Ask Slurm whether the node or only its worker is gone; srun does not say."""
        if not is_there(self._targets[step.node]):
            return self._lose(step.node)
        why = f"the worker died: {step.pipe.last_words()}"
        if not step.ready:
            self._starts.failed(step.slot, f"{last_line(why)}; all that they printed: {self._logs}")
            if step.node not in self._there:
                self._start(step.slot)
        return [Died(step.slot, why)]
