"""What an experiment has come to, read from its journal; while it runs, too."""

from pathlib import Path
from typing import TYPE_CHECKING

from rota.execution.journal import read_journal
from rota.sweeps.errors import ExperimentNotFoundError
from rota.sweeps.record import JOURNAL, Record, folder_of
from rota.sweeps.summary import table
from rota.sweeps.trial import Trial

if TYPE_CHECKING:
    import pandas as pd


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
        """In the order in which their configurations were drawn."""
        return self._record.trials

    def best_trial(self, metric: str | None = None, mode: str | None = None) -> Trial:
        """The one that reached the best value, at whatever iteration; by ASHA's metric if none is given."""
        metric, mode = metric or self._record.metric, mode or self._record.mode
        if metric is None or mode not in ("min", "max"):
            raise ValueError(f'metric is {metric!r}, mode {mode!r}; give a metric, and mode "min" or "max"')
        found = [(value, trial) for trial in self.trials if (value := trial.best(metric, mode)) is not None]
        if not found:
            names = sorted({name for trial in self.trials for name in trial.metrics})
            raise ValueError(f"no trial has logged {metric!r}; logged were: {', '.join(names) or 'nothing'}")
        return (min if mode == "min" else max)(found, key=lambda pair: pair[0])[1]

    def summary(self, rows: int | None = None, cfg_and_metrics: bool | list[str] = True) -> "pd.DataFrame":
        """A row per trial: the best first where there is a metric to go by."""
        return table(self._record, rows, cfg_and_metrics)
