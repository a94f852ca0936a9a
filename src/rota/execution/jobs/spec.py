"""What a run of jobs is: the jobs, the cluster, and the opportunistic job."""

from collections.abc import Sequence
from dataclasses import dataclass

from rota.core.arrays import Floats
from rota.core.cluster import Cluster, Preferences
from rota.execution.jobs.ledger import JobLedger

ENDLESS = 1 << 50
"""Iterations of a resident: its time ends it."""


@dataclass(frozen=True, slots=True)
class OpportunisticJob:
    """A training that has slots of its own for as long as it lasts, and those that are idle besides."""

    kind: str
    home: tuple[int, ...]
    """Its own slots, of the workers."""
    until_s: float
    """Its time is over then."""
    most: int = 8
    """Slots that it can make use of; so many of them are used as are a power of two."""

    def sizes(self, slots: int) -> list[int]:
        """How many it may be given, if there are so many in all."""
        sizes = [len(self.home)]
        while 2 * sizes[-1] <= min(self.most, slots):
            sizes.append(2 * sizes[-1])
        return sizes

    def slots(self, idle: Sequence[int]) -> tuple[int, ...]:
        """Its own, and some that are idle."""
        there = (*self.home, *idle)[: max(self.most, len(self.home))]
        size = max(len(self.home), 1 << (len(there).bit_length() - 1))
        return there[:size]


@dataclass(frozen=True, slots=True)
class JobsSpec:
    """Jobs and machines."""

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
    """Slot of the workers → its node; those of a resident have one, too."""
    slice_s: float = 0.25
    """About how long a unit goes on before it can be given something else to do."""
    attempts: int = 3
    """A job that failed so often is given up."""
    seed: int = 0
    resident: OpportunisticJob | None = None
    """Its number is the one after those of the jobs."""
    config: str = ""
    """The digest of the configuration that says all this."""
    preferences: Preferences | None = None
    """Which nodes jobs prefer; those that are listed first if it does not say."""

    def ledger(self, run: str) -> JobLedger:
        return JobLedger(run, self.all_kinds, self.all_iterations, self.attempts)

    @property
    def all_kinds(self) -> list[str]:
        return [*self.kinds, *([self.resident.kind] if self.resident else [])]

    @property
    def all_iterations(self) -> list[int]:
        return [*self.iterations, *([ENDLESS] if self.resident else [])]
