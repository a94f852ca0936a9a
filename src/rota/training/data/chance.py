"""Random numbers that depend on nothing but what they are for."""

import numpy as np

from rota.core.errors import ConfigError


def check_seed(seed: int) -> None:
    """Whether there are random numbers for it."""
    if seed < 0:
        raise ConfigError(f"seed {seed}: give a whole number, 0 or more")


def chance(seed: int, *purpose: int) -> np.random.Generator:
    """The generator of a seed, and of a number or more that tell its uses apart.

    Zeros at the end do not: `chance(seed)` is `chance(seed, 0)`.
    """
    check_seed(seed)
    return np.random.default_rng((seed, *purpose))
