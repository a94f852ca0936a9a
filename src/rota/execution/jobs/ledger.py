"""How far each job is, and which checkpoints there are: what follows from the slices that were done."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from rota.execution.checkpoints import Name
from rota.execution.orders import Made, Order, made

Told = tuple[int, float]
"""What a slice was told: how many slots it is lent, and the time of the run."""


@dataclass(slots=True)
class Standing:
    """Where a job stands."""

    left: int
    """Iterations that are still to be done."""
    newest: Made | None = None
    """What it goes on from."""
    before: Made | None = None
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
    past: dict[str, tuple[Made | None, Told]] | None = None
    """Digest of what a slice made → what it was made from, and told; only kept if it is asked for."""
    jobs: list[Standing] = field(init=False)

    def __post_init__(self) -> None:
        self.jobs = [Standing(count) for count in self.iterations]

    def order(self, job: int, iterations: int, over: Name | None = None) -> Order:
        """What workers have to do for the next iterations of a job."""
        stands = self.jobs[job]
        earlier = (stands.before,) if stands.newest else ()
        return Order(self._make(job, iterations), stands.newest, earlier, over)

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

    def _make(self, job: int, iterations: int) -> Made:
        stands, kind = self.jobs[job], {"kind": self.kinds[job]}
        return made(job, stands.version + 1, iterations, kind, (), stands.newest, self.run)
