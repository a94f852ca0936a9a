"""How far each job is, which slices are under way, and which checkpoints there are."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from rota.execution.assignments import Assignment, CheckpointInfo, made
from rota.execution.checkpoints import Name
from rota.execution.jobs.assignments import (
    CompletedAssignment,
    JobAnswer,
    JobProgress,
    JobShare,
    JobTimes,
    ShareSeconds,
)


@dataclass(slots=True)
class AssignmentInFlight:
    """A slice, from its orders until all its slots have answered."""

    shares: tuple[JobShare, ...]
    """As the first slot was given them: one per job."""
    slots: tuple[int, ...]
    began_s: float
    due_s: float
    """When it should land, by what is known of such units."""
    fresh: bool = False
    """Somebody in it has just started or moved, or was paused and meets anew."""
    died: str = ""
    """Why a worker is gone."""
    blameless: bool = False
    """The node is gone, or nobody knows whose fault it is."""
    answers: dict[int, JobAnswer] = field(default_factory=dict)
    awaited: set[int] = field(init=False)

    def __post_init__(self) -> None:
        self.awaited = set(self.slots)

    @property
    def jobs(self) -> tuple[int, ...]:
        return tuple(share.order.make.trial for share in self.shares)

    def done_of(self, job: int, at_s: float) -> float:
        """Iterations that it should have done of a job by then; the last one counts when it has landed."""
        steps = sum(share.order.make.steps for share in self.shares if share.order.make.trial == job)
        part = (at_s - self.began_s) / (self.due_s - self.began_s)
        return min(part * steps, steps - 1.0) if steps else 0.0

    def takes(self, slot: int, answer: JobAnswer) -> bool:
        """Whether this answers it."""
        asked = [share.order.make.digest for share in self.shares]
        return slot in self.awaited and [part.digest for part in answer.parts] == asked

    def answered(self, slot: int, answer: JobAnswer) -> None:
        self.answers[slot] = answer
        self.awaited.discard(slot)

    def lost(self, slot: int, why: str = "") -> None:
        """The worker of a slot is gone, or the whole node if nothing is said about why.

        Of several jobs that shared a worker any may have ended it, so none is blamed.
        """
        self.awaited.discard(slot)
        self.died = self.died or why
        self.blameless = self.blameless or not why or len(self.shares) > 1

    def land(self, at_s: float) -> CompletedAssignment:
        """What came of it, once nobody is awaited any more."""
        parts = tuple(self._part(number, share) for number, share in enumerate(self.shares))
        room = self.shares[0].room
        return CompletedAssignment(self.began_s, at_s, self.slots, parts, self.blameless, self.fresh, room)

    def no_room(self) -> str:
        """What to do about a full disk, if that is what somebody met with."""
        tooks = (took for answer in self.answers.values() for took in answer.parts)
        return next((took.why for took in tooks if took.no_room), "")

    def lost_sources(self) -> list[CheckpointInfo]:
        """What could not be gone on from, because nothing of it can be read."""
        answers = list(self.answers.values())
        return [
            share.order.source
            for number, share in enumerate(self.shares)
            if share.order.source and any(answer.parts[number].lost for answer in answers)
        ]

    def _part(self, number: int, share: JobShare) -> JobProgress:
        """By the member that took longest; it is done if all members say so."""
        tooks = [answer.parts[number] for _, answer in sorted(self.answers.items())]
        why = next((took.why for took in tooks if took.why), "")
        if len(tooks) < len(self.slots):
            why = self.died or why or "its node is gone"
        job, steps = share.order.make.trial, share.order.make.steps
        if why:
            return JobProgress(job, 0, ShareSeconds(), float("nan"), why)
        slowest = max(tooks, key=_whole_s)
        return JobProgress(job, steps, slowest.seconds, tooks[0].metric, "", tooks[0].notes)


def _whole_s(took: JobTimes) -> float:
    return sum(took.seconds)


Told = tuple[int, float]
"""What a slice was told: how many slots it is lent, and the time of the run."""


@dataclass(slots=True)
class JobStanding:
    """Where a job stands."""

    left: int
    """Iterations that are still to be done."""
    newest: CheckpointInfo | None = None
    """What it goes on from."""
    before: CheckpointInfo | None = None
    """What that was made from."""
    told: Told = (0, 0.0)
    """What the slice was told that made the newest."""
    failures: int = 0
    given_up: bool = False

    @property
    def version(self) -> int:
        return self.newest.version if self.newest else 0

    @property
    def over(self) -> bool:
        return self.left == 0 or self.given_up


@dataclass(slots=True)
class JobLedger:
    """The books of a run. They are the same after the journal was read as they were when it was written."""

    run: str
    """Whatever tells the checkpoints of this run from those of others."""
    kinds: Sequence[str]
    iterations: Sequence[int]
    attempts: int = 3
    """A job that failed so often is given up."""
    unused: list[Name] = field(default_factory=list)
    """Checkpoints that nobody needs any more."""
    past: dict[str, tuple[CheckpointInfo | None, Told]] | None = None
    """Digest of what a slice made → what it was made from, and told; only kept if it is asked for."""
    jobs: list[JobStanding] = field(init=False)

    def __post_init__(self) -> None:
        self.jobs = [JobStanding(count) for count in self.iterations]

    def order(self, job: int, iterations: int, over: Name | None = None) -> Assignment:
        """What workers have to do for the next iterations of a job."""
        stands = self.jobs[job]
        earlier = (stands.before,) if stands.newest else ()
        return Assignment(self._make(job, iterations), stands.newest, earlier, over)

    def did(self, job: int, iterations: int, told: Told = (0, 0.0)) -> None:
        """A slice was done, and had been told this."""
        stands = self.jobs[job]
        make = self._make(job, iterations)
        if self.past is not None:
            self.past[make.digest] = stands.newest, told
        freed = stands.before
        stands.before, stands.newest = stands.newest, make
        stands.left -= iterations
        stands.told = told
        if freed is not None:
            self.unused.append((freed.trial, freed.version))

    def failed(self, job: int) -> None:
        stands = self.jobs[job]
        stands.failures += 1
        stands.given_up = stands.failures >= self.attempts

    def needed(self) -> set[Name]:
        """The checkpoints that jobs go on from, or may have to."""
        made = (each for stands in self.jobs for each in (stands.newest, stands.before) if each)
        return {(each.trial, each.version) for each in made}

    def is_past(self, name: Name) -> bool:
        """Whether a checkpoint is not needed, and will not be; newer ones need not be made again."""
        job, version = name
        return job < len(self.jobs) and version < self.jobs[job].version - 1

    def _make(self, job: int, iterations: int) -> CheckpointInfo:
        stands, kind = self.jobs[job], {"kind": self.kinds[job]}
        return made(job, stands.version + 1, iterations, kind, (), stands.newest, self.run)
