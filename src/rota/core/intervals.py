"""Confidence intervals of means."""

import math
from collections.abc import Sequence

import numpy as np

T_95 = (
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
    2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086,
    2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
)  # fmt: skip
"""Student's t for 1, 2, … degrees of freedom: 95 % lie within so many standard errors."""
Z_95 = 1.959964


def mean_interval(values: Sequence[float]) -> tuple[float, float, float]:
    """Return the mean and the ends of its 95 % interval; the ends are NaN for a single value."""
    count = len(values)
    mean = float(np.mean(values)) if count else math.nan
    if count < 2:
        return mean, math.nan, math.nan
    half = student_95(count - 1) * float(np.std(values, ddof=1)) / math.sqrt(count)
    return mean, mean - half, mean + half


def student_95(freedom: int) -> float:
    """Return Student's t, two-sided at 95 %; beyond the table by its expansion around the normal."""
    if freedom <= len(T_95):
        return T_95[freedom - 1]
    z = Z_95
    return z + (z**3 + z) / (4 * freedom) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * freedom**2)
