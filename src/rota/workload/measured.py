"""Seconds per iteration from a recording, for jobs of models that were measured on one's own machines."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from rota.core.arrays import Floats
from rota.core.errors import InputError
from rota.recordings.profile import Profile, nearest_gang, read_profiles

STARTUP = "startup_s"
"""The extra column of a profile that says how long a start takes."""


@dataclass(frozen=True, slots=True)
class Measured:
    """Model and gang size → what was measured."""

    source: str
    rows: dict[str, dict[int, Profile]] = field(default_factory=dict)
    expected_s: float = math.nan
    """An iteration of what was never measured; NaN: nobody knows."""

    def find(self, model: str, gpus: float) -> Profile | None:
        """Of the gang size whose measurement stands for this one."""
        gangs = self.rows.get(model)
        return gangs[nearest_gang(gpus, gangs)] if gangs else None

    def columns(self, models: Sequence[str], gpus: Floats) -> Floats:
        """Five rows, a column per job: an iteration, its three stages, a start; NaN where nobody knows."""
        found = [self._column(*job) for job in zip(models, gpus.tolist(), strict=True)]
        return np.array(found, float).reshape(-1, 5).T

    def _column(self, model: str, gpus: float) -> tuple[float, ...]:
        found = self.find(model, gpus)
        if found is None:
            return self.expected_s, 0.0 * self.expected_s, self.expected_s, 0.0, 0.0
        stages = (0.0 if math.isnan(stage) else stage for stage in found.stages_s)
        return found.iteration_s, *stages, found.extra.get(STARTUP, 0.0)


def read_measured(folder: Path) -> Measured:
    """Of a recording of profiles in which each model has one batch size, alone."""
    rows: dict[str, dict[int, Profile]] = {}
    for row in read_profiles(folder).rows:
        if not row.beside:
            before = rows.setdefault(row.model, {}).setdefault(row.gang, row)
            if before is not row:
                raise InputError(
                    f"{folder}: has {row.model} on a gang of {row.gang} twice, with batches of "
                    f"{before.batch_size} and {row.batch_size}; give a recording with one of them"
                )
    return Measured(str(folder), rows)
