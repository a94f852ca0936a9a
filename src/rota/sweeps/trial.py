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
"""Before the name of a metric."""


class ExperimentExistsError(InputError):
    """There is an experiment, or something else, in the folder of a new one."""


class ExperimentNotFoundError(InputError):
    """There is no such experiment."""


class TrialPruned(Exception):
    """Raised by `log` inside a trial that is not to go on."""


Metrics = dict[str, dict[int, float]]
"""Name → iteration → value."""


class SweepStatus(StrEnum):
    """How far a trial has come."""

    SCHEDULED = "scheduled"
    RUNNING = "running"
    COMPLETED = "completed"
    PRUNED = "pruned"
    FAILED = "failed"


TERMINATED = (SweepStatus.COMPLETED, SweepStatus.PRUNED, SweepStatus.FAILED)


class Trial:
    """A configuration, and what its training has come to."""

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
        """1 for the first with this configuration, 2 for the second …"""
        self.failure = failure
        """The traceback of one that failed."""
        self._digest = sha256(json.dumps(to_plain(cfg), sort_keys=True).encode()).hexdigest()[:16]

    @property
    def trial_id(self) -> str:
        """A hash of the configuration; with a number behind it where several trials have the same."""
        return self._digest if self.copy == 1 else f"{self._digest}-{self.copy}"

    @property
    def runtime(self) -> timedelta | None:
        """For how long it has run; nothing if it has not begun."""
        if self.start_time is None:
            return None
        return (self.end_time or datetime.now(self.start_time.tzinfo)) - self.start_time

    def is_terminated(self) -> bool:
        """Whether it has ended, however it did."""
        return self.status in TERMINATED

    def best(self, metric: str, mode: str) -> float | None:
        """The best of a metric over all iterations; nothing where there is no number."""
        values = [value for value in self.metrics.get(metric, {}).values() if value == value]
        return (min if mode == "min" else max)(values, default=None)

    def __repr__(self) -> str:
        last = {name: values[max(values)] for name, values in self.metrics.items() if values}
        about = f"cfg={self.cfg}, status={self.status}, runtime={self.runtime}, metrics={last}"
        return f"Trial({self.trial_id}, {about})"
