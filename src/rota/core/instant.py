"""An instant of a real run: what happened at one time."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray


class Instant:
    """Everything that happened at one time, as a real run says it."""

    __slots__ = ("arrivals", "at_s", "ends", "finished", "first_job", "joined", "lost", "measured")

    def __init__(
        self,
        at_s: float,
        finished: NDArray[np.int32],
        ends: int = 0,
        first_job: int = 0,
        arrivals: int = 0,
        joined: Sequence[int] = (),
        lost: Sequence[int] = (),
        measured: Mapping[int, float] | None = None,
    ) -> None:
        self.at_s = at_s
        self.finished = finished
        """Rows of the jobs that ended; only the first `ends` are valid."""
        self.ends = ends
        self.first_job = first_job
        """Index of the first job that arrived; `arrivals` jobs did, from this one on."""
        self.arrivals = arrivals
        self.joined = joined
        self.lost = lost
        self.measured = measured
        """Row → iterations left, where they are measured and not computed from step times."""
