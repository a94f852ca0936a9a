"""The process of a worker: `python -m rota.execution.worker NUMBER PARENT module:function`.

Its first line of input says what the run is; each further one is an order. Answers go to the descriptor of
that number, so that whatever a trial prints disturbs nothing. It ends with its parent, the controller, and
whatever it has started ends with it.
"""

import ctypes
import json
import os
import select
import signal
import sys
import traceback
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter
from typing import IO, Any, Protocol

from rota.core.errors import RotaError
from rota.execution.assignments import (
    Answer,
    Assignment,
    CheckpointInfo,
    Done,
    FailedAnswer,
    IntervalSeconds,
    answer_line,
    parse_order,
)
from rota.execution.checkpoints import (
    CheckpointContents,
    Checkpoints,
    DamagedCheckpoint,
    LostCheckpoint,
    Store,
    start_of,
)
from rota.execution.jobs.worker import JobFactory, JobWorker
from rota.execution.journal import NotWritten
from rota.execution.own_code import as_number
from rota.execution.trainable import Trainable, make

DIE_WITH_PARENT = 1
"""Of prctl: PR_SET_PDEATHSIG."""


@dataclass(frozen=True, slots=True)
class WorkerHello:
    """What a worker is told before its first order."""

    checkpoints: str
    """Their folder."""
    seed: int
    settings: Mapping[str, Any]
    """Of what is trained."""
    cores: tuple[int, ...] = ()
    """On which it computes; any if none are named."""
    mode: str = "max"
    """Whether more of what is evaluated is better, or less: "min". Here and in the journal more is better."""

    def line(self) -> bytes:
        fields = {name: getattr(self, name) for name in WorkerHello.__slots__}
        return json.dumps(fields).encode() + b"\n"


def parse_hello(line: bytes) -> WorkerHello:
    found = json.loads(line)
    return WorkerHello(**{**found, "cores": tuple(found["cores"])})


class AssignmentHandler(Protocol):
    """Whoever carries out orders: a line for a line."""

    def answer(self, line: bytes) -> bytes:
        """Whatever goes wrong is an answer, too."""


class Worker:
    """Carries out orders, one after the other."""

    def __init__(self, trainable: Trainable, checkpoints: Store, mode: str = "max") -> None:
        self._trainable, self._checkpoints = trainable, checkpoints
        self._name = type(trainable).__name__
        self._sign = -1.0 if mode == "min" else 1.0
        self._holds = ""
        """The digest of what the trainable is now; nothing if that is unknown."""

    def answer(self, line: bytes) -> bytes:
        return answer_line(self.carry_out(parse_order(line)))

    def carry_out(self, order: Assignment) -> Answer:
        """Whatever goes wrong is an answer, too."""
        try:
            kept = self._there(order.make)
            if kept is not None:
                return replace(kept.answer, again=True)
            return self._make(order)
        except NotWritten as error:
            self._holds = ""
            return FailedAnswer(order.make.digest, str(error), no_room=True)
        except LostCheckpoint as error:
            self._holds = ""
            return FailedAnswer(order.make.digest, str(error), lost=True)
        except Exception:
            self._holds = ""
            why = traceback.format_exc()
            sys.stderr.write(f"trial {order.make.trial} failed:\n{why}")  # the log
            sys.stderr.flush()
            return FailedAnswer(order.make.digest, why)

    def _there(self, which: CheckpointInfo) -> CheckpointContents | None:
        """What an earlier order left. A damaged one is as good as none."""
        try:
            return self._checkpoints.read(which)
        except DamagedCheckpoint:
            return None

    def _make(self, order: Assignment) -> Done:
        began = perf_counter()
        self._be_source(order)
        loaded = perf_counter()
        self._train(order.make)
        trained = perf_counter()
        metric = self._sign * as_number(self._trainable.evaluate(), f"{self._name}.evaluate returned")
        evaluated = perf_counter()
        content = self._trainable.save()
        spent = IntervalSeconds(loaded - began, trained - loaded, evaluated - trained)
        answer = Done(order.make.digest, metric, spent, ended=getattr(self._trainable, "ended", None))
        self._checkpoints.write(answer, order.make, content, order.over)
        self._holds = order.make.digest
        return replace(answer, spent=replace(spent, saving_s=perf_counter() - evaluated))

    def _train(self, part: CheckpointInfo) -> None:
        self._holds = ""
        self._trainable.train(part.steps, part.hyper, part.changes)

    def _be_source(self, order: Assignment) -> None:
        """From memory, from its checkpoint, or made again from one before that."""
        if order.source is None:
            self._trainable.begin(order.make.trial)
        elif order.source.digest != self._holds:
            start = start_of(order, self._checkpoints)
            if start.content is None:
                self._trainable.begin(start.again[0].trial)
            else:
                self._trainable.load(start.content)
            for made in start.again:
                self._train(made)


def hand(name: str, hello: WorkerHello, store: Store) -> AssignmentHandler:
    """Whoever carries out orders about what that function makes: trials, or jobs in slices."""
    made = make(name, hello.settings, hello.seed)
    return JobWorker(made, store) if isinstance(made, JobFactory) else Worker(made, store, hello.mode)


def serve(hand: AssignmentHandler, orders: Iterable[bytes], answers: IO[bytes]) -> None:
    """Until there are no more."""
    for line in orders:
        answers.write(hand.answer(line))
        answers.flush()


def work(name: str, orders: Iterator[bytes], answers: IO[bytes]) -> int:
    """Be the worker of whoever gives orders, until there are no more."""
    hello = parse_hello(next(orders))
    if hello.cores and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, hello.cores)
    try:
        worker = hand(name, hello, Checkpoints(Path(hello.checkpoints)))
    except RotaError as error:
        answers.write(json.dumps({"ready": False, "why": str(error)}).encode() + b"\n")
        return 2
    answers.write(b'{"ready":true}\n')
    answers.flush()
    serve(worker, orders, answers)
    return 0


def main(answers_to: int, parent: int, name: str) -> int:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the controller
    end_with(parent)
    end_with_all()
    with open(answers_to, "wb") as answers:
        return work(name, sys.stdin.buffer, answers)


def end_with(parent: int, by: signal.Signals = signal.SIGKILL) -> None:
    """Be killed when the controller dies, however it does. Elsewhere than on Linux, end after the part."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(DIE_WITH_PARENT, by)
        if os.getppid() != parent:
            os._exit(1)  # it died before that was said


def end_with_all() -> None:
    """Whatever this process starts ends with it, also if it is killed: one that is nobody's child sees to it.

    Only the leader of a group can say that, and only on a Linux that can wait for any process.
    """
    if sys.platform != "linux" or os.getpgrp() != os.getpid():
        return
    try:
        this = os.pidfd_open(os.getpid())
    except OSError:
        return
    if between := os.fork():
        os.close(this)
        os.waitpid(between, 0)
        return
    if os.fork():
        os._exit(0)
    os.dup2(os.open(os.devnull, os.O_RDWR), 0)
    os.closerange(3, this)
    os.closerange(this + 1, os.sysconf("SC_OPEN_MAX"))
    select.select([this], [], [])
    os.killpg(0, signal.SIGKILL)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]))
