"""`rota simulate` of a trace: its jobs on a cluster, under schedulers that are compared."""

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, is_dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from rota.commands.common import say, typed
from rota.commands.simulate import OF_TRACES, QUICK_JOBS
from rota.commands.simulate_flow import GridTask, Subject, announce, expanded, seen_from
from rota.config.load import dump, read
from rota.core.cluster import Cluster
from rota.core.durations import EXACT_DURATIONS, Durations
from rota.core.errors import ConfigError
from rota.core.files import root
from rota.core.policy import Policy
from rota.core.registry import is_outside, placed_name
from rota.library.inputs import NAMES, PATHS, schedulers
from rota.library.processes import progress_bar
from rota.library.simulate import digest, warm_up_once
from rota.policies.cluster.registry import canonical
from rota.results.folder import RunFolder
from rota.results.metrics import Metrics, MetricsRow, measure, table
from rota.results.parameters import Labels
from rota.results.run import RunHead, read_head, write_run
from rota.simulator.jobs import odd_speeds, simulate
from rota.simulator.jobs_config import SimulateConfig
from rota.workload.jobs import Workload

if TYPE_CHECKING:
    from rota.figures.grid_runs import ParameterGrid


class SimulatedRun(NamedTuple):
    """The result of a simulation, and the seconds that it took."""

    metrics: Metrics
    wall_s: float
    knows: str
    """What the scheduler knew of durations."""

    def row(self) -> dict[str, Any]:
        """Return it as JSON says it."""
        return {**asdict(self.metrics), "wall_s": self.wall_s, "knows": self.knows}


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
    results = RunFolder

    @property
    def name(self) -> str:
        return self.scheduler

    @cached_property
    def inputs(self) -> str:
        config = self.config
        rules = config.cost_model, config.placement.types, config.failures, config.durations
        return digest(self.jobs, self.cluster, self.policy, *rules)

    @property
    def policies(self) -> tuple[Policy]:
        return (self.policy,)

    def read(self, folder: Path) -> SimulatedRun:
        found = read_head(folder)
        return SimulatedRun(found.metrics, found.wall_s, found.knows)

    def warm_up(self) -> None:
        warm_up_once(self.policy, self.config.cost_model)

    def simulated(self, seed: int) -> SimulatedRun:
        """Simulate, and write the run to its folder: its timeline need not travel."""
        folder, cost, types = self.folder, self.config.cost_model, self.config.placement.types
        self.note_if_made_anew()
        self.warm_up()  # in another process: loaded, for it has been compiled before
        name = f"{self.point.name} {self.scheduler}".strip()
        with progress_bar(len(self.jobs), "job", None if self.alone else False, desc=name) as bar:

            def move_to(done: int) -> None:
                bar.update(done - bar.n)

            done = simulate(
                self.jobs, self.cluster, self.policy, cost, move_to, types,
                failures=self.config.failures, durations=self.config.durations,
            )  # fmt: skip
        if folder is None:
            metrics = measure(done.timeline, self.jobs, self.cluster).metrics
            return SimulatedRun(metrics, done.wall_s, done.knows)
        metrics = write_run(
            folder, scheduler=self.scheduler, workload=self.jobs, cluster=self.cluster,
            timeline=done.timeline, config_text=self.resolved(folder), inputs=self.inputs,
            wall_s=done.wall_s, command=self.command, parameters=self.point.parameters,
            knows=done.knows,
        )  # fmt: skip
        return SimulatedRun(metrics, done.wall_s, done.knows)

    def finish(self, made: Sequence[SimulatedRun]) -> SimulatedRun:
        return made[0]

    def head(self, made: SimulatedRun) -> RunHead:
        """Return the run as figures of a grid see it."""
        folder = RunFolder(self.folder or Path(self.point.name) / self.scheduler)
        return RunHead(
            folder=folder, scheduler=self.scheduler, command=self.command, wall_s=made.wall_s,
            metrics=made.metrics, parameters=self.point.parameters, knows=made.knows,
        )  # fmt: skip

    def resolved(self, folder: Path) -> str:
        """Return the configuration of this run, complete: it can be given to `rota simulate` as it is."""
        config, given = self.config, self.config.workload
        trace, profiles = seen_from(folder, given.trace), seen_from(folder, given.profiles)
        history = seen_from(folder, given.history)
        form = placed_name(given.format, Path.cwd()) if given.format else None
        workload = replace(
            given, trace=trace, format=form, profiles=profiles, history=history, jobs=len(self.jobs)
        )
        cluster = replace(config.cluster, file=seen_from(folder, config.cluster.file))
        spec = next(each for each in config.schedulers if canonical(each) == self.scheduler)
        named = placed_name(spec, Path.cwd()) if is_outside(spec) else self.scheduler
        text = dump(replace(config, workload=workload, cluster=cluster, schedulers=(named,)))
        options = dump(self.policy) if is_dataclass(self.policy) else ""
        agent = getattr(self.policy, "agent", None) if self.scheduler == "learned" else None
        if agent is not None:
            options = options.replace(json.dumps(str(agent)), json.dumps(str(seen_from(folder, agent))))
        return f"{text}\n[options.{self.scheduler}]\n{options}" if options else text


def _tasks(args: argparse.Namespace, table: dict[str, Any]) -> list[SimulationTask]:
    """Return every simulation, in the order of the table; raises what does not fit before anything runs."""
    file = args.config or (None if vars(args)["workload.trace"] else _shipped())
    cases = []
    for point, config, options in expanded(
        args, SimulateConfig, _base(table, file, args), list(_assignments(args)), file, PATHS, NAMES
    ):
        where = str(args.config or "command line")
        policies = schedulers(config.schedulers, config.placement.defaults_for, options, where)
        flags = [key for key in ("cluster.nodes", "cluster.gpus_per_node") if vars(args)[key] is not None]
        if flags and (config.cluster.groups or config.cluster.file):
            raise ConfigError("--nodes, --gpus-per-node: the configuration lists its nodes; leave them out")
        cases.append((point, config, policies))
    announce(sum(len(policies) for *_, policies in cases), len(cases), args.max_simulations)
    loaded: dict[str, Workload] = {}
    notes: dict[str, None] = {}
    tasks = []
    for point, config, policies in cases:
        wanted = repr(config.workload)
        if wanted not in loaded:
            loaded[wanted] = _jobs(config, args.quick)
        jobs, cluster = loaded[wanted], config.cluster.build()
        jobs.table(cluster)
        notes |= dict.fromkeys([*jobs.notes, *odd_speeds(cluster, jobs)])
        at = (point, args.out, typed())
        tasks += [
            SimulationTask(*at, name, policy, config, jobs, cluster, args.workers == 1)
            for name, policy in policies.items()
        ]
    for note in notes:
        say(f"note: {note}", file=sys.stderr)
    return tasks


def _jobs(config: SimulateConfig, quick: bool) -> Workload:
    jobs = config.workload.load()
    if quick and len(jobs) > QUICK_JOBS:
        return jobs.head(QUICK_JOBS).noted(f"quick: the first {QUICK_JOBS} of {len(jobs):,} jobs")
    return jobs


def _base(table: dict[str, Any], file: Path | None, args: argparse.Namespace) -> dict[str, Any]:
    """Return what the file says; a trace given as a flag replaces the workload and its format."""
    base: dict[str, Any] = read(file) if file and not args.config else dict(table)
    if vars(args)["workload.trace"] and isinstance(base.get("workload"), dict):
        gone = ("synthetic", "format", "options")
        base["workload"] = {key: value for key, value in base["workload"].items() if key not in gone}
    if isinstance(base.get("durations"), str):  # the short form: flags may set keys of the table
        base["durations"] = {Durations.SHORT: base["durations"]}
    return base


def _shipped() -> Path:
    path = root() / "config" / "simulate" / "shipped.toml"
    if not path.exists():
        raise ConfigError(
            f"no CONFIG and no --trace, and the shipped {path} is missing; give one, or install rota again"
        )
    return path


def _assignments(args: argparse.Namespace) -> Iterator[str]:
    """Return the flags as assignments to keys; text is quoted so that it stays text."""
    for _, key, metavar, _ in OF_TRACES:
        if (value := vars(args)[key]) is not None:
            yield f"{key}={value if metavar in ('N', 'S') else json.dumps(str(value))}"
    if args.draw_models:
        yield "workload.draw_models=true"
    if args.schedulers is not None:
        names = [name.strip() for name in args.schedulers.split(",") if name.strip()]
        yield f"schedulers={json.dumps(names)}"


def _rows(tasks: Sequence[SimulationTask], done: Sequence[SimulatedRun]) -> list[dict[str, Any]]:
    return [
        {**task.at(), "scheduler": task.scheduler, **made.row()}
        for task, made in zip(tasks, done, strict=True)
    ]


def _text(tasks: Sequence[SimulationTask], done: Sequence[SimulatedRun]) -> str:
    labels = Labels(task.point.parameters for task in tasks)
    names = [f"{labels.text(task.point.parameters)} {task.scheduler}".strip() for task in tasks]
    said = any(task.config.durations != EXACT_DURATIONS for task in tasks)
    return table(
        [
            MetricsRow(name, made.metrics, made.wall_s, made.knows if said else "")
            for name, made in zip(names, done, strict=True)
        ]
    )


def _grid(tasks: Sequence[SimulationTask], done: Sequence[SimulatedRun]) -> "ParameterGrid":
    from rota.figures.grid_runs import trace_grid

    return trace_grid([task.head(made) for task, made in zip(tasks, done, strict=True)])


TRACES = Subject(" schedulers", _tasks, _rows, _text, _grid)
