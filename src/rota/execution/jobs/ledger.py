"""The progress, assignments and checkpoints of jobs."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from rota.execution.assignments import Assignment, CheckpointInfo, checkpoint_info
from rota.execution.checkpoints import Name
from rota.execution.jobs.assignments import (
    CompletedAssignment,
    JobAnswer,
    JobProgress,
    JobShare,
    ShareResult,
    ShareSeconds,
)


@dataclass(slots=True)
class AssignmentInFlight:
    """An assignment that not all slots have answered."""

    shares: tuple[JobShare, ...]
    """The shares of the first slot: one per job."""
    slots: tuple[int, ...]
    began_s: float
    due_s: float
    """The expected time of its end in seconds."""
    fresh: bool = False
    """Whether a job in it has just started or migrated, or its gang was paused and forms again."""
    died: str = ""
    """Why a worker died."""
    blameless: bool = False
    """Whether a node is gone, or it is unknown which job ended the worker."""
    answers: dict[int, JobAnswer] = field(default_factory=dict)
    awaited: set[int] = field(init=False)

    def __post_init__(self) -> None:
        self.awaited = set(self.slots)

    @property
    def jobs(self) -> tuple[int, ...]:
        """The numbers of its jobs."""
        return tuple(share.order.make.trial for share in self.shares)

    def done_of(self, job: int, at_s: float) -> float:
        """Return the expected iterations of a job by then; the last one counts once it is answered."""
        steps = sum(share.order.make.steps for share in self.shares if share.order.make.trial == job)
        part = (at_s - self.began_s) / (self.due_s - self.began_s)
        return min(part * steps, steps - 1.0) if steps else 0.0

    def takes(self, slot: int, answer: JobAnswer) -> bool:
        """Return whether this is an answer to it."""
        asked = [share.order.make.digest for share in self.shares]
        return slot in self.awaited and [part.digest for part in answer.parts] == asked

    def answered(self, slot: int, answer: JobAnswer) -> None:
        """Record the answer of a slot."""
        self.answers[slot] = answer
        self.awaited.discard(slot)

    def lost(self, slot: int, why: str = "") -> None:
        """Record that the worker of a slot died, or its node, if no reason is given.

        Of several jobs that shared a worker any may have ended it, so none is blamed.
        """
        self.awaited.discard(slot)
        self.died = self.died or why
        self.blameless = self.blameless or not why or len(self.shares) > 1

    def complete(self, at_s: float) -> CompletedAssignment:
        """Return the result, once no slot is awaited."""
        progress = tuple(self._progress(number, share) for number, share in enumerate(self.shares))
        room = self.shares[0].room
        return CompletedAssignment(self.began_s, at_s, self.slots, progress, self.blameless, self.fresh, room)

    def no_room(self) -> str:
        """Return the message about a full disk, if a worker met one."""
        results = (result for answer in self.answers.values() for result in answer.parts)
        return next((result.why for result in results if result.no_room), "")

    def lost_sources(self) -> list[CheckpointInfo]:
        """Return the sources that cannot be read at all."""
        answers = list(self.answers.values())
        return [
            share.order.source
            for number, share in enumerate(self.shares)
            if share.order.source and any(answer.parts[number].lost for answer in answers)
        ]

    def _progress(self, number: int, share: JobShare) -> JobProgress:
        """Return the progress of a job: that of its slowest member, if all members are done."""
        results = [answer.parts[number] for _, answer in sorted(self.answers.items())]
        why = next((result.why for result in results if result.why), "")
        if len(results) < len(self.slots):
            why = self.died or why or "its node is gone"
        job, steps = share.order.make.trial, share.order.make.steps
        if why:
            return JobProgress(job, 0, ShareSeconds(), float("nan"), why)
        slowest = max(results, key=_whole_s)
        return JobProgress(job, steps, slowest.seconds, results[0].metric, "", results[0].notes)


def _whole_s(result: ShareResult) -> float:
    return sum(result.seconds)


AssignmentContext = tuple[int, float]
"""What a job is told before an assignment: the number of lent slots, and the time in seconds."""


@dataclass(slots=True)
class JobStanding:
    """The progress and checkpoints of a job."""

    left: int
    """Number of remaining iterations."""
    newest: CheckpointInfo | None = None
    """The checkpoint that it continues from."""
    before: CheckpointInfo | None = None
    """The checkpoint that the newest was made from."""
    context: AssignmentContext = (0, 0.0)
    """The context of the assignment that made the newest."""
    failures: int = 0
    abandoned: bool = False

    @property
    def version(self) -> int:
        """Version of the newest checkpoint; 0 before the first."""
        return self.newest.version if self.newest else 0

    @property
    def over(self) -> bool:
        """Whether the job is done or abandoned."""
        return self.left == 0 or self.abandoned


@dataclass(slots=True)
class JobLedger:
    """The progress and checkpoints of all jobs; the same after a resume as before."""

    run: str
    """The name that distinguishes the checkpoints of this run from those of others."""
    kinds: Sequence[str]
    iterations: Sequence[int]
    attempts: int = 3
    """Number of failures after which a job is abandoned."""
    unused: list[Name] = field(default_factory=list)
    """Checkpoints that are no longer needed."""
    past: dict[str, tuple[CheckpointInfo | None, AssignmentContext]] | None = None
    """Digest of each checkpoint → its source and context; only recorded if it is not None."""
    jobs: list[JobStanding] = field(init=False)

    def __post_init__(self) -> None:
        self.jobs = [JobStanding(count) for count in self.iterations]

    def next_assignment(self, job: int, iterations: int, over: Name | None = None) -> Assignment:
        """Return the assignment for the next iterations of a job."""
        standing = self.jobs[job]
        earlier = (standing.before,) if standing.newest else ()
        return Assignment(self._make(job, iterations), standing.newest, earlier, over)

    def did(self, job: int, iterations: int, context: AssignmentContext = (0, 0.0)) -> None:
        """Record iterations, done with this context."""
        standing = self.jobs[job]
        make = self._make(job, iterations)
        if self.past is not None:
            self.past[make.digest] = standing.newest, context
        freed = standing.before
        standing.before, standing.newest = standing.newest, make
        standing.left -= iterations
        standing.context = context
        if freed is not None:
            self.unused.append((freed.trial, freed.version))

    def failed(self, job: int) -> None:
        """Record a failure of a job, which is abandoned after too many."""
        standing = self.jobs[job]
        standing.failures += 1
        standing.abandoned = standing.failures >= self.attempts

    def needed(self) -> set[Name]:
        """Return the checkpoints that jobs continue from, or may have to."""
        made = (each for standing in self.jobs for each in (standing.newest, standing.before) if each)
        return {(each.trial, each.version) for each in made}

    def is_past(self, name: Name) -> bool:
        """Return whether a checkpoint is not needed and never will be; newer ones may be reused."""
        job, version = name
        return job < len(self.jobs) and version < self.jobs[job].version - 1

    def _make(self, job: int, iterations: int) -> CheckpointInfo:
        standing, kind = self.jobs[job], {"kind": self.kinds[job]}
        return checkpoint_info(job, standing.version + 1, iterations, kind, (), standing.newest, self.run)
