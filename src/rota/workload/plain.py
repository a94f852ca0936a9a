"""Our own trace format: a plain CSV that says everything, and is read back bit for bit.

| column      | meaning                                                    | if absent or empty            |
|-------------|------------------------------------------------------------|-------------------------------|
| id          | unique name of the job                                     | required                      |
| submit_s    | when it arrives, seconds                                   | required                      |
| gpus        | gang size; below 1, a fraction of one GPU                  | required                      |
| duration_s  | what it took                                               | required                      |
| model       | name of the model                                          | drawn from the measured models |
| iterations  | work to do                                                 | as many as fill the duration  |
| iteration_s | seconds per iteration, alone on the reference device       | from the model's profile      |
| load_s      | of these, loading; stages may overlap                      | from the model's profile      |
| compute_s   | computing                                                  | from the model's profile      |
| sync_s      | synchronising                                              | from the model's profile      |
| priority    | 0 guaranteed, 1 opportunistic                              | drawn                         |
| kinds       | device kinds it may run on, joined by a bar                | any                           |
| speed_KIND  | speed of its model on devices of that kind (any number of  | not known                     |
|             | such columns), relative to the reference device            |                               |

A job of 0 s without iterations did no work and is left out. Rows may be in any order.
"""

import csv
import io
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rota.core.atomic import written
from rota.core.table import Floats, Table, read_table
from rota.workload.draws import draw_models, draw_priorities, models_note, priorities_note
from rota.workload.jobs import Workload, counted, workload
from rota.workload.measured import Measured
from rota.workload.profiles import MODELS
from rota.workload.records import left_out

FIELDS = ("id", "submit_s", "gpus", "duration_s")

STAGES = ("load_s", "compute_s", "sync_s")

SPEED = "speed_"


def read(path: Path, seed: int = 0, measured: Measured | None = None) -> Workload:
    """What a row leaves out is taken from its model's profile, or drawn.

    Profiles are those of Muri's models, or those that were measured elsewhere, if they are given; then a job
    with iterations takes as long as these do.
    """
    everything = read_table(path, FIELDS)
    table = everything.keep((everything.numbers("duration_s") > 0.0) | everything.given("iterations"))
    idle = len(everything) - len(table)
    models, unnamed = _models(table, seed)
    priority, unranked = _priorities(table, seed)
    gpus = table.positives("gpus")
    found = measured.columns(models, gpus) if measured else np.full((5, len(table)), np.nan)
    _check_profiles(table, models, found)
    iterations = table.positives_or_nan("iterations")
    iteration_s, *stages_s = (
        _either(table.positives_or_nan(name) if name == "iteration_s" else table.numbers_or_nan(name), row)
        for name, row in zip(("iteration_s", *STAGES), found, strict=False)
    )
    took_s = table.numbers("duration_s")
    return workload(
        path.stem,
        ids=table.ids("id"),
        submit_s=table.numbers("submit_s"),
        gpus=gpus,
        model=models,
        duration_s=_either(iterations * iteration_s, took_s) if measured else took_s,
        iterations=iterations,
        iteration_s=iteration_s,
        stages_s=stages_s,
        startup_s=found[-1],
        priority=priority,
        kinds=table.sets("kinds"),
        speeds=_speeds(table, models),
        notes=[
            *([left_out(idle, len(everything), "they took 0 s")] if idle else []),
            *_overruled(table, models, measured),
            *([models_note(unnamed, seed)] if unnamed else []),
            *([priorities_note(unranked, seed)] if unranked else []),
        ],
    )


def write(path: Path, jobs: Workload) -> None:
    """Write a workload so that `read` gives it back, but for its name (the file's) and its notes."""
    with written(path) as stream:
        stream.write(text(jobs).encode())


def text(jobs: Workload) -> str:
    """The workload as a CSV file."""
    models = [jobs.models[number] for number in jobs.model.tolist()]
    columns: dict[str, Iterable[str]] = {
        "id": jobs.ids,
        "submit_s": _exact(jobs.submit_s),
        "gpus": _exact(jobs.gpus),
        "model": models,
        "duration_s": _exact(jobs.duration_s),
        "iterations": _exact(jobs.iterations),
        "iteration_s": _exact(jobs.iteration_s),
        **{stage: _exact(seconds) for stage, seconds in zip(STAGES, jobs.stages_s, strict=True)},
        "priority": map(str, jobs.priority.tolist()),
        "kinds": map("|".join, jobs.kinds or [()] * len(jobs)),
    }
    for kind, speeds in jobs.speeds.items():
        cells = {model: _shortest(speed) for model, speed in speeds.items()}
        columns[SPEED + kind] = [cells.get(model, "") for model in models]
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*columns.values(), strict=True))
    return file.getvalue()


def _exact(column: Floats) -> list[str]:
    return [_shortest(value) for value in column.tolist()]


def _shortest(value: float) -> str:
    """The shortest text that is read back as the same number."""
    return repr(value).removesuffix(".0")


def _models(table: Table, seed: int) -> tuple[list[str], int]:
    """Every job's model, and how many of them were drawn."""
    named = table.optional("model")
    missing = named.count("")
    drawn = iter(draw_models(missing, seed))
    return [model or next(drawn) for model in named], missing


def _priorities(table: Table, seed: int) -> tuple[NDArray[np.int64], int]:
    """Every job's priority, and how many of them were drawn."""
    given = table.given("priority")
    priority = np.zeros(len(table), np.int64)
    if given.any():
        priority[given] = [int(value) for value in table.keep(given).one_of("priority", ("0", "1"))]
    missing = int(np.count_nonzero(~given))
    priority[~given] = draw_priorities(missing, seed)
    return priority, missing


def _either(first: Floats, second: Floats) -> Floats:
    """The first, and the second where that is NaN."""
    return np.where(np.isnan(first), second, first)


def _check_profiles(table: Table, models: Sequence[str], found: Floats) -> None:
    """A model that nobody measured must bring its own iteration time and stages."""
    complete = np.logical_and.reduce([table.given(name) for name in ("iteration_s", *STAGES)])
    for row, model in enumerate(models):
        if model not in MODELS and not complete[row] and np.isnan(found[0, row]):
            known = ", ".join(MODELS)
            raise table.wrong(
                "model", row, f"measured ({known}): give its iteration_s and {', '.join(STAGES)}"
            )


def _overruled(table: Table, models: Sequence[str], measured: Measured | None) -> Iterator[str]:
    """The note on jobs that say how long an iteration takes, though their model was measured."""
    if measured is None:
        return
    known = np.array([model in measured.rows for model in models], bool)
    jobs = int(np.count_nonzero(known & table.given("iteration_s")))
    if jobs:
        yield f"iteration_s in the trace for {counted(jobs)}: that counts, not what {measured.source} says"


def _speeds(table: Table, models: Sequence[str]) -> Mapping[str, Mapping[str, float]]:
    speeds: dict[str, dict[str, float]] = {}
    for column in table.columns:
        if column.startswith(SPEED):
            row_of = speeds.setdefault(column.removeprefix(SPEED), {})
            for row, speed in enumerate(table.positives_or_nan(column).tolist()):
                if not math.isnan(speed) and row_of.setdefault(models[row], speed) != speed:
                    raise table.wrong(
                        column, row, f"{_shortest(row_of[models[row]])}, as in another row of its model"
                    )
    return speeds
