"""Reader for the Microsoft ITP traces published with ElasticFlow (ASPLOS '23).

Header `job_id,submission_time,duration,num_gpu`: seconds since some moment, seconds, GPUs.
"""

from pathlib import Path

from rota.core.table import read_table
from rota.workload.jobs import Workload
from rota.workload.records import recorded

FIELDS = ("job_id", "submission_time", "duration", "num_gpu")


def read(path: Path, seed: int = 0, draw_models: bool = False) -> Workload:
    """Priorities are drawn; models if asked for."""
    table = read_table(path, FIELDS)
    return recorded(
        table,
        ids=table.ids("job_id"),
        submit_s=table.numbers("submission_time"),
        gpus=table.wholes("num_gpu", at_least=1),
        duration_s=table.numbers("duration"),
        seed=seed,
        draws_models=draw_models,
    )
