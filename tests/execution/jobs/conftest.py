"""Small jobs that only take their time, on any engine; what each does can be counted."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rota.core.cluster import Cluster, Node
from rota.execution.engine import WorkerSetup
from rota.execution.folder import RunPaths
from rota.execution.jobs.assignments import SLICE, CompletedAssignment, parse_landed
from rota.execution.jobs.control import JobsOutcome, control_jobs
from rota.execution.jobs.spec import JobsSpec, OpportunisticJob
from rota.execution.journal import read_journal
from rota.execution.local import LocalConfig, LocalSlotConfig
from rota.execution.ray_config import RayConfig, RaySlotConfig
from rota.execution.slurm_config import SlurmConfig, SlurmNodeConfig
from rota.policies.cluster.registry import scheduler_class
from rota.simulator.jobs import warm_up
from rota.workload.jobs import Workload, workload

IDLE = "rota.execution.jobs.idle:idle_jobs"
KINDS = {"short": {"compute_s": 0.004}, "long": {"fetch_s": 0.002, "compute_s": 0.006}}


@dataclass(frozen=True)
class Few:
    """Some jobs: kind, slots, iterations, when they come."""

    jobs: Sequence[tuple[str, int, int, float]] = (
        ("long", 1, 60, 0.0),
        ("long", 2, 40, 0.0),
        ("short", 1, 30, 0.1),
        ("short", 2, 20, 0.2),
        ("short", 1, 10, 0.3),
    )
    scheduler: str = "srtf"
    options: dict[str, Any] = field(default_factory=dict)
    slots: int = 2
    slice_s: float = 0.03
    kinds: dict[str, Any] = field(default_factory=lambda: KINDS)
    site: str = IDLE
    opportunistic: tuple[str, float] | None = None
    """Kind and until when: the first slot is its own, on the first node."""

    @property
    def home(self) -> int:
        return 1 if self.opportunistic else 0

    @property
    def cluster(self) -> Cluster:
        return Cluster((Node(self.slots - self.home, kind="cpu"),))

    @property
    def workload(self) -> Workload:
        kinds, gpus, iterations, submit_s = zip(*self.jobs, strict=True)
        stages = [[self.kinds[k].get(s, 0.0) for k in kinds] for s in ("fetch_s", "compute_s", "exchange_s")]
        each = np.sum(stages, axis=0) + 1e-4
        return workload(
            "few",
            ids=[f"job{number}" for number in range(len(kinds))],
            submit_s=submit_s,
            gpus=gpus,
            model=kinds,
            duration_s=np.array(iterations) * each,
            iterations=iterations,
            iteration_s=each,
            stages_s=stages,
            startup_s=np.zeros(len(kinds)),
        )

    @property
    def policy(self) -> Any:
        return scheduler_class(self.scheduler)(**self.options)

    def spec(self) -> JobsSpec:
        jobs = self.workload
        return JobsSpec(
            ids=jobs.ids,
            kinds=[jobs.models[number] for number in jobs.model.tolist()],
            iterations=[int(count) for count in jobs.iterations],
            submit_s=jobs.submit_s.tolist(),
            table=jobs.table(self.cluster),
            cluster=self.cluster,
            places=range(self.home, self.slots),
            nodes=[0] * self.home + self.cluster.slot_nodes().tolist(),
            slice_s=self.slice_s,
            opportunistic=OpportunisticJob(self.opportunistic[0], (0,), self.opportunistic[1])
            if self.opportunistic
            else None,
        )


def run(few: Few, engine: Any, folder: Path, **more: Any) -> JobsOutcome:
    paths = RunPaths(folder / "books")
    setup = WorkerSetup(few.site, few.kinds, 0, paths)
    return control_jobs(
        few.spec(),
        few.scheduler,
        few.policy,
        lambda: engine.workers(engine.cluster(), setup),
        paths,
        **more,
    )


def here(few: Few) -> LocalConfig:
    return LocalConfig((LocalSlotConfig(count=few.slots, cores=0),))


@pytest.fixture(scope="session", autouse=True)
def warm():
    """What schedulers call is compiled: that takes seconds, which are not a run's."""
    for name in ("srtf", "muri-s"):
        warm_up(scheduler_class(name)(), real=True)


@pytest.fixture(params=["local", "ray", "slurm"])
def on_each(request, tmp_path, monkeypatch):
    """Runs jobs on each engine there is; its nodes are all on this machine, which only we know."""
    name = request.param
    fixture = {"ray": "ray", "slurm": "outside"}.get(name)
    found = request.getfixturevalue(fixture) if fixture else None
    if found:
        monkeypatch.setenv("GLOO_SOCKET_IFNAME", "lo")

    def conduct(few: Few) -> JobsOutcome:
        engine: Any = here(few)
        if name == "ray":
            slots = RaySlotConfig(count=few.slots, labels={"kind": "fast"})
            engine = RayConfig(found.address, (slots,))
        elif name == "slurm":
            engine = SlurmConfig((SlurmNodeConfig(slots=few.slots),))
        return run(few, engine, tmp_path)

    return conduct


@pytest.fixture
def locally(tmp_path):
    """Runs jobs on workers here; the same folder each time, so that a second call resumes."""
    return lambda few, **more: run(few, here(few), tmp_path, **more)


@pytest.fixture
def on_engine(tmp_path):
    """Runs jobs on an engine that is given."""
    return lambda few, engine, **more: run(few, engine, tmp_path, **more)


@pytest.fixture
def few():
    return Few


@pytest.fixture
def journal(tmp_path):
    return tmp_path / "books" / "journal.sqlite"


@pytest.fixture
def completions(journal):
    """What the journal says of slices."""

    def read() -> list[CompletedAssignment]:
        return [parse_landed(entry) for entry in read_journal(journal) if entry.kind == SLICE]

    return read
