"""Reader for Microsoft's Philly trace (ATC '19) in the one-line-per-job form of the Pollux artifact.

Header `timestamp,duration,num_gpus,gpu_time,cluster`: wall-clock arrival, seconds, GPUs; not sorted. The
trace names no jobs, so a job's id is its place in the file, from 0.
"""

from pathlib import Path

from rota.core.table import read_table
from rota.workload.jobs import Workload
from rota.workload.records import recorded

FIELDS = ("timestamp", "duration", "num_gpus")


def read(path: Path, seed: int = 0, draw_models: bool = False) -> Workload:
    """Priorities are drawn; models if asked for."""
    table = read_table(path, FIELDS)
    return recorded(
        table,
        ids=[str(row) for row in range(len(table))],
        submit_s=table.times_s("timestamp"),
        gpus=table.wholes("num_gpus", at_least=1),
        duration_s=table.numbers("duration"),
        seed=seed,
        draws_models=draw_models,
    )
