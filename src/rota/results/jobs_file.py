"""The jobs of a run as a table: what they were, then what became of them; exact to the last bit."""

import csv
import io
from pathlib import Path
from typing import IO, Any

import numpy as np

from rota.core.arrays import Floats
from rota.core.errors import InputError
from rota.results.folder import AGAIN
from rota.results.jobs import JobColumns, Jobs, JobTimes

GIVEN = ("gpus", "iterations", "iteration_s")
LIVED = (
    "submit_s",
    "first_start_s",
    "end_s",
    "jct_s",
    "waiting_s",
    "running_s",
    "preemptions",
    "migrations",
    "fairness",
    "failed",
)
WHOLE = ("preemptions", "migrations", "failed")
HEADER = ("id", "model", *GIVEN, *LIVED)
BEFORE = HEADER[:-1]
"""The columns of runs of before, in which no job had failed that was not said to have finished."""


def write_jobs(stream: IO[bytes], jobs: Jobs, times: JobTimes) -> None:
    columns = [getattr(jobs, name).tolist() for name in GIVEN] + [
        getattr(times, name).tolist() for name in LIVED
    ]
    models = [jobs.models[number] for number in jobs.model.tolist()]
    text = io.TextIOWrapper(stream, encoding="utf-8", newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(HEADER)
    writer.writerows(zip(jobs.ids, models, *columns, strict=True))
    text.flush()
    text.detach()


def read_jobs(path: Path, name: str) -> tuple[JobColumns, JobTimes]:
    """What was written; `name` is the workload's."""
    ids, models, numbers = _read_columns(path)
    known = tuple(dict.fromkeys(models))
    codes = {model: number for number, model in enumerate(known)}
    jobs = JobColumns(
        name=name,
        ids=ids,
        model=np.array([codes[model] for model in models], np.int64),
        models=known,
        submit_s=numbers["submit_s"],
        **{column: numbers[column] for column in GIVEN},
    )
    lived: dict[str, Any] = {column: numbers[column] for column in LIVED}
    lived |= {column: numbers[column].astype(np.int64) for column in WHOLE}
    return jobs, JobTimes(**lived)


def _read_columns(path: Path) -> tuple[tuple[str, ...], tuple[str, ...], dict[str, Floats]]:
    try:
        with path.open(encoding="utf-8", newline="") as stream:
            rows = csv.reader(stream, strict=True)
            header = tuple(next(rows, ()))
            if header not in (HEADER, BEFORE):
                raise InputError(f"{path}: line 1: its columns are not those of a run; {AGAIN}")
            ids, models, *texts = zip(*rows, strict=True)
        numbers = {column: np.array(text, np.float64) for column, text in zip(header[2:], texts, strict=True)}
        numbers.setdefault("failed", np.zeros(len(ids)))
        with np.errstate(over="ignore", invalid="ignore"):
            gpu_s = np.prod([numbers[column] for column in GIVEN], axis=0)
        if not np.isfinite(gpu_s.sum()):
            raise ValueError("a job takes longer than can be reckoned with")
    except FileNotFoundError:
        raise InputError(f"{path}: not there, though the run is complete; {AGAIN}") from None
    except (OSError, ValueError, csv.Error) as error:
        raise InputError(f"{path}: not the jobs of a run ({error}); {AGAIN}") from None
    return ids, models, numbers
