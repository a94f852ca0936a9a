"""Sweeps from a script: experiments, their results, and the table of trials."""

import logging
import os
import shutil
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING, Any, Literal

from rota.core.cluster import own_cores
from rota.core.errors import ConfigError, InputError
from rota.execution.journal import (
    Journal,
    JournalEntry,
    check_not_lost,
    has_owner,
    is_begun,
    read_journal,
    salvage,
)
from rota.sweeps import parcel, processes, slurm
from rota.sweeps.asha import ASHA, Rungs
from rota.sweeps.controller import BEGAN, DRAWN, JOURNAL, TRAIN, Controller, Record, about, folder_of
from rota.sweeps.parcel import things_of, to_plain
from rota.sweeps.sampler import Sampler, leaves, possible
from rota.sweeps.slurm import SlurmCfg
from rota.sweeps.trial import ExperimentExistsError, ExperimentNotFoundError, SweepStatus, Trial

if TYPE_CHECKING:
    import pandas as pd


def table(record: Record, rows: int | None, cfg_and_metrics: bool | list[str]) -> "pd.DataFrame":
    """Return a table of trials, so many at most: id, status, seconds, iteration, configuration, metrics."""
    import pandas as pd

    trials = _in_order(record)[:rows]
    return pd.DataFrame(
        [_row(trial, cfg_and_metrics) for trial in trials], columns=_columns(trials, cfg_and_metrics)
    )


def _in_order(record: Record) -> list[Trial]:
    """Return the trials, the best first if there is a metric; those without a number last."""
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
    """Prints the table of a running sweep, at an interval."""

    def __init__(
        self, record: Record, rows: int, cfg_and_metrics: bool | list[str], interval_s: float
    ) -> None:
        if find_spec("pandas") is None:  # now rather than when the first table is due
            raise InputError("the table of a sweep needs pandas: pip install 'rota[sweeps]'")
        self._record, self._rows, self._cfg_and_metrics = record, rows, cfg_and_metrics
        self._interval_s = interval_s
        self._shown_s = time.monotonic()

    def now_and_then(self) -> None:
        """Print the table if it is due."""
        if time.monotonic() >= self._shown_s + self._interval_s:
            self.show()
            self._shown_s = time.monotonic()

    def show(self) -> None:
        """Print the number of trials by status, then the table."""
        counts = Counter(trial.status for trial in self._record.trials)
        parts = [f"{counts[status]} {status}" for status in SweepStatus if counts[status]]
        print(f"\n{len(self._record.trials)} trials: {', '.join(parts)}")
        for trial in [trial for trial in self._record.trials if trial.failure][:1]:
            print(f"the first to fail: {trial.trial_id}: {(trial.failure or '').strip().splitlines()[-1]}")
        print(table(self._record, self._rows, self._cfg_and_metrics).to_string(index=False), flush=True)


class Result:
    """The trials of an experiment."""

    def __init__(self, experiment: str, local_dir: str | Path = "./slurm-sweeps") -> None:
        self.experiment = experiment
        file = folder_of(Path(local_dir), experiment) / JOURNAL
        if not file.is_file():
            raise ExperimentNotFoundError(
                f"{file.parent}: no such experiment; look for its name in {local_dir}"
            )
        self._record = Record()
        for entry in read_journal(file):
            self._record.apply(entry)

    @property
    def trials(self) -> list[Trial]:
        """The trials, in the order in which they were drawn."""
        return self._record.trials

    def best_trial(self, metric: str | None = None, mode: str | None = None) -> Trial:
        """Return the trial with the best value at any iteration; ASHA's metric is the default."""
        metric, mode = metric or self._record.metric, mode or self._record.mode
        if metric is None or mode not in ("min", "max"):
            raise ValueError(f'metric is {metric!r}, mode {mode!r}; give a metric, and mode "min" or "max"')
        found = [(value, trial) for trial in self.trials if (value := trial.best(metric, mode)) is not None]
        if not found:
            names = sorted({name for trial in self.trials for name in trial.metrics})
            raise ValueError(f"no trial has logged {metric!r}; logged were: {', '.join(names) or 'nothing'}")
        return (min if mode == "min" else max)(found, key=lambda pair: pair[0])[1]

    def summary(self, rows: int | None = None, cfg_and_metrics: bool | list[str] = True) -> "pd.DataFrame":
        """Return a table with one row per trial, the best first if there is a metric."""
        return table(self._record, rows, cfg_and_metrics)


log = logging.getLogger(__name__)

DRAW_AT_ONCE = 1000
"""Number of configurations per write to the journal."""
Train = Callable[[dict[str, Any]], object]


class Experiment:
    """A train function and its configurations, run here or on Slurm, with what it logs."""

    def __init__(
        self,
        train: Train,
        cfg: Mapping[str, Any],
        name: str = "MySweep",
        local_dir: str | Path = "./slurm-sweeps",
        asha: ASHA | None = None,
        slurm_cfg: SlurmCfg | None = None,
        restore: bool | Literal["salvage"] = False,
        overwrite: bool = False,
    ) -> None:
        self.name, self.local_dir = name, Path(local_dir)
        self._train, self._cfg, self._asha = train, cfg, asha
        self._slurm_cfg = slurm_cfg or SlurmCfg()
        self._folder = folder_of(self.local_dir, name).absolute()
        if restore and overwrite:
            raise ConfigError("restore and overwrite exclude each other; give one of them")
        if restore:
            self._must_be_there()
            if restore == "salvage" and (what := salvage(self._folder / JOURNAL)):
                log.warning("%s; goes on with what comes before it", what)
        else:
            self._make_room(overwrite)

    def _must_be_there(self) -> None:
        if not is_begun(self._folder / JOURNAL):
            check_not_lost(self._folder / JOURNAL)
            raise ExperimentNotFoundError(
                f"{self._folder}: no such experiment; leave out restore to begin it"
            )

    def _make_room(self, overwrite: bool) -> None:
        if overwrite and self._folder.is_dir():
            self._remove()
        if self._folder.exists():
            raise ExperimentExistsError(
                f"{self._folder} exists; give another name, restore=True to go on with it, or overwrite=True"
            )
        self._folder.parent.mkdir(parents=True, exist_ok=True)
        made = Path(mkdtemp(prefix=f".{self.name}-", dir=self._folder.parent))  # for the owner's eyes only
        with Journal(made / JOURNAL) as journal:
            journal.append(BEGAN, about(self._asha))
            journal.settle()
        made.rename(self._folder)  # so that it is there whole, or not at all

    def _remove(self) -> None:
        if not (self._folder / JOURNAL).is_file() and any(self._folder.iterdir()):
            raise ExperimentExistsError(f"{self._folder} is not an experiment; it is not overwritten")
        if has_owner(self._folder / JOURNAL):
            raise ExperimentExistsError(f"{self._folder} is running; stop it before you overwrite it")
        shutil.rmtree(self._folder)

    def run(
        self,
        n_trials: int = 1,
        max_concurrent_trials: int | None = None,
        summary_interval_in_sec: float = 5.0,
        nr_of_rows_in_summary: int = 10,
        summarize_cfg_and_metrics: bool | list[str] = True,
    ) -> Result:
        """Run trials until there are `n_trials` in all, or one for each point of the grids.

        Trials of a restored experiment count; interrupted ones are run again.
        """
        things = things_of(possible(self._cfg))
        record = Record(things)
        display = Display(record, nr_of_rows_in_summary, summarize_cfg_and_metrics, summary_interval_in_sec)
        with Journal(self._folder / JOURNAL) as journal:
            for entry in journal.read():
                record.apply(entry)
            self._draw(journal, record, n_trials, things)
            controller = self._controller(journal, record, things)
            controller.run(self._at_once(max_concurrent_trials), display.now_and_then)
        display.show()
        return Result(self.name, self.local_dir)

    def _draw(self, journal: Journal, record: Record, n_trials: int, things: list[Any]) -> None:
        """Draw all missing configurations; seeded ones continue where they were."""
        new = islice(Sampler(self._cfg, n_trials), len(record.trials), None)
        while bodies := [{"cfg": to_plain(cfg, things)} for cfg in islice(new, DRAW_AT_ONCE)]:
            journal.append_all([(0.0, DRAWN, body) for body in bodies])
            for body in bodies:
                record.apply(JournalEntry(0, 0.0, DRAWN, body))

    def _controller(self, journal: Journal, record: Record, things: list[Any]) -> Controller:
        digest = parcel.write(self._folder / "train.pickle", parcel.Parcel(self._train, things))
        journal.append(TRAIN, {"sha256": digest})
        (self._folder / "output").mkdir(exist_ok=True)
        start = processes.start_step if slurm.is_allocation(os.environ) else processes.start_here
        return Controller(
            journal,
            record,
            lambda number: start(self._slurm_cfg, self._assignment(record, number, digest, things)),
            partial(self._output, record),
            self._rungs(record),
        )

    def _output(self, record: Record, number: int) -> Path:
        return self._folder / "output" / f"{record.trials[number].trial_id}.txt"

    def _assignment(self, record: Record, number: int, digest: str, things: list[Any]) -> dict[str, Any]:
        return {
            "cfg": to_plain(record.trials[number].cfg, things),
            "train": str(self._folder / "train.pickle"),
            "sha256": digest,
            "path": [str(Path(folder).absolute()) for folder in sys.path],
            "output": str(self._output(record, number)),
        }

    def _rungs(self, record: Record) -> Rungs | None:
        """Return ASHA's rungs with all values logged so far."""
        if self._asha is None:
            return None
        rungs = Rungs(self._asha)
        for number, trial in enumerate(record.trials):
            for iteration, value in trial.metrics.get(self._asha.metric, {}).items():
                rungs.add(number, iteration, value)
        return rungs

    def _at_once(self, most: int | None) -> int:
        """Return the number of tasks in the allocation, or of cores here, over those of a trial."""
        if most is not None and most < 1:
            raise ConfigError(f"max_concurrent_trials is {most}; give 1 or more")
        room = slurm.tasks(os.environ) if slurm.is_allocation(os.environ) else len(own_cores())
        return most or max(1, room // self._slurm_cfg.ntasks)
