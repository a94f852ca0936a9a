"""Reader for the traces of the Muri simulator: iterations, iteration time and stages per job, in milliseconds."""

from pathlib import Path

from rota.workload.jobs import Workload, workload
from rota.workload.profiles import ITERATION_FACTOR
from rota.workload.rows import read_rows

FIELDS = (
    "job_id", "num_gpu", "submit_time", "iterations", "model_name", "duration", "iteration_time",
    "resource_time_0", "resource_time_1", "resource_time_2", "priority",
)  # fmt: skip


def read(path: Path, seed: int = 0) -> Workload:
    """Everything a job needs is in its row; nothing is drawn."""
    rows = list(read_rows(path, FIELDS))
    return workload(
        path.stem,
        ids=[row.text("job_id") for row in rows],
        submit_s=[row.number("submit_time") / 1000 for row in rows],
        gpus=[row.whole("num_gpu", at_least=1) for row in rows],
        model=[row.text("model_name") for row in rows],
        duration_s=[row.number("duration") / 1000 for row in rows],
        iterations=[row.positive("iterations") for row in rows],
        iteration_s=[row.positive("iteration_time") * ITERATION_FACTOR / 1000 for row in rows],
        stages_s=[[row.number(f"resource_time_{i}") / 1000 for row in rows] for i in range(3)],
        priority=[int(row.one_of("priority", ("0", "1"))) for row in rows],
    )
