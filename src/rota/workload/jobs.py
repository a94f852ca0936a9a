"""A workload: the jobs of a trace as columns, sorted by submit time."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from rota.core import columns as c
from rota.core.cluster import Cluster
from rota.core.errors import InputError, TraceError
from rota.workload.profiles import ITERATION_FACTOR, MODELS, profile, startup_s

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Workload:
    """Training jobs, one per position of every column. Build it with `workload()`, which sorts and checks."""

    name: str
    ids: tuple[str, ...]
    submit_s: Floats
    gpus: Floats
    """Gang size; below 1 it is a fraction of one GPU."""
    iterations: Floats
    iteration_s: Floats
    """Seconds per iteration, alone on the reference device."""
    duration_s: Floats
    """What the trace says the job took; a solo run takes iterations × iteration_s."""
    stages_s: Floats
    """Three rows: seconds of loading, computing and synchronising in an iteration."""
    startup_s: Floats
    priority: NDArray[np.int64]
    """0 guaranteed, 1 opportunistic."""
    model: NDArray[np.int64]
    models: tuple[str, ...]
    kinds: tuple[tuple[str, ...], ...] = ()
    """The device kinds each job may run on, empty for any; no entry at all if no job minds."""
    speeds: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """Device kind → model → measured speed, where the trace comes with measurements."""
    notes: tuple[str, ...] = ()
    """What was not in the trace and had to be assumed."""

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def solo_s(self) -> Floats:
        """How long each job takes alone and undisturbed."""
        return self.iterations * self.iteration_s

    @property
    def gpu_s(self) -> float:
        """All the GPU time asked for."""
        return float(np.sum(self.solo_s * self.gpus))

    def head(self, jobs: int) -> "Workload":
        """The first jobs only."""
        return self._at(np.arange(min(jobs, len(self))))

    def noted(self, note: str) -> "Workload":
        return replace(self, notes=(*self.notes, note))

    def _at(self, rows: NDArray[np.int64]) -> "Workload":
        columns = ("submit_s", "gpus", "iterations", "iteration_s", "duration_s", "startup_s", "priority", "model")
        return replace(
            self,
            ids=tuple(self.ids[row] for row in rows),
            stages_s=self.stages_s[:, rows],
            kinds=tuple(self.kinds[row] for row in rows) if self.kinds else (),
            **{name: getattr(self, name)[rows] for name in columns},
        )

    def table(self, cluster: Cluster) -> Floats:
        """The jobs as the columns of `rota.core.columns`, for these machines."""
        slots = np.ceil(self.gpus * cluster.slots_per_gpu - 1e-9)
        self._check_fit(slots, cluster)
        table = np.zeros((c.GIVEN, len(self)))
        table[c.REMAINING] = self.iterations
        table[c.ITERATION_S] = self.iteration_s
        table[c.STARTUP_S] = self.startup_s
        table[c.GPUS] = slots
        table[c.SUBMIT_S] = self.submit_s
        table[c.DURATION_S] = self.duration_s
        table[c.PRIORITY] = self.priority
        table[c.LOAD_S : c.SYNC_S + 1] = self.stages_s
        table[c.MODEL] = self.model
        table[c.PROFILE] = self._profiles(slots)
        table[c.KINDS] = self._kind_sets(cluster)
        table[c.JOB] = np.arange(len(self))
        return table

    def _profiles(self, slots: Floats) -> NDArray[np.int64]:
        """The number of each job's (gang size, iteration time, stages) among the distinct ones."""
        rows = np.column_stack([slots, self.iteration_s, *self.stages_s])
        return np.unique(rows, axis=0, return_inverse=True)[1].reshape(-1)

    def _kind_sets(self, cluster: Cluster) -> Floats:
        if not self.kinds:
            return np.full(len(self), -1.0)
        bits = {kind: 1 << number for number, kind in enumerate(cluster.kinds)}
        return np.array([sum(bits.get(kind, 0) for kind in set(kinds)) or -1 for kinds in self.kinds], float)

    def _check_fit(self, slots: Floats, cluster: Cluster) -> None:
        """Every job must fit on the machines it may use when they are empty."""
        for row in np.flatnonzero(slots > cluster.slots)[:1]:
            raise InputError(
                f"{self.name}: job {self.ids[row]} needs {self.gpus[row]:g} GPUs; "
                f"the cluster has {cluster.slots // cluster.slots_per_gpu}. Use a larger cluster or leave the job out"
            )
        room = {kind: sum(node.slots for node in cluster.nodes if node.kind == kind) for kind in cluster.kinds}
        for row, kinds in enumerate(self.kinds):
            if kinds and slots[row] > sum(room.get(kind, 0) for kind in set(kinds)):
                raise InputError(
                    f"{self.name}: job {self.ids[row]} needs {self.gpus[row]:g} GPUs of kind {' or '.join(kinds)}; "
                    f"the cluster has {', '.join(f'{n // cluster.slots_per_gpu} {kind}' for kind, n in room.items())}"
                )


def workload(
    name: str,
    ids: Sequence[str],
    submit_s: Sequence[float] | Floats,
    gpus: Sequence[float] | Floats,
    model: Sequence[str],
    *,
    duration_s: Sequence[float] | Floats,
    iterations: Sequence[float] | Floats | None = None,
    iteration_s: Sequence[float] | Floats | None = None,
    stages_s: Sequence[Sequence[float]] | Floats | None = None,
    priority: Sequence[int] | NDArray[np.int64] | None = None,
    kinds: Sequence[tuple[str, ...]] = (),
    speeds: Mapping[str, Mapping[str, float]] | None = None,
    notes: Sequence[str] = (),
) -> Workload:
    """A workload from plain sequences, sorted by submit time (ties stay in the order given).

    Without iteration times and stages a job takes those of its model's profile; without iterations it
    takes as many as fill its duration.
    """
    if not ids:
        raise TraceError(f"{name}: no jobs in it")
    seen = dict.fromkeys(ids)
    if len(seen) != len(ids):
        twice = next(job for job in seen if list(ids).count(job) > 1)
        raise TraceError(f"{name}: job id {twice!r} appears more than once; ids must be unique")
    sizes = np.asarray(gpus, float)
    profiles = [profile(m, g) for m, g in zip(model, sizes.tolist(), strict=True)]
    per_iteration = (
        np.array([p.iteration_ms * ITERATION_FACTOR / 1000 for p in profiles])
        if iteration_s is None
        else np.asarray(iteration_s, float)
    )
    stages = (
        np.array([[ms / 1000 for ms in p.stages_ms] for p in profiles]).T
        if stages_s is None
        else np.asarray(stages_s, float).reshape(3, -1)
    )
    seconds = np.asarray(duration_s, float)
    models = tuple(dict.fromkeys(model))
    numbers = {m: number for number, m in enumerate(models)}
    jobs = Workload(
        name=name,
        ids=tuple(ids),
        submit_s=np.asarray(submit_s, float),
        gpus=sizes,
        iterations=seconds / per_iteration if iterations is None else np.asarray(iterations, float),
        iteration_s=per_iteration,
        duration_s=seconds,
        stages_s=stages,
        startup_s=np.array([startup_s(m, g) for m, g in zip(model, sizes.tolist(), strict=True)]),
        priority=np.zeros(len(ids), np.int64) if priority is None else np.asarray(priority, np.int64),
        model=np.array([numbers[m] for m in model], np.int64),
        models=models,
        kinds=tuple(kinds),
        speeds=speeds or {},
        notes=tuple(notes),
    )
    if np.all(np.diff(jobs.submit_s) >= 0):
        return jobs
    return jobs._at(np.argsort(jobs.submit_s, kind="stable"))


def draw_models(jobs: int, seed: int, models: Sequence[str] = MODELS) -> list[str]:
    """A model for each job that came without one."""
    rng = np.random.default_rng(seed)
    return [models[i] for i in rng.integers(len(models), size=jobs).tolist()]


def draw_priorities(jobs: int, seed: int) -> NDArray[np.int64]:
    """Guaranteed (0) or opportunistic (1), half and half, for jobs that came without a priority."""
    return np.random.default_rng([seed, 1]).integers(2, size=jobs)
