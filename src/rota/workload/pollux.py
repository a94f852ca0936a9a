"""Reader of the workloads of Pollux (OSDI '21) and Sia (SOSP '23), with the applications in them.

The header is `name,time,application,num_replicas,batch_size`, with times in seconds. The folders of the
applications are next to the workload or in its parent folder (see `recordings.pollux`).

A job trains as long as the validated run with its batch size, or with the nearest one. An iteration is a step
of its gang, packed on 4-GPU nodes, with its batch divided evenly. Synchronising is measured; the rest of a
step is split between loading and computing as in the nearest model with known stages.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from rota.core.arrays import Floats
from rota.core.errors import TraceError
from rota.core.files import name_of
from rota.core.table import Table, read_table
from rota.recordings.pollux import Application, is_application, read_application
from rota.workload.jobs import Workload, counted, draw_priorities, priorities_note, workload
from rota.workload.profiles import split_stages_s

POLLUX_FIELDS = ("name", "time", "application", "num_replicas", "batch_size")

Asked = list[tuple[str, int, int]]
"""Application, GPUs and batch size of each job."""


def read(path: Path, seed: int = 0, draw_models: bool = False) -> Workload:
    """Read a trace; priorities are drawn, durations are those of solo runs."""
    table = read_table(path, POLLUX_FIELDS)
    names, gpus = table.texts("application"), table.wholes("num_replicas", at_least=1)
    batches = table.wholes("batch_size", at_least=1)
    asked = [(n, int(g), int(b)) for n, g, b in zip(names, gpus.tolist(), batches.tolist(), strict=True)]
    measured = {name: read_application(_folder(table, name)) for name in dict.fromkeys(names)}
    steps_s = [measured[name].iteration_s(size, batch) for name, size, batch in asked]
    iterations = _iterations(asked, measured)
    iteration_s = np.array([step_s for step_s, _ in steps_s])
    return workload(
        name_of(path),
        ids=table.ids("name"),
        submit_s=table.numbers("time"),
        gpus=gpus,
        model=names,
        duration_s=iterations * iteration_s,
        iterations=iterations,
        iteration_s=iteration_s,
        stages_s=_stages_s(asked, steps_s),
        priority=draw_priorities(len(table), seed),
        notes=[*_notes(asked, measured), priorities_note(len(table), seed)],
    )


def _folder(table: Table, application: str) -> Path:
    row = table.texts("application").index(application)
    for place in (table.path.parent, table.path.parent.parent):
        if application == Path(application).name and is_application(place / application):
            return place / application
    raise TraceError(
        f"{table.wrong('application', row, 'measured')}: expected {application[:80]}/placements.csv "
        f"in {table.path.parent} or its parent"
    )


def _iterations(asked: Asked, measured: Mapping[str, Application]) -> Floats:
    runs = ((measured[name], batch) for name, _, batch in asked)
    return np.array([run.iterations[run.measured_batch(batch)] for run, batch in runs], float)


def _stages_s(asked: Asked, steps_s: Sequence[tuple[float, float]]) -> Floats:
    jobs = zip(asked, steps_s, strict=True)
    stages = [split_stages_s(name, gpus, *step_s) for (name, gpus, _), step_s in jobs]
    return np.array(stages).reshape(-1, 3).T


def _notes(asked: Asked, measured: Mapping[str, Application]) -> list[str]:
    jobs = counted(len(asked))
    notes = [f"loading and computing not measured apart for {jobs}: split as in the nearest model"]
    gangs = sum(measured[name].measured_gang(gpus) != gpus for name, gpus, _ in asked)
    if gangs:
        notes.append(f"{counted(gangs)} of a gang size not measured: as the nearest measured")
    batches = sum(measured[name].measured_batch(batch) != batch for name, _, batch in asked)
    if batches:
        notes.append(f"{counted(batches)} of a batch size without a training run: as long as the nearest")
    return notes
