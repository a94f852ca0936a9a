"""Trials of a sweep, their errors, and the names of their columns."""

import json
from datetime import datetime, timedelta
from enum import StrEnum
from hashlib import sha256
from subprocess import Popen
from typing import Any

from rota.core.errors import InputError
from rota.sweeps.parcel import to_plain

DB_ITERATION = "iteration"
DB_TRIAL_ID = "trial_id"
DB_METRIC = "metric_"
"""The prefix of a metric's column."""


class ExperimentExistsError(InputError):
    """The folder of a new experiment exists."""


class ExperimentNotFoundError(InputError):
    """There is no such experiment."""


class TrialPruned(Exception):
    """Raised by `log` in a trial that should stop."""


Metrics = dict[str, dict[int, float]]
"""Name → iteration → value."""


class SweepStatus(StrEnum):
    """The status of a trial."""

    SCHEDULED = "scheduled"
    RUNNING = "running"
    COMPLETED = "completed"
    PRUNED = "pruned"
    FAILED = "failed"


TERMINATED = (SweepStatus.COMPLETED, SweepStatus.PRUNED, SweepStatus.FAILED)


class Trial:
    """A configuration, and the status and metrics of its training."""

    def __init__(
        self,
        cfg: dict[str, Any],
        process: "Popen[bytes] | None" = None,
        start_time: datetime | None = None,
        end_time: datetime | None = None,
        status: SweepStatus | str | None = None,
        metrics: Metrics | None = None,
        *,
        copy: int = 1,
        failure: str | None = None,
    ) -> None:
        self.cfg = cfg
        self.process = process
        self.start_time, self.end_time = start_time, end_time
        self.status = None if status is None else SweepStatus(status)
        self.metrics: Metrics = {} if metrics is None else metrics
        self.copy = copy
        """1 for the first trial with this configuration, 2 for the second …"""
        self.failure = failure
        """The traceback of a failed trial."""
        self._digest = sha256(json.dumps(to_plain(cfg), sort_keys=True).encode()).hexdigest()[:16]

    @property
    def trial_id(self) -> str:
        """A hash of the configuration, with a number appended if several trials have the same."""
        return self._digest if self.copy == 1 else f"{self._digest}-{self.copy}"

    @property
    def runtime(self) -> timedelta | None:
        """The duration so far; None before the start."""
        if self.start_time is None:
            return None
        return (self.end_time or datetime.now(self.start_time.tzinfo)) - self.start_time

    def is_terminated(self) -> bool:
        """Return whether it has ended: completed, pruned or failed."""
        return self.status in TERMINATED

    def best(self, metric: str, mode: str) -> float | None:
        """Return the best value of a metric over all iterations; None if there is no number."""
        values = [value for value in self.metrics.get(metric, {}).values() if value == value]
        return (min if mode == "min" else max)(values, default=None)

    def __repr__(self) -> str:
        last = {name: values[max(values)] for name, values in self.metrics.items() if values}
        about = f"cfg={self.cfg}, status={self.status}, runtime={self.runtime}, metrics={last}"
        return f"Trial({self.trial_id}, {about})"
