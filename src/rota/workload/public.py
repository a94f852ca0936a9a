"""Readers of published traces and cluster files: Philly, Azure, Helios and Acme, Alibaba and Muri."""

import json
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rota.core.arrays import Floats
from rota.core.cluster import Cluster, Node
from rota.core.costs import MURI_SCHEDULER_OVERHEAD
from rota.core.errors import TraceError
from rota.core.files import name_of
from rota.core.registry import describe_error
from rota.core.table import Table, first_line, open_table, read_table
from rota.workload.jobs import (
    UNNAMED,
    Workload,
    counted,
    draw_models,
    draw_priorities,
    models_note,
    priorities_note,
    workload,
)


def recorded(
    table: Table,
    ids: Sequence[str],
    submit_s: Floats,
    gpus: Floats,
    seed: int,
    draws_models: bool,
    *,
    duration_s: Floats | None = None,
    priority: NDArray[np.int64] | None = None,
    group: Sequence[str] = (),
    kinds: Sequence[tuple[str, ...]] = (),
    failed_after_s: Sequence[tuple[float, ...]] = (),
    failed: Sequence[bool] = (),
    notes: Sequence[str] = (),
) -> Workload:
    """Return the workload of a table's rows, with durations from the column `duration` if not given."""
    if duration_s is None:
        duration_s = table.numbers("duration")
    worked = np.flatnonzero(duration_s > 0.0)
    jobs, idle = len(worked), len(table) - len(worked)
    if not jobs:
        why = f" ({'; '.join(notes)})" if notes else ""
        raise TraceError(f"{table.path}: no jobs in it that held a GPU for any time{why}")
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
        group=[(group[row] if group else "") or UNNAMED for row in worked.tolist()],
        kinds=[kinds[row] for row in worked.tolist()] if kinds else (),
        failed_after_s=[failed_after_s[row] for row in worked.tolist()] if failed_after_s else (),
        failed=[failed[row] for row in worked.tolist()] if failed else (),
        notes=said if priority is not None else [*said, priorities_note(jobs, seed)],
    )


def left_out(rows: int, of: int, why: str) -> str:
    """Return the note on rows that are not in the workload."""
    return f"{rows:,} of {of:,} jobs left out: {why}"


AZURE_FIELDS = ("job_id", "submission_time", "duration", "num_gpu")


def read_azure(path: Path, seed: int = 0, draw_models: bool = False) -> Workload:
    """Read a trace; priorities are drawn, and models if asked for."""
    table = read_table(path, AZURE_FIELDS)
    ids, gpus = table.ids("job_id"), table.wholes("num_gpu", at_least=1)
    return recorded(table, ids, table.numbers("submission_time"), gpus, seed, draw_models)


HELIOS_FIELDS = ("job_id", "gpu_num", "submit_time", "duration")
FAILED_STATES = ("FAILED", "NODE_FAIL", "BOOT_FAIL", "OUT_OF_MEMORY", "TIMEOUT")
"""States of a job that has failed; one that was cancelled has not."""


def read_helios(path: Path, seed: int = 0, draw_models: bool = False) -> Workload:
    """Read a trace of Helios or Acme; priorities are drawn, and models if asked for."""
    everything = read_table(path, HELIOS_FIELDS)
    on_gpus = everything.wholes("gpu_num") > 0
    table = everything.keep(on_gpus)
    cpu_jobs = len(everything) - len(table)
    notes = [left_out(cpu_jobs, len(everything), "they use no GPU")] if cpu_jobs else []
    ids, gpus = table.ids("job_id"), table.wholes("gpu_num")
    failed = [state in FAILED_STATES for state in table.optional("state")]
    submit_s, users = table.times_s("submit_time"), table.optional("user")
    return recorded(
        table, ids, submit_s, gpus, seed, draw_models, group=users, failed=failed, notes=notes
    )  # fmt: skip


PHILLY_FIELDS = ("timestamp", "duration", "num_gpus")


def read_philly(path: Path, seed: int = 0, draw_models: bool = False) -> Workload:
    """Read a trace, or the log that it was made from; priorities are drawn, and models if asked for."""
    if is_log(path):
        return read_log(path, seed, draw_models)
    table = read_table(path, PHILLY_FIELDS)
    ids, gpus = [str(row) for row in range(len(table))], table.wholes("num_gpus", at_least=1)
    submit_s, clusters = table.times_s("timestamp"), table.optional("cluster")
    return recorded(table, ids, submit_s, gpus, seed, draw_models, group=clusters)


def is_log(path: Path) -> bool:
    """Return whether a file is a log in JSON, as Philly's."""
    return first_line(path).lstrip().startswith("[")


def read_log(path: Path, seed: int = 0, draw_models: bool = False) -> Workload:
    """Read Philly's `cluster_job_log`: a list of jobs, each with its status and all of its attempts.

    A job takes as long as its attempts took together, and has the GPUs of the largest one. Every attempt but
    the last has failed.
    """
    with open_table(path) as file:
        try:
            found = json.load(file)
        except ValueError as error:
            raise TraceError(f"{path}: is not JSON ({error}); expected a list of jobs") from None
    jobs = [PhillyJob.of(path, number, each) for number, each in enumerate(found, 1)]
    ran = [job for job in jobs if job.gpus > 0]
    columns = {
        "jobid": [job.name for job in ran],
        "submitted_time": [job.submitted for job in ran],
    }
    table = Table(path, [job.number for job in ran], columns, "job")
    never = len(jobs) - len(ran)
    return recorded(
        table,
        table.ids("jobid"),
        table.times_s("submitted_time"),
        np.array([job.gpus for job in ran], float),
        seed,
        draw_models,
        duration_s=np.array([sum(job.attempts_s) for job in ran]),
        group=[job.cluster for job in ran],
        failed_after_s=[tuple(at_s for at_s in job.attempts_s[:-1] if at_s > 0.0) for job in ran],
        failed=[job.status == "Failed" for job in ran],
        notes=[left_out(never, len(jobs), "they have no attempt on GPUs")] if never else [],
    )


class PhillyJob(NamedTuple):
    """A job of Philly's log."""

    number: int
    """Position in the log, from 1 on."""
    name: str
    submitted: str
    status: str
    """Pass, Killed or Failed."""
    cluster: str
    """The virtual cluster, if the log says it."""
    attempts_s: tuple[float, ...]
    """Seconds that each attempt took; 0 where the log does not say when it ended."""
    gpus: int

    @classmethod
    def of(cls, path: Path, number: int, job: Any) -> "PhillyJob":
        """Return a job of the parsed log. Raises TraceError if it is not one."""
        try:
            sizes = [sum(len(node["gpus"]) for node in each["detail"]) for each in job["attempts"]]
            took_s = [_took_s(each["start_time"], each["end_time"]) for each in job["attempts"]]
            said = str(job["jobid"]), str(job["submitted_time"]), str(job["status"]), str(job.get("vc") or "")
        except (KeyError, TypeError, ValueError) as error:
            what = "expected jobid, submitted_time, status and attempts, as in Philly's cluster_job_log"
            raise TraceError(f"{path}: job {number}: {describe_error(error)}; {what}") from None
        return cls(number, *said, tuple(took_s), max(sizes, default=0))


def _took_s(start: str | None, end: str | None) -> float:
    if start in (None, "None") or end in (None, "None"):
        return 0.0
    seconds = (datetime.fromisoformat(str(end)) - datetime.fromisoformat(str(start))).total_seconds()
    return max(seconds, 0.0)


ALIBABA_FIELDS = (
    "name", "num_gpu", "gpu_milli", "gpu_spec", "qos", "creation_time", "deletion_time", "scheduled_time",
)  # fmt: skip

PRIORITIES = {"LS": 0, "Guaranteed": 0, "BE": 1, "Burstable": 1}


def read_alibaba(path: Path, seed: int = 0, draw_models: bool = False) -> Workload:
    """Read a trace; priorities follow from the quality of service, models are drawn if asked for."""
    everything = read_table(path, ALIBABA_FIELDS)
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
    """Return whole GPUs, or the fraction that a pod with one GPU asks for."""
    whole = table.wholes("num_gpu")
    milli = table.numbers("gpu_milli")
    shared = whole == 1.0
    right = ~shared | ((milli > 0.0) & (milli <= 1000.0))
    table.check("gpu_milli", right, "between 1 and 1000, thousandths of one GPU")
    return np.where(shared, milli / 1000, whole)


def _durations_s(table: Table) -> Floats:
    scheduled_s = table.numbers_or_nan("scheduled_time")
    began_s = np.where(np.isnan(scheduled_s), table.numbers("creation_time"), scheduled_s)
    duration_s = table.numbers("deletion_time") - began_s
    for row in np.flatnonzero(duration_s < 0.0)[:1].tolist():
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


MURI_FIELDS = (
    "job_id", "num_gpu", "submit_time", "iterations", "model_name", "duration", "iteration_time",
    "resource_time_0", "resource_time_1", "resource_time_2", "priority",
)  # fmt: skip


def read_muri(path: Path, seed: int = 0, draw_models: bool = False) -> Workload:
    """Read a trace whose rows say everything; nothing is drawn."""
    table = read_table(path, MURI_FIELDS)
    return workload(
        name_of(path),
        ids=table.ids("job_id"),
        submit_s=table.numbers("submit_time") / 1000,
        gpus=table.wholes("num_gpu", at_least=1),
        model=table.texts("model_name"),
        duration_s=table.numbers("duration") / 1000,
        iterations=table.positives("iterations"),
        iteration_s=table.positives("iteration_time") * MURI_SCHEDULER_OVERHEAD / 1000,
        stages_s=[table.numbers(f"resource_time_{stage}") / 1000 for stage in range(3)],
        priority=[int(priority) for priority in table.one_of("priority", ("0", "1"))],
    )


CLUSTER_FIELDS = ("num_switch", "num_node_p_switch", "num_gpu_p_node")
NODE_FIELDS = ("sn", "gpu", "model")


def read_cluster(path: Path) -> Cluster:
    """Read equal nodes: `num_switch,num_node_p_switch,num_gpu_p_node,num_cpu_p_node,mem_p_node`, one row.

    CPUs and memory are not modelled.
    """
    table = read_table(path, CLUSTER_FIELDS)
    if len(table) != 1:
        raise TraceError(
            f"{path}: {len(table)} rows after the header; expected 1, which describes the whole cluster"
        )
    switches, nodes, gpus = (int(table.wholes(name, at_least=1)[0]) for name in CLUSTER_FIELDS)
    return Cluster.uniform(nodes, gpus, switches)


def read_nodes(path: Path) -> Cluster:
    """Read unequal nodes: Alibaba's `openb_node_list`, `sn,cpu_milli,memory_mib,gpu,model`, a row per node.

    Nodes without GPUs are left out; all are on one switch, as the list does not say.
    """
    table = read_table(path, NODE_FIELDS)
    table.ids("sn")
    with_gpus = table.keep(table.wholes("gpu") > 0)
    if not len(with_gpus):
        raise TraceError(f"{path}: no node in it has a GPU")
    gpus, kinds = with_gpus.wholes("gpu").tolist(), with_gpus.texts("model")
    return Cluster(tuple(Node(int(slots), kind=kind) for slots, kind in zip(gpus, kinds, strict=True)))
