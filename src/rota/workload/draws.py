"""What a trace leaves out is drawn from a seed, and a sentence says so."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from rota.core.errors import ConfigError
from rota.workload.jobs import counted
from rota.workload.profiles import MODELS


def draw_models(jobs: int, seed: int, models: Sequence[str] = MODELS) -> list[str]:
    """A model for each job that came without one."""
    return [models[i] for i in generator(seed).integers(len(models), size=jobs).tolist()]


def draw_priorities(jobs: int, seed: int) -> NDArray[np.int64]:
    """Guaranteed (0) or opportunistic (1), half and half, for jobs that came without a priority."""
    return generator(seed, 1).integers(2, size=jobs)


def models_note(jobs: int, seed: int) -> str:
    measured = f"the {len(MODELS)} measured ones"
    return f"no model in the trace for {counted(jobs)}: drawn from {measured} with seed {seed}"


def priorities_note(jobs: int, seed: int) -> str:
    drawn = f"drawn, half of them opportunistic, with seed {seed}"
    return f"no priority in the trace for {counted(jobs)}: {drawn}"


def generator(seed: int, *stream: int) -> np.random.Generator:
    """A generator of its own for each stream of a seed."""
    if seed < 0:
        raise ConfigError(f"seed is {seed}; it must be 0 or more")
    return np.random.default_rng([seed, *stream] if stream else seed)
