"""Jobs that had ended before a trace begins: what a scheduler may know of durations from the start."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from rota.core.arrays import Floats

if TYPE_CHECKING:
    from rota.workload.jobs import Workload


@dataclass(frozen=True, slots=True, eq=False)
class JobHistory:
    """Jobs that had ended: the group, GPUs and seconds of work of each."""

    group: NDArray[np.int64]
    groups: tuple[str, ...]
    """Names of the numbers in `group`."""
    gpus: Floats
    solo_s: Floats

    def __len__(self) -> int:
        return len(self.gpus)

    @property
    def digest(self) -> str:
        """A digest of all of it."""
        columns = (self.group, self.gpus, self.solo_s)
        return hashlib.sha256(repr(self.groups).encode() + b"".join(c.tobytes() for c in columns)).hexdigest()

    def numbered(
        self, groups: Sequence[str], group: NDArray[np.int64], slots: Floats, number: Floats, per_gpu: int
    ) -> Floats:
        """Return a row of numbers of group and gang size, and one of seconds of work.

        The jobs of a trace, in groups of these names, have these slots and numbers; what none of them has
        gets the number −1.
        """
        known = {
            (groups[int(each)], size): which
            for each, size, which in zip(group.tolist(), slots.tolist(), number.tolist(), strict=True)
        }
        own = np.ceil(self.gpus * per_gpu - 1e-9).tolist()
        names = [self.groups[each] for each in self.group.tolist()]
        found = [known.get(key, -1.0) for key in zip(names, own, strict=True)]
        return np.array([found, self.solo_s]).reshape(2, -1)


def with_history(jobs: "Workload", ended: "Workload") -> "Workload":
    """Return the same jobs with others that had ended before."""
    return replace(jobs, history=JobHistory(ended.group, ended.groups, ended.gpus, ended.solo_s))
