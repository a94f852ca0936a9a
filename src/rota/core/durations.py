"""What schedulers know of durations: all, nothing, with an error, or what the jobs that ended predict.

A job has the iterations that it takes (`ITERATIONS`) and those that policies expect (`ESTIMATE`). Where the
two are equal, what is left is known exactly. Else it is what is left of the estimate; a job that outlives
that is taken to last twice as long, again and again.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import blake2b
from importlib import import_module
from importlib.util import find_spec
from statistics import NormalDist
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from rota.core.arrays import Floats
from rota.core.columns import ESTIMATE, GROUP, ITERATION_S, ITERATIONS, REMAINING
from rota.core.compiled import kernel
from rota.core.errors import ConfigError, unknown
from rota.core.memory import engine_at, events_of, ints
from rota.core.timeline import EventKind

Knows = Literal["exact", "none", "noisy", "predicted"]
DurationUse = Literal["needed", "optional", "unused"]
FINISHED = int(EventKind.FINISHED)

FIRST_S, FIRST_JOBS = 3600.0, 1.0  # what is expected before any job has ended, and the jobs that it counts as
OTHERS = 2.0  # jobs that the mean of all counts as, for those of one group and gang size
LEAST_S = 1.0  # shortest estimate

Predictor = Callable[[Floats, NDArray[np.int32], slice, Floats], Floats]
"""The table of all jobs, those that ended, those to come, the history → seconds that these are to take."""
NO_HISTORY = np.zeros((2, 0))


@dataclass(frozen=True, slots=True)
class Durations:
    """What schedulers know of the durations of jobs; `durations = "none"` sets `known` only.

    >>> import rota
    >>> jobs, cluster = rota.synthetic_trace(jobs=200, gpus=16), rota.Cluster.uniform(nodes=2, gpus=8)
    >>> some = rota.Durations("noisy", r2=0.5)
    >>> exact, noisy = (rota.simulate(jobs, cluster, "srtf", durations=known) for known in ("exact", some))
    >>> exact.knows, noisy.knows, exact.metrics.avg_jct_s < noisy.metrics.avg_jct_s
    ('exact', 'noisy', True)
    """

    SHORT: ClassVar[str] = "known"

    known: Knows = "exact"
    """`exact`; `none`: schedulers that need durations then still know them, as a reference; `noisy`: with an
    error of its own for each job, the same under every scheduler; `predicted`, from the jobs that ended."""
    r2: float = 0.5
    """Share of the variance of the logarithms of durations that noisy ones explain: 1 has no error."""
    seed: int = 0
    """Seed of the errors."""
    predictor: Literal["groups", "trees"] = "groups"
    """What predicts: means of the logarithms by group and gang size, or boosted trees of scikit-learn."""

    def __post_init__(self) -> None:
        if not 0.0 <= self.r2 <= 1.0:
            raise ConfigError(f"durations: r2 is {self.r2}; it must be between 0 and 1")
        if not 0 <= self.seed < 2**63:
            raise ConfigError(f"durations: seed is {self.seed}; it must be 0 or more, and below 2**63")
        if self.known == "predicted" and self.predictor == "trees" and find_spec("sklearn") is None:
            raise ConfigError(
                "durations: predictor trees needs scikit-learn, which is not installed; "
                "install it (pip install scikit-learn), or choose the predictor groups"
            )

    def shown_to(self, use: DurationUse) -> Knows:
        """Return what a policy knows that uses durations so."""
        if use == "unused":
            return "none"
        return "exact" if use == "needed" and self.known == "none" else self.known

    def put_into(
        self, table: Floats, ids: tuple[str, ...], use: DurationUse, history: Floats = NO_HISTORY
    ) -> "KnownDurations":
        """Write the estimates for a policy into the table of jobs; return what it knows, and who predicts."""
        knows = self.shown_to(use)
        if knows == "noisy":
            table[ESTIMATE] = np.maximum(
                table[ITERATIONS] * self._errors(table, ids), LEAST_S / table[ITERATION_S]
            )
        if knows != "predicted":
            return KnownDurations(knows, history=history)
        table[ESTIMATE] = FIRST_S / table[ITERATION_S]
        if self.predictor == "trees":
            # What learns is a layer above this one, so it is imported at run time.
            return KnownDurations(knows, import_module("rota.learning.durations").by_trees, 1.2, history)
        return KnownDurations(knows, by_groups, 1.05, history)

    def _errors(self, table: Floats, ids: tuple[str, ...]) -> Floats:
        """Return the factor by which each duration is off, drawn from the name of the job and the seed."""
        spread = float(np.std(np.log(np.maximum(table[ITERATIONS] * table[ITERATION_S], LEAST_S))))
        sigma, normal = spread * np.sqrt(1.0 - self.r2), NormalDist()
        key = self.seed.to_bytes(8, "little")
        drawn = [
            int.from_bytes(blake2b(name.encode(), digest_size=8, key=key).digest(), "little") for name in ids
        ]
        return np.asarray(np.exp(sigma * np.array([normal.inv_cdf((each + 0.5) / 2**64) for each in drawn])))


EXACT_DURATIONS = Durations()


def durations_of(given: Any) -> Durations:
    """Return what schedulers know, given as such or by its name. Raises ConfigError if it is neither."""
    if isinstance(given, Durations):
        return given
    if given not in KNOWS:
        what = unknown("durations", str(given), KNOWS)
        raise ConfigError(f"{what}; or give a rota.Durations")
    return Durations(given)


KNOWS: tuple[Knows, ...] = ("exact", "none", "noisy", "predicted")
"""All that can be known; the numbers of these are in the record of an engine."""
EXACT, NONE, NOISY, PREDICTED = range(4)


@dataclass(frozen=True, slots=True)
class KnownDurations:
    """What the policy of one engine knows, and who predicts durations."""

    knows: Knows
    predictor: Predictor | None = None
    growth: float = 1.0
    """Factor by which the number of ended jobs grows until predictions are made anew."""
    history: Floats = field(default_factory=lambda: NO_HISTORY)
    """Jobs that had ended before: a row of numbers of group and gang size (−1 for others), one of seconds."""


def by_groups(table: Floats, ended: NDArray[np.int32], coming: slice, history: Floats = NO_HISTORY) -> Floats:
    """Predict the geometric mean of a job's group and gang size, drawn towards that of all jobs."""
    logs = np.concatenate([log_work(table, ended), np.log(np.maximum(history[1], LEAST_S))])
    of_all = (FIRST_JOBS * np.log(FIRST_S) + logs.sum()) / (FIRST_JOBS + len(logs))
    groups = table[GROUP].astype(np.int64)
    size = int(groups.max(initial=0)) + 1
    of = np.concatenate([groups[ended], np.where(history[0] < 0, size, history[0]).astype(np.int64)])
    counts = np.bincount(of, minlength=size)[:size]
    sums = np.bincount(of, weights=logs, minlength=size)[:size]
    means = (sums + OTHERS * of_all) / (counts + OTHERS)
    return np.asarray(np.exp(means[groups[coming]]))


def log_work(table: Floats, jobs: NDArray[np.int32]) -> Floats:
    """Return the logarithm of the seconds of work of jobs."""
    return np.asarray(np.log(np.maximum(table[ITERATIONS, jobs] * table[ITERATION_S, jobs], LEAST_S)))


def predict(table: Floats, ended: NDArray[np.int32], first: int, known: KnownDurations) -> int:
    """Write what is predicted of the jobs from a number on; return how many must have ended for the next."""
    assert known.predictor is not None
    coming = slice(first, table.shape[1])
    if first < table.shape[1]:
        seconds = np.maximum(known.predictor(table, ended, coming, known.history), LEAST_S)
        table[ESTIMATE, coming] = seconds / table[ITERATION_S, coming]
    return max(len(ended) + 1, int(np.ceil(known.growth * len(ended))))


@kernel
def known_left(columns, row):
    """Return the iterations that a job has left, as far as the policy knows."""
    estimate, takes = columns[ESTIMATE, row], columns[ITERATIONS, row]
    if estimate == takes:
        return columns[REMAINING, row]
    done = takes - columns[REMAINING, row]
    while estimate <= done:
        estimate *= 2.0
    return estimate - done


@kernel
def known_left_s(columns, row):
    """Return the seconds of work that a job has left alone, as far as the policy knows."""
    return known_left(columns, row) * columns[ITERATION_S, row]


@kernel
def write_left(columns, order, left):
    """Write the iterations that each active job has left, as far as the policy knows."""
    for row in order:
        left[row] = known_left(columns, row)


@kernel
def note_ended(e):
    """Note the jobs that ended at this instant, for predictions."""
    events, ended = events_of(e), ints(e.ended, e.jobs)
    for i in range(e.before, e.count):
        if events[i].kind == FINISHED:
            ended[e.learnt] = events[i].job
            e.learnt += 1


@kernel
def note_ended_at(address):
    """Do `note_ended`, for Python."""
    note_ended(engine_at(address))
