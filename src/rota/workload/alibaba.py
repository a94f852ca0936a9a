"""Reader for the pods of Alibaba's GPU cluster of 2023 (ATC '23): `openb_pod_list_{default,gpuspec*}.csv`.

Header `name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,
scheduled_time`, times in seconds. (The other lists of that trace have no times and cannot be replayed.)

A pod with one GPU may ask for thousandths of it (`gpu_milli`). It may run on the kinds in `gpu_spec`, joined
by `|`, or anywhere if that is empty. It ran from when it was scheduled until it was deleted; one that was
never scheduled counts from its creation. Latency-sensitive (LS) and Guaranteed pods are guaranteed
(priority 0); best-effort (BE) and Burstable ones opportunistic (1).
"""

from pathlib import Path

import numpy as np

from rota.core.arrays import Floats
from rota.core.table import Table, read_table
from rota.workload.jobs import Workload, counted
from rota.workload.records import left_out, recorded

FIELDS = (
    "name", "num_gpu", "gpu_milli", "gpu_spec", "qos", "creation_time", "deletion_time", "scheduled_time",
)  # fmt: skip

PRIORITIES = {"LS": 0, "Guaranteed": 0, "BE": 1, "Burstable": 1}


def read(path: Path, seed: int = 0, draw_models: bool = False) -> Workload:
    """Priorities follow from the quality of service; models are drawn if asked for."""
    everything = read_table(path, FIELDS)
    on_gpus = everything.wholes("num_gpu") > 0
    deleted = everything.given("deletion_time")
    table = everything.keep(on_gpus & deleted)
    unscheduled = int(np.count_nonzero(~table.given("scheduled_time")))
    return recorded(
        table,
        ids=table.ids("name"),
        submit_s=table.numbers("creation_time"),
        gpus=_gpus(table),
        duration_s=_durations_s(table),
        seed=seed,
        draws_models=draw_models,
        priority=np.array([PRIORITIES[qos] for qos in table.one_of("qos", tuple(PRIORITIES))], np.int64),
        kinds=table.sets("gpu_spec"),
        notes=_notes(
            len(everything),
            int(np.count_nonzero(~on_gpus)),
            int(np.count_nonzero(on_gpus & ~deleted)),
            unscheduled,
        ),
    )


def _gpus(table: Table) -> Floats:
    """Whole GPUs, or the fraction that a pod with one GPU asks for."""
    whole = table.wholes("num_gpu")
    milli = table.numbers("gpu_milli")
    shared = whole == 1.0
    wrong = shared & ((milli <= 0.0) | (milli > 1000.0))
    if wrong.any():
        raise table.wrong("gpu_milli", int(np.argmax(wrong)), "between 1 and 1000, thousandths of one GPU")
    return np.where(shared, milli / 1000, whole)


def _durations_s(table: Table) -> Floats:
    scheduled_s = table.numbers_or_nan("scheduled_time")
    began_s = np.where(np.isnan(scheduled_s), table.numbers("creation_time"), scheduled_s)
    duration_s = table.numbers("deletion_time") - began_s
    if (duration_s < 0.0).any():
        row = int(np.argmax(duration_s < 0.0))
        raise table.wrong("deletion_time", row, f"at or after {began_s[row]:.0f}, when the pod began")
    return duration_s


def _notes(pods: int, without_gpu: int, never_deleted: int, unscheduled: int) -> list[str]:
    notes = []
    if without_gpu:
        notes.append(left_out(without_gpu, pods, "they use no GPU"))
    if never_deleted:
        notes.append(left_out(never_deleted, pods, "they have no deletion time, so no duration"))
    if unscheduled:
        notes.append(f"{counted(unscheduled)} never scheduled: the duration counts from the creation")
    return notes
