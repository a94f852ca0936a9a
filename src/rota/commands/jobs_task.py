"""One scheduler on the jobs of one point of a grid: simulated, here or in another process, and written."""

import os
import sys
from dataclasses import dataclass, is_dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from rota.commands.common import say
from rota.config.load import dump
from rota.core.cluster import Cluster
from rota.core.policy import Policy
from rota.core.registry import is_outside, placed_name
from rota.library.inputs import NamedPolicy
from rota.library.simulate import as_run, digest, warm_up_once
from rota.policies.cluster.registry import canonical
from rota.results.folder import RunFolder
from rota.results.metrics import Metrics
from rota.results.parameters import Parameters
from rota.results.run import RunHead, read_head
from rota.simulator.jobs import simulate
from rota.simulator.jobs_config import SimulateConfig
from rota.workload.jobs import Workload


class SimulatedRun(NamedTuple):
    """What came of a simulation, and how long it took."""

    metrics: Metrics
    wall_s: float


@dataclass(frozen=True)
class SimulationTask:
    """One simulation, ready to run."""

    point: str
    """The name of its point of the grid; empty if there is none."""
    parameters: Parameters
    scheduler: str
    policy: Policy
    config: SimulateConfig
    jobs: Workload
    cluster: Cluster
    folder: Path | None
    """Where the run goes, if it is kept."""
    command: str
    """What asked for it."""

    @cached_property
    def inputs(self) -> str:
        """The digest of what the run follows from."""
        config = self.config
        return digest(self.jobs, self.cluster, self.policy, config.cost_model, config.placement.types)

    def found(self) -> SimulatedRun | None:
        """Return the run in the folder, if it was made from the same inputs."""
        if self.folder is None or not RunFolder(self.folder).complete(self.inputs):
            return None
        found = read_head(self.folder)
        return SimulatedRun(found.metrics, found.wall_s)

    def head(self, made: SimulatedRun) -> RunHead:
        """Return the run as figures of a grid see it."""
        folder = RunFolder(self.folder or Path(self.point) / self.scheduler)
        return RunHead(folder, self.scheduler, self.command, made.wall_s, made.metrics, self.parameters)

    def resolved(self, folder: Path) -> str:
        """Return the configuration of this run, complete: it can be given to `rota simulate` as it is."""

        def from_folder(path: Path | None) -> Path | None:
            return path and Path(os.path.relpath(path, folder))

        config, given = self.config, self.config.workload
        trace, profiles = from_folder(given.trace), from_folder(given.profiles)
        form = placed_name(given.format, Path.cwd()) if given.format else None
        workload = replace(given, trace=trace, format=form, profiles=profiles, jobs=len(self.jobs))
        cluster = replace(config.cluster, file=from_folder(config.cluster.file))
        spec = next(each for each in config.schedulers if canonical(each) == self.scheduler)
        named = placed_name(spec, Path.cwd()) if is_outside(spec) else self.scheduler
        text = dump(replace(config, workload=workload, cluster=cluster, schedulers=(named,)))
        options = dump(self.policy) if is_dataclass(self.policy) else ""
        return f"{text}\n[options.{self.scheduler}]\n{options}" if options else text


def simulate_task(task: SimulationTask, bar: bool) -> SimulatedRun:
    """Simulate, and write the run to its folder; with a bar if that is asked for."""
    folder, cost, types = task.folder, task.config.cost_model, task.config.placement.types
    if folder and RunFolder(folder).begun:
        say(f"{folder}: made anew, it was incomplete or made from other inputs", file=sys.stderr)
    warm_up_once(task.policy, cost)  # in a process of its own: loaded, for it has been compiled before
    with _progress(f"{task.point} {task.scheduler}".strip(), len(task.jobs), bar) as shown:
        done = simulate(task.jobs, task.cluster, task.policy, cost, shown.move_to, types)
    run = as_run(NamedPolicy(task.scheduler, task.policy), task.jobs, task.cluster, cost, types, done)
    if folder:
        run.described(
            config=task.resolved(folder), inputs=task.inputs, command=task.command, parameters=task.parameters
        ).write(folder)
    return SimulatedRun(run.metrics, run.wall_s)


class _progress:  # noqa: N801 (a context manager that reads like a function)
    """A bar on a terminal; nothing elsewhere."""

    def __init__(self, name: str, jobs: int, bar: bool) -> None:
        from tqdm import tqdm

        quiet = not (bar and sys.stderr.isatty())
        self._bar = tqdm(total=jobs, desc=name, unit="job", leave=False, disable=quiet, file=sys.stderr)

    def move_to(self, done: int) -> None:
        self._bar.update(done - self._bar.n)

    def __enter__(self) -> "_progress":
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.close()
