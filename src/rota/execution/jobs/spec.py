"""The specification of a run of jobs: the jobs, the cluster, and the opportunistic job."""

from collections.abc import Sequence
from dataclasses import dataclass

from rota.core.arrays import Floats
from rota.core.cluster import Cluster, Preferences
from rota.core.durations import KnownDurations
from rota.execution.jobs.ledger import JobLedger

ENDLESS = 1 << 50
"""Number of iterations of an opportunistic job, which ends by time."""


@dataclass(frozen=True, slots=True)
class OpportunisticJob:
    """A job with slots of its own until a given time, which also uses idle slots."""

    kind: str
    home: tuple[int, ...]
    """Slots of its own, numbered as the workers."""
    until_s: float
    """The time at which it ends, in seconds."""
    most: int = 8
    """Maximal number of slots; it uses a power of two."""

    def sizes(self, slots: int) -> list[int]:
        """Return the numbers of slots that it may get, out of so many."""
        sizes = [len(self.home)]
        while 2 * sizes[-1] <= min(self.most, slots):
            sizes.append(2 * sizes[-1])
        return sizes

    def slots(self, idle: Sequence[int]) -> tuple[int, ...]:
        """Return its own slots and some of the idle ones."""
        there = (*self.home, *idle)[: max(self.most, len(self.home))]
        size = max(len(self.home), 1 << (len(there).bit_length() - 1))
        return there[:size]


@dataclass(frozen=True, slots=True)
class JobsSpec:
    """The jobs and the cluster of a run."""

    ids: Sequence[str]
    kinds: Sequence[str]
    iterations: Sequence[int]
    submit_s: Sequence[float]
    table: Floats
    """The jobs as the columns of `rota.core.columns`."""
    cluster: Cluster
    places: Sequence[int]
    """Slot of the cluster → slot of the workers."""
    nodes: Sequence[int]
    """Slot of the workers → its node, including those of the opportunistic job."""
    slice_s: float = 0.25
    """Approximate seconds of an assignment, after which slots can be reassigned."""
    attempts: int = 3
    """Number of failures after which a job is abandoned."""
    seed: int = 0
    opportunistic: OpportunisticJob | None = None
    """The opportunistic job; its number follows those of the jobs."""
    config: str = ""
    """The digest of the configuration."""
    known: KnownDurations | None = None
    """What the scheduler knows of durations; None: everything."""
    preferences: Preferences | None = None
    """The nodes that jobs prefer; None: those listed first."""

    def ledger(self, run: str) -> JobLedger:
        """Return an empty ledger; `run` is the name of the run."""
        return JobLedger(run, self.all_kinds, self.all_iterations, self.attempts)

    @property
    def all_kinds(self) -> list[str]:
        """The kind of each job, then that of the opportunistic job."""
        return [*self.kinds, *([self.opportunistic.kind] if self.opportunistic else [])]

    @property
    def all_iterations(self) -> list[int]:
        """The iterations of each job, then those of the opportunistic job."""
        return [*self.iterations, *([ENDLESS] if self.opportunistic else [])]
