"""How far each job is, and which checkpoints there are: what follows from the slices that were done."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from rota.execution.orders import Made, Order, made

Name = tuple[int, int]
"""Of a checkpoint: job and version."""


@dataclass(slots=True)
class Standing:
    """Where a job stands."""

    left: int
    """Iterations that are still to be done."""
    newest: Made | None = None
    """What it goes on from."""
    before: Made | None = None
    """What that was made from."""
    told: tuple[int, float] = (0, 0.0)
    """Room and time of the slice that made the newest."""
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
    jobs: list[Standing] = field(init=False)

    def __post_init__(self) -> None:
        self.jobs = [Standing(count) for count in self.iterations]

    def order(self, job: int, iterations: int, over: Name | None = None) -> Order:
        """What workers have to do for the next iterations of a job."""
        stands = self.jobs[job]
        return Order(self._make(job, iterations), stands.newest, stands.before, over)

    def did(self, job: int, iterations: int, told: tuple[int, float] = (0, 0.0)) -> None:
        """A slice was done, with this room and at this time."""
        stands = self.jobs[job]
        make = self._make(job, iterations)
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

    def used(self) -> set[Name]:
        """The checkpoints that jobs go on from, or may have to, and those that are being made."""
        found = set()
        for job, stands in enumerate(self.jobs):
            found |= {(job, stands.version + more) for more in (-1, 0, 1)}
        return found

    def _make(self, job: int, iterations: int) -> Made:
        stands, kind = self.jobs[job], {"kind": self.kinds[job]}
        return made(job, stands.version + 1, iterations, kind, (), stands.newest, self.run)
