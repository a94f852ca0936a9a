"""The trials of a sweep as a table, for programs and for people."""

import time
from collections import Counter
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from rota.core.errors import InputError
from rota.sweeps.record import Record
from rota.sweeps.sampler import leaves
from rota.sweeps.trial import Status, Trial

if TYPE_CHECKING:
    import pandas as pd


def table(record: Record, rows: int | None, cfg_and_metrics: bool | list[str]) -> "pd.DataFrame":
    """A row per trial, so many at most: id, status, seconds, iteration, configuration, last metrics."""
    import pandas as pd

    trials = _in_order(record)[:rows]
    return pd.DataFrame(
        [_row(trial, cfg_and_metrics) for trial in trials], columns=_columns(trials, cfg_and_metrics)
    )


def _in_order(record: Record) -> list[Trial]:
    """The best first, if it is known what is good; those without a number last."""
    metric, mode = record.metric, record.mode
    if metric is None or mode is None:
        return record.trials
    sign = 1.0 if mode == "min" else -1.0
    bests = [trial.best(metric, mode) for trial in record.trials]
    keys = [(best is None, sign * (best or 0.0), number) for number, best in enumerate(bests)]
    return [record.trials[number] for *_, number in sorted(keys)]


def _columns(trials: list[Trial], cfg_and_metrics: bool | list[str]) -> list[str]:
    names = dict.fromkeys(name for trial in trials for name in _row(trial, cfg_and_metrics))
    return list(names) or ["trial_id", "status", "runtime", "iteration"]


def _row(trial: Trial, cfg_and_metrics: bool | list[str]) -> dict[str, Any]:
    runtime = trial.runtime
    iterations = [max(values) for values in trial.metrics.values() if values]
    row: dict[str, Any] = {
        "trial_id": trial.trial_id,
        "status": str(trial.status),
        "runtime": None if runtime is None else round(runtime.total_seconds(), 2),
        "iteration": max(iterations, default=None),
    }
    more = {".".join(map(str, path)): value for path, value in leaves(trial.cfg)}
    for name, values in trial.metrics.items():
        more[f"metric_{name}" if name in more else name] = values[max(values)]
    if isinstance(cfg_and_metrics, bool):
        return row | (more if cfg_and_metrics else {})
    return row | {name: value for name, value in more.items() if name in cfg_and_metrics}


class Display:
    """Prints the table of a sweep that runs, at an interval."""

    def __init__(
        self, record: Record, rows: int, cfg_and_metrics: bool | list[str], interval_s: float
    ) -> None:
        if find_spec("pandas") is None:  # now rather than when the first table is due
            raise InputError("the table of a sweep needs pandas: pip install 'rota[sweeps]'")
        self._record, self._rows, self._cfg_and_metrics = record, rows, cfg_and_metrics
        self._interval_s = interval_s
        self._shown_s = time.monotonic()

    def now_and_then(self) -> None:
        """Print it if it is time to."""
        if time.monotonic() >= self._shown_s + self._interval_s:
            self.show()
            self._shown_s = time.monotonic()

    def show(self) -> None:
        """Print it: how many trials there are of each status, then the table."""
        counts = Counter(trial.status for trial in self._record.trials)
        parts = [f"{counts[status]} {status}" for status in Status if counts[status]]
        print(f"\n{len(self._record.trials)} trials: {', '.join(parts)}")
        for trial in [trial for trial in self._record.trials if trial.failure][:1]:
            print(f"the first to fail: {trial.trial_id}: {(trial.failure or '').strip().splitlines()[-1]}")
        print(table(self._record, self._rows, self._cfg_and_metrics).to_string(index=False), flush=True)
