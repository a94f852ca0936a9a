"""Jobs of a run as a table, and the files of jobs and timelines."""

import csv
import io
import zipfile
from dataclasses import dataclass, fields
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from rota.core.arrays import Floats, Ints
from rota.core.errors import InputError
from rota.core.timeline import EVENT, EventKind, Timeline
from rota.results import timeline_pass
from rota.results.folder import AGAIN
from rota.results.timeline_pass import validate_timeline
from rota.workload.jobs import Workload


@dataclass(frozen=True, slots=True)
class JobColumns:
    """The jobs of a run, as far as results need them."""

    name: str
    ids: tuple[str, ...]
    model: Ints
    models: tuple[str, ...]
    gpus: Floats
    submit_s: Floats
    iterations: Floats
    iteration_s: Floats

    def __len__(self) -> int:
        return len(self.ids)

    @classmethod
    def of(cls, jobs: "Jobs") -> "JobColumns":
        """Return these columns of jobs, and no others."""
        return cls(**{column.name: getattr(jobs, column.name) for column in fields(cls)})


Jobs = JobColumns | Workload
"""Jobs by submit time: the order in which a timeline numbers them."""


@dataclass(frozen=True, slots=True)
class JobTimes:
    """Times and counts of each job in a run."""

    submit_s: Floats
    first_start_s: Floats
    end_s: Floats
    jct_s: Floats
    """Seconds from submit to end."""
    waiting_s: Floats
    """Seconds without slots, before the first start and after each pause."""
    running_s: Floats
    """Seconds on slots, start-up included."""
    preemptions: Ints
    """Pauses after which the job had to wait."""
    migrations: Ints
    """Changes to other slots without a wait."""
    fairness: Floats
    """Finish-time fairness: JCT ÷ what the job would take alone on its fair share; above 1 is unfair."""
    failed: Ints
    """1 for a job that failed for good; its JCT is until then."""
    attempts: Ints
    """Attempts, the one that ended the job included; a preempted job goes on with the same attempt."""
    lost_gpu_s: Floats
    """GPU-seconds of work that was lost: done again after a checkpoint, or all of it if the job failed."""
    resizes: Ints
    """How often its gang became larger or smaller while it ran."""

    @classmethod
    def of(cls, lives: Floats, jobs: Jobs, timeline: Timeline) -> "JobTimes":
        """Return what `timeline_pass.walk` found out about each job."""
        failed = np.zeros(len(jobs.ids), np.int64)
        failed[timeline.events["job"][timeline.events["kind"] == EventKind.FAILED]] = 1
        jct_s = lives[timeline_pass.END_S] - jobs.submit_s
        solo_s = jobs.iterations * jobs.iteration_s
        crowding = np.maximum(
            lives[timeline_pass.ASKED_S] / np.maximum(lives[timeline_pass.GPU_S], 1e-300), 1.0
        )
        return cls(
            submit_s=jobs.submit_s,
            first_start_s=lives[timeline_pass.FIRST_START_S],
            end_s=lives[timeline_pass.END_S],
            jct_s=jct_s,
            waiting_s=lives[timeline_pass.WAITED_S],
            running_s=lives[timeline_pass.RUNNING_S],
            preemptions=lives[timeline_pass.PREEMPTIONS].astype(np.int64),
            migrations=lives[timeline_pass.MIGRATIONS].astype(np.int64),
            fairness=jct_s / (solo_s * crowding),
            failed=failed,
            attempts=lives[timeline_pass.FAILURES].astype(np.int64) + 1,
            lost_gpu_s=np.where(failed, lives[timeline_pass.HELD_GPU_S], lives[timeline_pass.LOST_GPU_S]),
            resizes=lives[timeline_pass.RESIZES].astype(np.int64),
        )

    @property
    def finished(self) -> NDArray[np.bool_]:
        """Which jobs have finished; the others have failed."""
        return np.asarray(self.failed == 0, np.bool_)


GIVEN = ("gpus", "iterations", "iteration_s")
LIVED = tuple(column.name for column in fields(JobTimes))
WHOLE = ("preemptions", "migrations", "failed", "attempts", "resizes")
HEADER = ("id", "model", *GIVEN, *LIVED)
LATER = {"failed": 0.0, "attempts": 1.0, "lost_gpu_s": 0.0, "resizes": 0.0}
"""The last columns, which older runs do not have, and what their jobs have there."""
HEADERS = tuple(HEADER[: len(HEADER) - missing] for missing in range(len(LATER) + 1))


def write_jobs(stream: IO[bytes], jobs: Jobs, times: JobTimes) -> None:
    """Write a row per job as CSV: what it asked for, and its times in the run."""
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
    """Read the jobs of a run; `name` is that of the workload."""
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
            if header not in HEADERS:
                raise InputError(f"{path}: line 1: its columns are not those of a run; {AGAIN}")
            ids, models, *texts = zip(*rows, strict=True)
        numbers = {column: np.array(text, np.float64) for column, text in zip(header[2:], texts, strict=True)}
        for column, value in LATER.items():
            numbers.setdefault(column, np.full(len(ids), value))
        with np.errstate(over="ignore", invalid="ignore"):
            gpu_s = np.prod([numbers[column] for column in GIVEN], axis=0)
        if not np.isfinite(gpu_s.sum()):
            raise ValueError("a job takes longer than can be reckoned with")
    except FileNotFoundError:
        raise InputError(f"{path}: not there, though the run is complete; {AGAIN}") from None
    except (OSError, ValueError, csv.Error) as error:
        raise InputError(f"{path}: not the jobs of a run ({error}); {AGAIN}") from None
    return ids, models, numbers


COLUMNS = EVENT.names or ()


def write_timeline(stream: IO[bytes], timeline: Timeline) -> None:
    """Write a timeline uncompressed: times do not compress, and a large run should not wait for it.

    `kinds` names the numbers in `kind`, so that the file stays readable if the numbers change.
    """
    columns: dict[str, Any] = {name: timeline.events[name] for name in COLUMNS}
    columns["kind"] = columns["kind"].astype(np.int8)
    columns["kinds"] = np.array([EventKind(number).name for number in range(len(EventKind))])
    np.savez(stream, slots=timeline.slots, **columns)


def read_timeline(path: Path, jobs: int, nodes: int, slots: int) -> Timeline:
    """Read a timeline. Raises InputError if it names other jobs, nodes or slots than there are."""
    try:
        with path.open("rb") as stream, np.load(stream, allow_pickle=False) as columns:
            events = np.zeros(len(columns["at_s"]), EVENT)
            for name in COLUMNS:
                if np.iscomplexobj(columns[name]):
                    raise ValueError(f"{name} has complex numbers")
                events[name] = columns[name]
            events["kind"] = _numbers(columns["kinds"])[columns["kind"]]
            timeline = Timeline(events, columns["slots"].astype(np.int32))
    except FileNotFoundError:
        raise InputError(f"{path}: not there, though the run is complete; {AGAIN}") from None
    except (OSError, ValueError, TypeError, RuntimeError, LookupError, EOFError, zipfile.BadZipFile) as error:
        raise InputError(f"{path}: not the timeline of a run ({error}); {AGAIN}") from None
    wrong = validate_timeline(timeline, jobs, nodes, slots)
    if wrong:
        raise InputError(f"{path}: {wrong}; {AGAIN}")
    return timeline


def _numbers(kinds: NDArray[np.str_]) -> NDArray[np.int32]:
    return np.array([EventKind[name] for name in kinds.tolist()], np.int32)
