"""Short names for NumPy array types."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Singles = NDArray[np.float32]
Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]
Array = NDArray[Any]


def distinct(rows: Floats) -> NDArray[np.int64]:
    """Return the number of each column among the distinct ones."""
    order = np.lexsort(rows[::-1])
    ranked = rows[:, order]
    differs = (ranked[:, 1:] != ranked[:, :-1]).any(axis=0)
    numbers = np.zeros(rows.shape[1], np.int64)
    numbers[order[1:]] = np.cumsum(differs)
    return numbers
