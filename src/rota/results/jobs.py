"""What a result has to know of its jobs; a workload knows it, and so does a run that was read back."""

from dataclasses import dataclass, fields
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from rota.core.arrays import Floats, Ints


class Jobs(Protocol):
    """Columns over the jobs, in the order that a timeline counts them in: by submit time."""

    @property
    def name(self) -> str: ...
    @property
    def ids(self) -> tuple[str, ...]: ...
    @property
    def model(self) -> Ints: ...
    @property
    def models(self) -> tuple[str, ...]: ...
    @property
    def gpus(self) -> Floats: ...
    @property
    def submit_s(self) -> Floats: ...
    @property
    def iterations(self) -> Floats: ...
    @property
    def iteration_s(self) -> Floats: ...


@dataclass(frozen=True, slots=True)
class JobColumns:
    """The jobs of a run, as far as results need them."""

    name: str
    ids: tuple[str, ...]
    model: Ints
    models: tuple[str, ...]
    gpus: Floats
    submit_s: Floats
    iterations: Floats
    iteration_s: Floats

    def __len__(self) -> int:
        return len(self.ids)

    @classmethod
    def of(cls, jobs: Jobs) -> "JobColumns":
        """Return what is to be known of these jobs, and no more."""
        return cls(**{column.name: getattr(jobs, column.name) for column in fields(cls)})


@dataclass(frozen=True, slots=True)
class JobTimes:
    """What each job lived through."""

    submit_s: Floats
    first_start_s: Floats
    end_s: Floats
    jct_s: Floats
    """From submit to end."""
    waiting_s: Floats
    """All the time without slots, before the first start and after each pause."""
    running_s: Floats
    """All the time on slots, start-up included."""
    preemptions: Ints
    """Pauses after which the job had to wait."""
    migrations: Ints
    """Moves to other slots without a wait."""
    fairness: Floats
    """Finish-time fairness: JCT ÷ what the job would take alone on its fair share; above 1 is unfair."""
    failed: Ints
    """1 for a job that was given up, as its attempts were used up; its JCT is until then."""

    @property
    def finished(self) -> NDArray[np.bool_]:
        """Which jobs have finished; the others have failed."""
        return np.asarray(self.failed == 0, np.bool_)
