"""Reader for the Helios traces of SenseTime (SC '21): a cluster's `cluster_log.csv`.

Header `job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue`:
wall-clock times, seconds. Jobs without a GPU are CPU jobs and left out. Jobs of every final state count:
they held their GPUs, whether they succeeded or not.
"""

from pathlib import Path

from rota.core.table import read_table
from rota.workload.jobs import Workload
from rota.workload.records import left_out, recorded

FIELDS = ("job_id", "gpu_num", "submit_time", "duration")


def read(path: Path, seed: int = 0, draw_models: bool = False) -> Workload:
    """Priorities are drawn; models if asked for."""
    everything = read_table(path, FIELDS)
    on_gpus = everything.wholes("gpu_num") > 0
    table = everything.keep(on_gpus)
    cpu_jobs = len(everything) - len(table)
    return recorded(
        table,
        ids=table.ids("job_id"),
        submit_s=table.times_s("submit_time"),
        gpus=table.wholes("gpu_num"),
        duration_s=table.numbers("duration"),
        seed=seed,
        draws_models=draw_models,
        notes=[left_out(cpu_jobs, len(everything), "they use no GPU")] if cpu_jobs else [],
    )
