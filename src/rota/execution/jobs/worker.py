"""The worker of jobs: it carries out assignments of one job, or of several interleaved by stage."""

import traceback
from collections import OrderedDict
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from threading import Condition, Lock, Thread
from time import perf_counter
from typing import Any, Protocol, runtime_checkable

from rota.execution.assignments import CheckpointInfo, Done, IntervalSeconds
from rota.execution.checkpoints import DamagedCheckpoint, LostCheckpoint, Store, start_of
from rota.execution.jobs.assignments import (
    JobAnswer,
    JobAssignment,
    JobShare,
    ShareResult,
    ShareSeconds,
    parse_job_assignment,
)
from rota.execution.journal import NotWritten


class JobTrainer(Protocol):
    """One job on one slot, or one member of its gang.

    An iteration is `fetch`, `compute`, `exchange` and `update`, in this order. Other jobs may run stages
    meanwhile, in other threads.
    """

    def load(self, content: bytes) -> None:
        """Become what was saved."""

    def save(self) -> bytes:
        """Return all that `load` needs; it must not be a pickle."""

    def fetch(self) -> None:
        """Get the next batch."""

    def compute(self) -> None:
        """Compute on the processor of the slot."""

    def exchange(self) -> None:
        """Exchange gradients with the other members of the gang."""

    def update(self) -> None:
        """Update the parameters."""

    def tell(self, room: int, at_s: float) -> None:
        """Receive, before an assignment, the number of lent slots and the time of the run in seconds."""

    @property
    def metric(self) -> float:
        """The present metric, as the loss of the last batch."""

    def notes(self) -> list[dict[str, Any]]:
        """Return plain values to be kept of this assignment."""


@runtime_checkable
class JobFactory(Protocol):
    """A factory of jobs, made once per worker, so that it can keep what all jobs share."""

    def open(self, job: int, kind: str, rank: int, size: int, meeting: str) -> JobTrainer:
        """Return a job before its first iteration; members of a gang wait for each other."""


AHEAD = 1
"""Maximal difference of iterations between interleaved jobs."""

Outcome = ShareSeconds | str
"""The seconds that were spent, or the traceback of a failure."""


class StageTurns:
    """The synchronisation of the jobs of one assignment."""

    def __init__(self, members: int) -> None:
        shared = members > 1
        self.fetching: AbstractContextManager[object] = Lock() if shared else nullcontext()
        self.computing: AbstractContextManager[object] = Lock() if shared else nullcontext()
        self._done = [0.0] * members
        self._changed = Condition()

    def wait(self, member: int) -> None:
        """Wait until no job is too far behind."""
        with self._changed:
            self._changed.wait_for(lambda: self._done[member] - min(self._done) <= AHEAD)

    def note(self, member: int, iterations: float) -> None:
        """Record the iterations of a job; infinitely many once it is over."""
        with self._changed:
            self._done[member] = iterations
            self._changed.notify_all()


def interleave(works: Sequence[tuple[JobTrainer, int]]) -> list[Outcome]:
    """Run so many iterations of each job; a failure of one, even an exit, does not affect the others."""
    if not works:
        return []
    turns = StageTurns(len(works))
    outcomes: list[Outcome] = [""] * len(works)

    def member(number: int) -> None:
        try:
            outcomes[number] = _iterate(*works[number], turns, number)
        except BaseException:
            outcomes[number] = traceback.format_exc()
        finally:
            turns.note(number, float("inf"))

    others = [Thread(target=member, args=(number,), daemon=True) for number in range(1, len(works))]
    for thread in others:
        thread.start()
    member(0)
    for thread in others:
        thread.join()
    return outcomes


def _iterate(work: JobTrainer, iterations: int, turns: StageTurns, number: int) -> ShareSeconds:
    fetch_s = compute_s = exchange_s = 0.0
    began = perf_counter()
    for done in range(iterations):
        turns.wait(number)
        with turns.fetching:
            a = perf_counter()
            work.fetch()
            b = perf_counter()
        with turns.computing:
            c = perf_counter()
            work.compute()
            d = perf_counter()
        work.exchange()
        e = perf_counter()
        with turns.computing:
            f = perf_counter()
            work.update()
            g = perf_counter()
        turns.note(number, done + 1)
        fetch_s, compute_s, exchange_s = fetch_s + b - a, compute_s + d - c + g - f, exchange_s + e - d
    whole_s = perf_counter() - began
    return ShareSeconds(fetch_s, compute_s, exchange_s, max(0.0, whole_s - fetch_s - compute_s - exchange_s))


KEPT = 4
"""Number of jobs kept in memory: the most recent."""


@dataclass(slots=True)
class LoadedJob:
    """A job in memory."""

    work: JobTrainer
    holds: str
    """The digest of the checkpoint that it equals; empty if unknown."""
    gang: tuple[int, int, str]
    """Rank, size and meeting of its gang."""


@dataclass(slots=True)
class RunningShare:
    """A share of an assignment that is being carried out."""

    share: JobShare
    result: ShareResult | None = None
    """The result, once it is known."""
    held: LoadedJob | None = None
    restore_s: float = 0.0

    @property
    def make(self) -> CheckpointInfo:
        """The checkpoint that the share ends with."""
        return self.share.order.make


class JobWorker:
    """A worker for jobs; it carries out one assignment at a time."""

    def __init__(self, factory: JobFactory, store: Store) -> None:
        self._factory, self._store = factory, store
        self._held: OrderedDict[int, LoadedJob] = OrderedDict()

    def answer(self, line: bytes) -> bytes:
        """Return the answer to a line of JSON, also a line of JSON."""
        return self.carry_out(parse_job_assignment(line)).line()

    def carry_out(self, assignment: JobAssignment) -> JobAnswer:
        """Run the shares of an assignment; failures are part of the answer."""
        begun = [self._begin(share) for share in assignment.shares]
        ready = [(each, each.held) for each in begun if each.result is None and each.held is not None]
        outcomes = interleave([(held.work, each.make.steps) for each, held in ready])
        for (each, held), outcome in zip(ready, outcomes, strict=True):
            each.result = self._finish(each, held, outcome)
        return JobAnswer(
            tuple(each.result or ShareResult(each.make.digest, why="no result") for each in begun)
        )

    def _begin(self, share: JobShare) -> RunningShare:
        begun = RunningShare(share)
        began = perf_counter()
        try:
            begun.result = self._there(share.order.make)
            if begun.result is None:
                begun.held = self._be_source(share)
                begun.held.work.tell(share.room, share.at_s)
        except NotWritten as error:
            begun.result = self._without_room(share.order.make, error)
        except LostCheckpoint as error:
            begun.result = self._failed(share.order.make, str(error))._replace(lost=True)
        except Exception:
            begun.result = self._failed(share.order.make, traceback.format_exc())
        begun.restore_s = perf_counter() - began
        return begun

    def _there(self, make: CheckpointInfo) -> ShareResult | None:
        """Return the result of a checkpoint made before; None if it is missing or damaged."""
        try:
            kept = self._store.read(make).answer
        except DamagedCheckpoint:
            return None
        return ShareResult(make.digest, metric=kept.metric, again=True)

    def _be_source(self, share: JobShare) -> LoadedJob:
        """Return the job at its source: from memory, from its checkpoint, or made again."""
        assignment, gang = share.order, (share.rank, share.size, share.meeting)
        wanted = assignment.source.digest if assignment.source else ""
        held = self._held.pop(assignment.make.trial, None)
        if held is None or held.gang != gang or held.holds != wanted or not wanted:
            work = self._factory.open(assignment.make.trial, share.kind, *gang)
            held = LoadedJob(work, "", gang)
            if assignment.source is not None:
                self._load(held.work, share)
        held.holds = ""
        self._held[assignment.make.trial] = held
        while len(self._held) > KEPT:
            self._held.popitem(last=False)
        return held

    def _load(self, work: JobTrainer, share: JobShare) -> None:
        assignment = share.order
        start = start_of(assignment, self._store)
        if start.content is not None:
            work.load(start.content)
        path = zip((assignment.source, *assignment.earlier), share.contexts, strict=False)
        contexts = {made.digest: context for made, context in path if made}
        for made in start.again:
            work.tell(*contexts.get(made.digest, (0, 0.0)))
            (outcome,) = interleave([(work, made.steps)])
            if isinstance(outcome, str):
                raise RuntimeError(f"could not be made again: {outcome}")
            work.notes()  # which were kept the first time

    def _finish(self, begun: RunningShare, held: LoadedJob, outcome: ShareSeconds | str) -> ShareResult:
        if isinstance(outcome, str):
            return self._failed(begun.make, outcome)
        began = perf_counter()
        try:
            metric, notes = held.work.metric, tuple(held.work.notes())
            if begun.share.rank == 0:
                spent = IntervalSeconds(begun.restore_s, outcome.training_s)
                done = Done(begun.make.digest, metric, spent)
                self._store.write(done, begun.make, held.work.save(), begun.share.order.over)
        except NotWritten as error:
            return self._without_room(begun.make, error)
        except Exception:
            return self._failed(begun.make, traceback.format_exc())
        held.holds = begun.make.digest
        seconds = outcome._replace(restore_s=begun.restore_s, save_s=perf_counter() - began)
        return ShareResult(begun.make.digest, seconds, metric, notes=notes)

    def _without_room(self, make: CheckpointInfo, error: NotWritten) -> ShareResult:
        self._held.pop(make.trial, None)
        return ShareResult(make.digest, why=str(error), no_room=True)

    def _failed(self, make: CheckpointInfo, why: str) -> ShareResult:
        self._held.pop(make.trial, None)
        return ShareResult(make.digest, why=why)
