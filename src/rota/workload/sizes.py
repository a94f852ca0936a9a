"""Jobs whose gangs may have several sizes."""

from collections.abc import Sequence

import numpy as np

from rota.core.arrays import Floats
from rota.core.errors import ConfigError, TraceError

Sizes = tuple[tuple[int, float], ...]
"""The gang sizes that a job may have, from the smallest on, with the seconds per iteration."""
MOST_DOUBLINGS = 10


def check_elastic(smallest: float, largest: float, serial: float) -> None:
    """Raise ConfigError if gangs cannot be made smaller and larger so."""
    if not 0.0 < smallest <= 1.0 <= largest < 2.0**MOST_DOUBLINGS:
        raise ConfigError(f"elastic: from {smallest:g} to {largest:g} times the gang; give a range around 1")
    if not 0.0 <= serial <= 1.0:
        raise ConfigError(f"elastic: serial is {serial:g}; it must be 0 to 1")


def sizes_around(
    gpus: Floats, iteration_s: Floats, factors: tuple[float, float], serial: float
) -> tuple[Sizes, ...]:
    """Return the sizes of each job, by doubling and halving its gang; none if there is no other."""
    smallest, largest = factors
    check_elastic(smallest, largest, serial)
    sizes: list[Sizes] = []
    for asked, step_s in zip(gpus.tolist(), iteration_s.tolist(), strict=True):
        each = [asked * 2.0**k for k in range(-MOST_DOUBLINGS, MOST_DOUBLINGS + 1)]
        fits = [n for n in each if n == int(n) and smallest * asked <= n <= largest * asked]
        times = [step_s if n == asked else step_s * (serial + (1.0 - serial) * asked / n) for n in fits]
        sizes.append(tuple(zip(map(int, fits), times, strict=True)) if len(fits) > 1 else ())
    return tuple(sizes)


def check_sizes(
    name: str, ids: Sequence[str], gpus: Floats, iteration_s: Floats, sizes: Sequence[Sizes]
) -> None:
    """Raise TraceError for the first job with impossible sizes."""
    for job, asked, step_s, each in zip(ids, gpus.tolist(), iteration_s.tolist(), sizes, strict=False):
        counts = [count for count, _ in each]
        if each and (counts != sorted(set(counts)) or counts[0] < 1 or dict(each).get(asked) != step_s):
            what = f"rise, from 1 on, and have {asked:g} GPUs with its iteration_s of {step_s:g}"
            raise TraceError(f"{name}: job {job!r}: sizes must {what}")
        if not all(0.0 < seconds < np.inf for _, seconds in each):
            raise TraceError(f"{name}: job {job!r}: sizes: seconds must be finite and above 0")


def smallest_gangs(sizes: Sequence[Sizes], gpus: Floats, iteration_s: Floats) -> tuple[Floats, Floats]:
    """Return the smallest gang of each job, and its seconds per iteration."""
    gpus, iteration_s = gpus.copy(), iteration_s.copy()
    for job, each in enumerate(sizes):
        if each:
            gpus[job], iteration_s[job] = each[0]
    return gpus, iteration_s
