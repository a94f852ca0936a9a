"""The process of a worker: `python -m rota.execution.worker NUMBER PARENT module:function`.

The first line of input describes the run; each further one is an assignment. Answers are written to the file
descriptor NUMBER, so that output of a trial cannot disturb them. The worker ends with its parent, the
controller, and everything it started ends with it.
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
from typing import IO, Any

from rota.core.errors import RotaError
from rota.execution.assignments import (
    Answer,
    Assignment,
    CheckpointInfo,
    Done,
    FailedAnswer,
    IntervalSeconds,
    answer_line,
    parse_assignment,
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
"""The constant PR_SET_PDEATHSIG of prctl."""


@dataclass(frozen=True, slots=True)
class WorkerHello:
    """The first message to a worker."""

    checkpoints: str
    """The folder of the checkpoints."""
    seed: int
    settings: Mapping[str, Any]
    """The settings of what is trained."""
    cores: tuple[int, ...] = ()
    """The cores to compute on; any if none are named."""
    mode: str = "max"
    """Whether a larger ("max") or a smaller metric ("min") is better; in answers larger always is."""

    def line(self) -> bytes:
        """Return the message as a line of JSON."""
        fields = {name: getattr(self, name) for name in WorkerHello.__slots__}
        return json.dumps(fields).encode() + b"\n"


def parse_hello(line: bytes) -> WorkerHello:
    """Return the message in a line of JSON."""
    found = json.loads(line)
    return WorkerHello(**{**found, "cores": tuple(found["cores"])})


class Worker:
    """A worker for trials; it carries out one assignment at a time."""

    def __init__(self, trainable: Trainable, checkpoints: Store, mode: str = "max") -> None:
        self._trainable, self._checkpoints = trainable, checkpoints
        self._name = type(trainable).__name__
        self._sign = -1.0 if mode == "min" else 1.0
        self._holds = ""
        """The digest of the checkpoint that the trainable equals; empty if unknown."""

    def answer(self, line: bytes) -> bytes:
        """Return the answer to a line of JSON, also a line of JSON."""
        return answer_line(self.carry_out(parse_assignment(line)))

    def carry_out(self, assignment: Assignment) -> Answer:
        """Train one interval; failures are answers, too."""
        try:
            kept = self._there(assignment.make)
            if kept is not None:
                return replace(kept.answer, again=True)
            return self._make(assignment)
        except NotWritten as error:
            self._holds = ""
            return FailedAnswer(assignment.make.digest, str(error), no_room=True)
        except LostCheckpoint as error:
            self._holds = ""
            return FailedAnswer(assignment.make.digest, str(error), lost=True)
        except Exception:
            self._holds = ""
            why = traceback.format_exc()
            sys.stderr.write(f"trial {assignment.make.trial} failed:\n{why}")  # the log
            sys.stderr.flush()
            return FailedAnswer(assignment.make.digest, why)

    def _there(self, which: CheckpointInfo) -> CheckpointContents | None:
        """Return the checkpoint if it was made before; None if it is missing or damaged."""
        try:
            return self._checkpoints.read(which)
        except DamagedCheckpoint:
            return None

    def _make(self, assignment: Assignment) -> Done:
        began = perf_counter()
        self._be_source(assignment)
        loaded = perf_counter()
        self._train(assignment.make)
        trained = perf_counter()
        metric = self._sign * as_number(self._trainable.evaluate(), f"{self._name}.evaluate returned")
        evaluated = perf_counter()
        content = self._trainable.save()
        spent = IntervalSeconds(loaded - began, trained - loaded, evaluated - trained)
        answer = Done(assignment.make.digest, metric, spent, ended=getattr(self._trainable, "ended", None))
        self._checkpoints.write(answer, assignment.make, content, assignment.over)
        self._holds = assignment.make.digest
        return replace(answer, spent=replace(spent, saving_s=perf_counter() - evaluated))

    def _train(self, interval: CheckpointInfo) -> None:
        self._holds = ""
        self._trainable.train(interval.steps, interval.hyper, interval.changes)

    def _be_source(self, assignment: Assignment) -> None:
        """Bring the trainable to the source: from memory, from a checkpoint, or by training again."""
        if assignment.source is None:
            self._trainable.begin(assignment.make.trial)
        elif assignment.source.digest != self._holds:
            start = start_of(assignment, self._checkpoints)
            if start.content is None:
                self._trainable.begin(start.again[0].trial)
            else:
                self._trainable.load(start.content)
            for made in start.again:
                self._train(made)


def make_handler(name: str, hello: WorkerHello, store: Store) -> Worker | JobWorker:
    """Return the worker for what that function makes: trials or jobs."""
    made = make(name, hello.settings, hello.seed)
    return JobWorker(made, store) if isinstance(made, JobFactory) else Worker(made, store, hello.mode)


def serve(handler: Worker | JobWorker, assignments: Iterable[bytes], answers: IO[bytes]) -> None:
    """Answer assignments until there are no more."""
    for line in assignments:
        answers.write(handler.answer(line))
        answers.flush()


def work(name: str, assignments: Iterator[bytes], answers: IO[bytes]) -> int:
    """Be a worker until there are no more assignments; return the exit code."""
    hello = parse_hello(next(assignments))
    if hello.cores and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, hello.cores)
    try:
        worker = make_handler(name, hello, Checkpoints(Path(hello.checkpoints)))
    except RotaError as error:
        answers.write(json.dumps({"ready": False, "why": str(error)}).encode() + b"\n")
        return 2
    answers.write(b'{"ready":true}\n')
    answers.flush()
    serve(worker, assignments, answers)
    return 0


def main(answers_to: int, parent: int, name: str) -> int:
    """Be the worker of a local slot; return the exit code."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the controller
    end_with(parent)
    end_with_all()
    with open(answers_to, "wb") as answers:
        return work(name, sys.stdin.buffer, answers)


def end_with(parent: int, by: signal.Signals = signal.SIGKILL) -> None:
    """Send this process a signal when the controller dies; only on Linux."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(DIE_WITH_PARENT, by)
        if os.getppid() != parent:
            os._exit(1)  # it died before that was said


def end_with_all() -> None:
    """Let everything that this process starts end with it, even if it is killed.

    An orphaned process waits for its end. Only the leader of a process group can do so, on a Linux with
    pidfd.
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
