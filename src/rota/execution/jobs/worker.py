"""The worker of a slot for jobs: it carries out slices, of one job or of several interleaved by stage."""

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
    JobTimes,
    ShareSeconds,
    parse_slice,
)
from rota.execution.journal import NotWritten


class JobTrainer(Protocol):
    """One job on one slot, or one member of its gang.

    `fetch`, `compute`, `exchange` and `update`, in this order, are an iteration. Others may be between their
    own stages meanwhile, in other threads.
    """

    def load(self, content: bytes) -> None:
        """Be what was saved."""

    def save(self) -> bytes:
        """All that `load` needs. It must not be pickled."""

    def fetch(self) -> None:
        """Get the next batch."""

    def compute(self) -> None:
        """What the processor of the slot is for."""

    def exchange(self) -> None:
        """With the other members of the gang."""

    def update(self) -> None:
        """Make the step."""

    def tell(self, room: int, at_s: float) -> None:
        """Before a slice: so many slots are lent to it, at this time of the run."""

    @property
    def metric(self) -> float:
        """How it stands."""

    def notes(self) -> list[dict[str, Any]]:
        """What is to be kept of this slice: plain values."""


@runtime_checkable
class JobFactory(Protocol):
    """Made once per worker, so that it can keep what all jobs need."""

    def open(self, job: int, kind: str, rank: int, size: int, meeting: str) -> JobTrainer:
        """A job before its first iteration; members of a gang wait for each other."""


AHEAD = 1
"""Iterations that one may have done more than another."""

Outcome = ShareSeconds | str
"""Where the time went, or why it could not be done."""


class StageTurns:
    """Of the jobs of one slice."""

    def __init__(self, members: int) -> None:
        shared = members > 1
        self.fetching: AbstractContextManager[object] = Lock() if shared else nullcontext()
        self.computing: AbstractContextManager[object] = Lock() if shared else nullcontext()
        self._done = [0.0] * members
        self._changed = Condition()

    def wait(self, member: int) -> None:
        """Until nobody is too far behind."""
        with self._changed:
            self._changed.wait_for(lambda: self._done[member] - min(self._done) <= AHEAD)

    def note(self, member: int, iterations: float) -> None:
        """So many it has done; infinitely many once it is over."""
        with self._changed:
            self._done[member] = iterations
            self._changed.notify_all()


def interleave(works: Sequence[tuple[JobTrainer, int]]) -> list[Outcome]:
    """So many iterations of each. What goes wrong with one is its own affair, also if it wants to exit."""
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
"""Jobs that stay in memory: those that were trained last."""


@dataclass(slots=True)
class LoadedJob:
    """A job in memory."""

    work: JobTrainer
    holds: str
    """The digest of what it is now; nothing if that is unknown."""
    place: tuple[int, int, str]
    """Rank, size and meeting of its gang."""


@dataclass(slots=True)
class RunningShare:
    """A share of a slice on its way."""

    share: JobShare
    took: JobTimes | None = None
    """Once it is known."""
    held: LoadedJob | None = None
    restore_s: float = 0.0

    @property
    def make(self) -> CheckpointInfo:
        return self.share.order.make


class JobWorker:
    """Carries out slices, one after the other."""

    def __init__(self, site: JobFactory, store: Store) -> None:
        self._site, self._store = site, store
        self._held: OrderedDict[int, LoadedJob] = OrderedDict()

    def answer(self, line: bytes) -> bytes:
        return self.carry_out(parse_slice(line)).line()

    def carry_out(self, order: JobAssignment) -> JobAnswer:
        """Whatever goes wrong is part of the answer."""
        begun = [self._begin(share) for share in order.shares]
        ready = [(each, each.held) for each in begun if each.took is None and each.held is not None]
        outcomes = interleave([(held.work, each.make.steps) for each, held in ready])
        for (each, held), outcome in zip(ready, outcomes, strict=True):
            each.took = self._finish(each, held, outcome)
        return JobAnswer(
            tuple(each.took or JobTimes(each.make.digest, why="nothing came of it") for each in begun)
        )

    def _begin(self, share: JobShare) -> RunningShare:
        begun = RunningShare(share)
        began = perf_counter()
        try:
            begun.took = self._there(share.order.make)
            if begun.took is None:
                begun.held = self._be_source(share)
                begun.held.work.tell(share.room, share.at_s)
        except NotWritten as error:
            begun.took = self._without_room(share.order.make, error)
        except LostCheckpoint as error:
            begun.took = self._failed(share.order.make, str(error))._replace(lost=True)
        except Exception:
            begun.took = self._failed(share.order.make, traceback.format_exc())
        begun.restore_s = perf_counter() - began
        return begun

    def _there(self, make: CheckpointInfo) -> JobTimes | None:
        """What an earlier order left. A damaged one is as good as none."""
        try:
            kept = self._store.read(make).answer
        except DamagedCheckpoint:
            return None
        return JobTimes(make.digest, metric=kept.metric, again=True)

    def _be_source(self, share: JobShare) -> LoadedJob:
        """From memory, from its checkpoint, or made again from one before that."""
        order, place = share.order, (share.rank, share.size, share.meeting)
        wanted = order.source.digest if order.source else ""
        held = self._held.pop(order.make.trial, None)
        if held is None or held.place != place or held.holds != wanted or not wanted:
            work = self._site.open(order.make.trial, share.kind, share.rank, share.size, share.meeting)
            held = LoadedJob(work, "", place)
            if order.source is not None:
                self._load(held.work, share)
        held.holds = ""
        self._held[order.make.trial] = held
        while len(self._held) > KEPT:
            self._held.popitem(last=False)
        return held

    def _load(self, work: JobTrainer, share: JobShare) -> None:
        order = share.order
        start = start_of(order, self._store)
        if start.content is not None:
            work.load(start.content)
        path = zip((order.source, *order.earlier), share.told, strict=False)
        told = {made.digest: told for made, told in path if made}
        for made in start.again:
            work.tell(*told.get(made.digest, (0, 0.0)))
            (outcome,) = interleave([(work, made.steps)])
            if isinstance(outcome, str):
                raise RuntimeError(f"could not be made again: {outcome}")
            work.notes()  # which were kept the first time

    def _finish(self, begun: RunningShare, held: LoadedJob, outcome: ShareSeconds | str) -> JobTimes:
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
        return JobTimes(begun.make.digest, seconds, metric, notes=notes)

    def _without_room(self, make: CheckpointInfo, error: NotWritten) -> JobTimes:
        self._held.pop(make.trial, None)
        return JobTimes(make.digest, why=str(error), no_room=True)

    def _failed(self, make: CheckpointInfo, why: str) -> JobTimes:
        self._held.pop(make.trial, None)
        return JobTimes(make.digest, why=why)
