"""What the tests of cluster policies have in common."""

from collections.abc import Callable, Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from rota.core import columns as c
from rota.workload.profiles import PROFILES, profile


@pytest.fixture(scope="session")
def columns_of() -> Callable[[Sequence[str], int], NDArray[np.float64]]:
    """A table of active jobs with one row per model, all of one gang size."""

    def build(models: Sequence[str], gpus: int) -> NDArray[np.float64]:
        table = np.zeros((c.OWN, len(models)))
        for row, model in enumerate(models):
            found = profile(model, gpus)
            table[c.PROFILE, row] = list(PROFILES).index(model)
            table[c.ITERATION_S, row] = found.iteration_ms * 1.015 / 1000
            table[c.LOAD_S : c.SYNC_S + 1, row] = [ms / 1000 for ms in found.stages_ms]
        return table

    return build
