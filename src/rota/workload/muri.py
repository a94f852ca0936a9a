"""Reader for the traces of the Muri simulator: iterations, iteration time and stages, in milliseconds."""

from pathlib import Path

from rota.core.costs import SCHEDULED
from rota.core.source import name_of
from rota.core.table import read_table
from rota.workload.jobs import Workload, workload

FIELDS = (
    "job_id", "num_gpu", "submit_time", "iterations", "model_name", "duration", "iteration_time",
    "resource_time_0", "resource_time_1", "resource_time_2", "priority",
)  # fmt: skip


def read(path: Path, seed: int = 0, draw_models: bool = False) -> Workload:
    """Everything a job needs is in its row; nothing is drawn."""
    table = read_table(path, FIELDS)
    return workload(
        name_of(path),
        ids=table.ids("job_id"),
        submit_s=table.numbers("submit_time") / 1000,
        gpus=table.wholes("num_gpu", at_least=1),
        model=table.texts("model_name"),
        duration_s=table.numbers("duration") / 1000,
        iterations=table.positives("iterations"),
        iteration_s=table.positives("iteration_time") * SCHEDULED / 1000,
        stages_s=[table.numbers(f"resource_time_{stage}") / 1000 for stage in range(3)],
        priority=[int(priority) for priority in table.one_of("priority", ("0", "1"))],
    )
