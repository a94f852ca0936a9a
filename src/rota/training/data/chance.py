"""Random numbers that depend on nothing but what they are for."""

import numpy as np

from rota.core.errors import ConfigError


def chance(seed: int, *purpose: int) -> np.random.Generator:
    """The generator of a seed, and of a number or more that tell its uses apart."""
    if seed < 0:
        raise ConfigError(f"seed {seed}: give a whole number, 0 or more")
    return np.random.default_rng((seed, *purpose))
