"""One scheduler on the jobs of one point of a grid: simulated, here or in another process, and written."""

import os
from collections.abc import Sequence
from dataclasses import dataclass, is_dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from rota.commands.simulations import GridTask, note_made_anew
from rota.config.load import dump
from rota.core.cluster import Cluster
from rota.core.policy import Policy
from rota.core.registry import is_outside, placed_name
from rota.library.inputs import NamedPolicy
from rota.library.processes import progress_bar
from rota.library.simulate import as_run, digest, warm_up_once
from rota.policies.cluster.registry import canonical
from rota.results.folder import RunFolder
from rota.results.metrics import Metrics
from rota.results.run import RunHead, read_head
from rota.simulator.jobs import simulate
from rota.simulator.jobs_config import SimulateConfig
from rota.workload.jobs import Workload


class SimulatedRun(NamedTuple):
    """The result of a simulation, and the seconds that it took."""

    metrics: Metrics
    wall_s: float


@dataclass(frozen=True)
class SimulationTask(GridTask):
    """One scheduler on the jobs of one point, ready to run."""

    scheduler: str
    policy: Policy
    config: SimulateConfig
    jobs: Workload
    cluster: Cluster
    alone: bool
    """Whether it is simulated in this process, and may show a progress bar."""
    shows_progress = True

    @cached_property
    def inputs(self) -> str:
        config = self.config
        return digest(self.jobs, self.cluster, self.policy, config.cost_model, config.placement.types)

    @property
    def policies(self) -> tuple[Policy]:
        return (self.policy,)

    def found(self) -> SimulatedRun | None:
        if self.folder is None or not RunFolder(self.folder).complete(self.inputs):
            return None
        found = read_head(self.folder)
        return SimulatedRun(found.metrics, found.wall_s)

    def warm_up(self) -> None:
        warm_up_once(self.policy, self.config.cost_model)

    def simulated(self, seed: int) -> SimulatedRun:
        """Simulate, and write the run to its folder: its timeline need not travel."""
        folder, cost, types = self.folder, self.config.cost_model, self.config.placement.types
        if folder and RunFolder(folder).begun:
            note_made_anew(folder)
        self.warm_up()  # in another process: loaded, for it has been compiled before
        name = f"{self.point} {self.scheduler}".strip()
        with progress_bar(len(self.jobs), "job", None if self.alone else False, desc=name) as bar:

            def move_to(done: int) -> None:
                bar.update(done - bar.n)

            done = simulate(self.jobs, self.cluster, self.policy, cost, move_to, types)
        run = as_run(NamedPolicy(self.scheduler, self.policy), self.jobs, self.cluster, cost, types, done)
        if folder:
            run.described(
                config=self.resolved(folder),
                inputs=self.inputs,
                command=self.command,
                parameters=self.parameters,
            ).write(folder)
        return SimulatedRun(run.metrics, run.wall_s)

    def finish(self, made: Sequence[SimulatedRun]) -> SimulatedRun:
        return made[0]

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
