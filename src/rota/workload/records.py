"""Traces that record only when a job came, how many GPUs it held, and for how long.

The first job kept arrives at 0 s. A job that held its GPUs for 0 s did no work: it is left out. A job takes
as long as the trace says, and a start costs nothing; if models are drawn, a start costs what it costs their
models. Priorities are drawn unless the trace has them; the workload's notes say all of it.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from rota.core.arrays import Floats
from rota.core.errors import TraceError
from rota.core.source import name_of
from rota.core.table import Table
from rota.workload.draws import draw_models, draw_priorities, models_note, priorities_note
from rota.workload.jobs import UNNAMED, Workload, workload


def recorded(
    table: Table,
    ids: Sequence[str],
    submit_s: Floats,
    gpus: Floats,
    duration_s: Floats,
    seed: int,
    draws_models: bool,
    *,
    priority: NDArray[np.int64] | None = None,
    kinds: Sequence[tuple[str, ...]] = (),
    notes: Sequence[str] = (),
) -> Workload:
    """A workload of the rows of a table."""
    worked = np.flatnonzero(duration_s > 0.0)
    jobs, idle = len(worked), len(table) - len(worked)
    if not jobs:
        raise TraceError(f"{table.path}: no jobs in it that held a GPU for any time{_reasons(notes)}")
    said = [*notes, *([left_out(idle, len(table), "they took 0 s")] if idle else [])]
    if draws_models:
        said.append(models_note(jobs, seed))
    return workload(
        name_of(table.path),
        ids=[ids[row] for row in worked.tolist()],
        submit_s=submit_s[worked] - submit_s[worked].min(),
        gpus=gpus[worked],
        model=draw_models(jobs, seed) if draws_models else [UNNAMED] * jobs,
        duration_s=duration_s[worked],
        startup_s=None if draws_models else np.zeros(jobs),
        priority=draw_priorities(jobs, seed) if priority is None else priority[worked],
        kinds=[kinds[row] for row in worked.tolist()] if kinds else (),
        notes=said if priority is not None else [*said, priorities_note(jobs, seed)],
    )


def left_out(rows: int, of: int, why: str) -> str:
    """The note on rows that are not in the workload."""
    return f"{rows:,} of {of:,} jobs left out: {why}"


def _reasons(notes: Sequence[str]) -> str:
    return f" ({'; '.join(notes)})" if notes else ""
