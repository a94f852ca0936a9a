"""Reader of Gavel's traces (OSDI '20) and the throughputs measured for their job types.

A `.trace` file has no header: job type, command, steps argument, whether it needs a data folder, total steps,
arrival (s) and gang size, between tabs. Its measurements are `simulation_throughputs.json` in the same
folder, or the only JSON file there, or else imported profiles in the folder `profiles` there. The V100 is the
reference device: an iteration takes 1 / its throughput there. Stages are borrowed from similar models.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from rota.core.arrays import Floats
from rota.core.errors import TraceError
from rota.core.files import name_of
from rota.core.table import Table, read_unnamed
from rota.recordings.folder import complete
from rota.recordings.gavel import REFERENCE, Throughputs, read_throughputs
from rota.workload.jobs import Workload, counted, draw_priorities, priorities_note, workload
from rota.workload.profiles import borrowed_stages_s

GAVEL_FIELDS = (
    "job_type",
    "command",
    "steps_argument",
    "needs_data_dir",
    "total_steps",
    "arrival_s",
    "gang_size",
)

HEADER = False

THROUGHPUTS = "simulation_throughputs.json"
PROFILES = "profiles"

KINDS = ("k80", "p100", "v100")


def read(path: Path, seed: int = 0, draw_models: bool = False) -> Workload:
    """Read a trace; priorities are drawn, durations are those of solo runs on the reference device."""
    table = read_unnamed(path, GAVEL_FIELDS)
    measured = read_throughputs(throughputs_beside(path))
    models, gangs = table.texts("job_type"), table.wholes("gang_size", at_least=1)
    iteration_s = _iterations_s(table, models, gangs, measured)
    iterations = table.positives("total_steps")
    stages = [borrowed_stages_s(_family(m), g, s) for m, g, s in zip(models, gangs, iteration_s, strict=True)]
    return workload(
        name_of(path),
        ids=[str(row) for row in range(len(table))],
        submit_s=table.numbers("arrival_s"),
        gpus=gangs,
        model=models,
        duration_s=iterations * iteration_s,
        iterations=iterations,
        iteration_s=iteration_s,
        stages_s=np.array(stages).T,
        priority=draw_priorities(len(table), seed),
        speeds=_speeds(models, measured),
        notes=[*_notes(models, gangs, measured), priorities_note(len(table), seed)],
    )


def throughputs_beside(trace: Path) -> Path:
    """Return the measurements that belong to a trace."""
    named = trace.parent / THROUGHPUTS
    if named.is_file():
        return named
    others = sorted(trace.parent.glob("*.json"))
    if not others and complete(trace.parent / PROFILES):
        return trace.parent / PROFILES
    if len(others) != 1:
        found = ", ".join(other.name for other in others) or "none"
        where = f"put {THROUGHPUTS} in its folder (JSON files there: {found}), or import it into {PROFILES}"
        raise TraceError(f"{trace}: needs the measured throughputs: {where}")
    return others[0]


def _family(job_type: str) -> str:
    """Return the family of a job type: `ResNet-18` of `ResNet-18 (batch size 16)`."""
    return job_type.split(" (")[0]


def _iterations_s(table: Table, models: Sequence[str], gangs: Floats, measured: Throughputs) -> Floats:
    steps = [measured.steps_per_s(model, int(gang)) for model, gang in zip(models, gangs, strict=True)]
    if None in steps:
        raise table.wrong("job_type", steps.index(None), f"among the job types measured on {REFERENCE}")
    with np.errstate(over="ignore"):
        found = np.asarray(1.0 / np.array(steps, np.float64))
    if not np.isfinite(found).all():
        raise table.wrong(
            "job_type", int(np.argmin(np.isfinite(found))), "measured as anything but standing still"
        )
    return found


def _speeds(models: Sequence[str], measured: Throughputs) -> Mapping[str, Mapping[str, float]]:
    found = {kind: {m: measured.speed(m, kind) for m in dict.fromkeys(models)} for kind in KINDS}
    return {kind: {m: speed for m, speed in row.items() if speed is not None} for kind, row in found.items()}


def _notes(models: Sequence[str], gangs: Floats, measured: Throughputs) -> list[str]:
    jobs = counted(len(models))
    notes = [f"stages not measured for {jobs}: proportions borrowed from the nearest model that has them"]
    other = sum(measured.measured_gang(m, int(g)) != g for m, g in zip(models, gangs, strict=True))
    if other:
        notes.append(f"{counted(other)} of a gang size not measured for the type: as the nearest measured")
    return notes
