"""Synthetic workloads: arrivals, heavy-tailed durations, gang sizes and models at a chosen load."""

import math
from dataclasses import dataclass, field
from itertools import chain
from statistics import NormalDist
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from rota.core.arrays import Floats
from rota.core.errors import ConfigError, unknown
from rota.core.limits import above, at_least
from rota.workload.jobs import Workload, draw_priorities, generator, workload
from rota.workload.profiles import MODELS, PROFILES, profiled_s

Arrivals = Literal["poisson", "bursty"]

LARGEST_GANG = 32

# Each draw has a stream of random numbers of its own, so that a change to one leaves the others alone.
GANGS, MODEL, DURATIONS, ARRIVALS = 10, 11, 12, 13
PART = 1 << 16  # durations that are drawn at once


MOST_JOBS = 100_000_000
"""Largest number of jobs that fit into memory."""


@dataclass(frozen=True, slots=True)
class SyntheticConfig:
    """The distribution of a synthetic workload."""

    jobs: int = 1000
    """Number of jobs."""
    gpus: int = 64
    """GPUs of the cluster that the load refers to; no job asks for more."""
    load: float = 0.85
    """GPU time asked for ÷ GPU time of the cluster from the first arrival to the last."""
    arrivals: Arrivals = "bursty"
    """Arrivals: independent of each other, or in bursts."""
    burstiness: float = 10.0
    """Arrival rate in a burst ÷ that in a calm spell (bursty only)."""
    burst_jobs: float = 20.0
    """Mean number of jobs in a burst, and in a calm spell (bursty only)."""
    median_s: float = 1800.0
    """Median of the log-normal durations before they are truncated, in seconds."""
    sigma: float = 1.7
    """Standard deviation of the natural logarithm of the durations."""
    shortest_s: float = 60.0
    """Shortest duration in seconds."""
    longest_s: float = 3 * 86400.0
    """Longest duration in seconds."""
    gang_sizes: tuple[int, ...] = (1, 2, 4, 8, 16, 32)
    """Gang sizes of jobs; those above the cluster's size are not drawn."""
    gang_weights: tuple[float, ...] = (0.55, 0.12, 0.14, 0.14, 0.04, 0.01)
    """Relative frequency of each gang size."""
    models: dict[str, float] = field(default_factory=lambda: dict.fromkeys(MODELS, 1.0))
    """Relative frequency of each model."""
    seed: int = 0
    """Seed of all random numbers."""

    def __post_init__(self) -> None:
        at_least(2, jobs=self.jobs)
        if self.jobs > MOST_JOBS:
            raise ConfigError(f"jobs is {self.jobs}; at most {MOST_JOBS:,} can be made")
        at_least(1, finite=True, gpus=self.gpus, burstiness=self.burstiness, burst_jobs=self.burst_jobs)
        at_least(0, seed=self.seed)
        above(0, finite=True, load=self.load, median_s=self.median_s, sigma=self.sigma)
        above(0, finite=True, shortest_s=self.shortest_s)
        above(self.shortest_s, finite=True, longest_s=self.longest_s)
        if self.arrivals not in get_args(Arrivals):
            raise ConfigError(unknown("arrivals", self.arrivals, get_args(Arrivals)))
        self._check_gangs()
        self._check_models()

    def _check_gangs(self) -> None:
        if len(self.gang_sizes) != len(self.gang_weights):
            sizes, weights = len(self.gang_sizes), len(self.gang_weights)
            raise ConfigError(f"{sizes} gang_sizes but {weights} gang_weights; give one weight per size")
        for size in self.gang_sizes:
            if not 1 <= size <= LARGEST_GANG:
                raise ConfigError(f"gang_sizes has {size}; sizes are from 1 to {LARGEST_GANG}")
        _check_weights("gang_weights", self.gang_weights)
        if not sum(self.fitting_weights) > 0.0:
            raise ConfigError(
                f"gang_sizes has none with a weight that fits on {self.gpus} GPUs; add a smaller one"
            )

    def _check_models(self) -> None:
        for model in self.models:
            if model not in PROFILES:
                raise ConfigError(unknown("model", model, PROFILES))
        _check_weights("models", tuple(self.models.values()))

    @property
    def fitting_weights(self) -> tuple[float, ...]:
        """The gang weights, 0 for sizes that do not fit on the cluster."""
        pairs = zip(self.gang_sizes, self.gang_weights, strict=True)
        return tuple(weight if size <= self.gpus else 0.0 for size, weight in pairs)


def generate(config: SyntheticConfig) -> Workload:
    """Return the workload of a configuration; its load is exactly the one asked for."""
    models = tuple(config.models)
    model = _pick(config, MODEL, tuple(config.models.values()))
    gpus = np.array(config.gang_sizes, float)[_pick(config, GANGS, config.fitting_weights)]
    iteration_s = profiled_s(models, model, gpus)[0]
    iterations = np.maximum(np.rint(_durations_s(config) / iteration_s), 1.0)
    duration_s = iterations * iteration_s
    return workload(
        f"synthetic-{config.seed}",
        ids=[str(number) for number in range(config.jobs)],
        submit_s=_arrivals_s(config, gpu_s=float(np.sum(duration_s * gpus))),
        gpus=gpus,
        model=np.array(models, object)[model].tolist(),
        duration_s=duration_s,
        iterations=iterations,
        priority=draw_priorities(config.jobs, config.seed),
    )


def _pick(config: SyntheticConfig, stream: int, weights: tuple[float, ...]) -> NDArray[np.int64]:
    """Return for each job the index of the drawn weight."""
    share = np.array(weights) / math.fsum(weights)
    return generator(config.seed, stream).choice(len(weights), size=config.jobs, p=share)


def _durations_s(config: SyntheticConfig) -> Floats:
    """Return log-normal durations, truncated, by the inverse of the distribution."""
    normal = NormalDist(math.log(config.median_s), config.sigma)
    low, high = (normal.cdf(math.log(end_s)) for end_s in (config.shortest_s, config.longest_s))
    drawn = low + (high - low) * generator(config.seed, DURATIONS).random(config.jobs)
    inside: Floats = np.clip(drawn, np.finfo(float).tiny, 1.0 - np.finfo(float).epsneg)
    parts = (inside[at : at + PART].tolist() for at in range(0, config.jobs, PART))  # not all in one list
    seconds = np.exp(np.fromiter(map(normal.inv_cdf, chain.from_iterable(parts)), float, config.jobs))
    return np.asarray(np.clip(seconds, config.shortest_s, config.longest_s), np.float64)


def _arrivals_s(config: SyntheticConfig, gpu_s: float) -> Floats:
    """Return arrivals: the first at 0, the last when the cluster at that load has given `gpu_s`."""
    rng = generator(config.seed, ARRIVALS)
    gaps = rng.exponential(size=config.jobs - 1)
    if config.arrivals == "bursty":
        turns = rng.random(config.jobs - 1) < 1.0 / config.burst_jobs
        calm = (np.cumsum(turns) + rng.integers(2)) % 2 == 0
        gaps = np.where(calm, gaps * config.burstiness, gaps)
    at = np.concatenate(([0.0], np.cumsum(gaps)))
    return np.asarray(at / at[-1] * (gpu_s / (config.load * config.gpus)), np.float64)


def _check_weights(name: str, weights: tuple[float, ...]) -> None:
    if not all(0.0 <= weight < math.inf for weight in weights) or not sum(weights) > 0.0:
        raise ConfigError(f"{name} is {list(weights)}; weights are 0 or more, and not all 0")
