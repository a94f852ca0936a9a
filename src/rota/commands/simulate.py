"""`rota simulate`: simulate a workload under schedulers and compare them."""

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rota.commands import simulate_population, simulations
from rota.commands.common import given_file, say, typed
from rota.core.errors import ConfigError
from rota.core.files import root

if TYPE_CHECKING:
    from rota.commands.jobs_task import SimulatedRun, SimulationTask
    from rota.config.grid import GridPoint
    from rota.core.policy import Policy
    from rota.figures.grid_runs import ParameterGrid
    from rota.simulator.jobs_config import SimulateConfig
    from rota.workload.jobs import Workload

QUICK_JOBS = 60

FLAGS: tuple[tuple[str, str, str, str], ...] = (
    # flag, key of the configuration, metavar, help
    ("--trace", "workload.trace", "FILE", "the trace to simulate"),
    (
        "--format",
        "workload.format",
        "NAME",
        "its format, or a function of yours, as file.py:function; guessed from the file if not given",
    ),
    ("--jobs", "workload.jobs", "N", "keep only the first N jobs"),
    ("--nodes", "cluster.nodes", "N", "equal nodes (per switch)"),
    ("--gpus-per-node", "cluster.gpus_per_node", "N", "GPUs in each of them"),
    ("--startup-s", "workload.startup_s", "S", "seconds that each start costs (what the trace says, or 0)"),
    ("--cost", "cost", "MODEL", "restart (default), or interval: the rule of the Muri simulator"),
)


def add_parser(subparsers: Any) -> None:
    """Add `simulate`. Nothing heavy is imported for it."""
    parser = subparsers.add_parser(
        "simulate",
        help="simulate a workload under schedulers, or a population under allocations, and compare them",
        description="Simulate a workload under schedulers. Without CONFIG and --trace: the shipped workload. "
        "With --population, or a CONFIG that has one: simulate a population on unequal slots.",
    )
    parser.add_argument(
        "config", nargs="?", type=given_file, metavar="CONFIG", help="a TOML file, as in config/simulate"
    )
    for flag, key, metavar, meaning in FLAGS:
        kind = given_file if metavar == "FILE" else str
        parser.add_argument(flag, dest=key, type=kind, metavar=metavar, help=meaning)
    parser.add_argument(
        "--draw-models",
        action="store_true",
        help="give jobs whose stages are not known models that have some",
    )
    parser.add_argument(
        "--schedulers",
        metavar="A,B,…",
        help="which schedulers to compare; also a class of yours, as file.py:Class; all if not given",
    )
    parser.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", help="set any key of the configuration"
    )
    parser.add_argument("--help-config", action="store_true", help="list the keys of the configuration")
    parser.add_argument(
        "--out", type=Path, metavar="DIR", help="keep the runs here; one that is there is reused"
    )
    parser.add_argument(
        "--replace", action="store_true", help="also where another command has left another run"
    )
    parser.add_argument("--json", action="store_true", help="print JSON on standard output, and nothing else")
    parser.add_argument(
        "--quick", action="store_true", help=f"only the first {QUICK_JOBS} jobs; short trials"
    )
    simulations.add_flags(parser)
    simulate_population.add_flags(parser)


def run(args: argparse.Namespace) -> int:
    if args.help_config:
        _print_keys()
        return 0
    from rota.config.load import read

    table = read(args.config) if args.config else {}
    of_traces = {key: flag for flag, key, _, _ in FLAGS} | {"schedulers": "--schedulers"}
    asked = simulate_population.asked(args, table, of_traces)
    return simulations.simulate_all(args, table, simulate_population.POPULATIONS if asked else TRACES)


@dataclass(frozen=True, slots=True)
class GridCase:
    """One point of the grid, bound and checked but for its jobs."""

    point: "GridPoint"
    config: "SimulateConfig"
    policies: dict[str, "Policy"]


def _cases(args: argparse.Namespace, table: dict[str, Any]) -> list[GridCase]:
    """Put the flags over the configuration, and check all of it but the jobs."""
    from rota.config.bind import bind
    from rota.library.inputs import NAMES, PATHS, schedulers
    from rota.simulator.jobs_config import SimulateConfig

    file = args.config or (None if vars(args)["workload.trace"] else _shipped())
    assignments = [*_assignments(args), *args.set]
    folder, where = file.parent if file else Path(), simulations.named(args)
    cases = []
    points = simulations.expanded(args, _base(table, file, args), assignments, folder, PATHS, NAMES)
    for point, raw, options in points:
        config = bind(SimulateConfig, raw, where)
        policies = schedulers(config.schedulers, config.placement.defaults_for, options, where)
        lists_machines = config.cluster.groups or config.cluster.file
        if lists_machines and _flags(args, "cluster.nodes", "cluster.gpus_per_node"):
            raise ConfigError("--nodes, --gpus-per-node: the configuration lists its nodes; leave them out")
        cases.append(GridCase(point, config, policies))
    return cases


def _tasks(args: argparse.Namespace, table: dict[str, Any]) -> "list[SimulationTask]":
    """Return every simulation, in the order of the table; raises what does not fit before anything runs."""
    from rota.commands.jobs_task import SimulationTask
    from rota.simulator.jobs import odd_speeds

    cases = _cases(args, table)
    simulations.announce(sum(len(case.policies) for case in cases), len(cases), args.max_simulations)
    loaded: dict[str, Workload] = {}
    notes: dict[str, None] = {}
    tasks = []
    for point, config, policies in ((case.point, case.config, case.policies) for case in cases):
        wanted = repr(config.workload)
        if wanted not in loaded:
            loaded[wanted] = _jobs(config, args.quick)
        jobs, cluster = loaded[wanted], config.cluster.build()
        jobs.table(cluster)
        notes |= dict.fromkeys([*jobs.notes, *odd_speeds(cluster, jobs)])
        for name, policy in policies.items():
            folder = args.out / point.name / name if args.out else None
            at = (point.name, point.parameters, folder, typed())
            tasks.append(SimulationTask(*at, name, policy, config, jobs, cluster, args.workers == 1))
    for note in notes:
        say(f"note: {note}", file=sys.stderr)
    return tasks


def _jobs(config: "SimulateConfig", quick: bool) -> "Workload":
    jobs = config.workload.load()
    if quick and len(jobs) > QUICK_JOBS:
        return jobs.head(QUICK_JOBS).noted(f"quick: the first {QUICK_JOBS} of {len(jobs):,} jobs")
    return jobs


def _base(table: dict[str, Any], file: Path | None, args: argparse.Namespace) -> dict[str, Any]:
    """Return what the file says; a trace given as a flag replaces the workload and its format."""
    from rota.config.load import read

    base: dict[str, Any] = read(file) if file and not args.config else dict(table)
    if vars(args)["workload.trace"] and isinstance(base.get("workload"), dict):
        gone = ("synthetic", "format", "options")
        base["workload"] = {key: value for key, value in base["workload"].items() if key not in gone}
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
    given = vars(args)
    for _, key, metavar, _ in FLAGS:
        if given[key] is not None:
            yield f"{key}={given[key] if metavar in ('N', 'S') else json.dumps(str(given[key]))}"
    if args.draw_models:
        yield "workload.draw_models=true"
    if args.schedulers is not None:
        names = [name.strip() for name in args.schedulers.split(",") if name.strip()]
        yield f"schedulers={json.dumps(names)}"


def _flags(args: argparse.Namespace, *keys: str) -> bool:
    return any(vars(args)[key] is not None for key in keys)


def _text(tasks: "Sequence[SimulationTask]", done: "Sequence[SimulatedRun]") -> str:
    from rota.results.metrics import MetricsRow, table
    from rota.results.parameters import Labels

    labels = Labels(task.parameters for task in tasks)
    names = [f"{labels.text(task.parameters)} {task.scheduler}".strip() for task in tasks]
    return table([MetricsRow(name, *made) for name, made in zip(names, done, strict=True)])


def _rows(tasks: "Sequence[SimulationTask]", done: "Sequence[SimulatedRun]") -> list[dict[str, Any]]:
    return [
        {**task.at(), "scheduler": task.scheduler, **asdict(made.metrics), "wall_s": made.wall_s}
        for task, made in zip(tasks, done, strict=True)
    ]


def _grid(tasks: "Sequence[SimulationTask]", done: "Sequence[SimulatedRun]") -> "ParameterGrid":
    from rota.figures.grid_runs import trace_grid

    return trace_grid([task.head(made) for task, made in zip(tasks, done, strict=True)])


TRACES = simulations.Subject(" schedulers", _tasks, _rows, _text, _grid)


def _print_keys() -> None:
    from rota.config.describe import help_text
    from rota.policies.cluster.registry import SCHEDULERS, scheduler_class
    from rota.simulator.jobs_config import SimulateConfig

    say(help_text(SimulateConfig))
    for name in SCHEDULERS:
        say(f"\n[options.{name}]\n{help_text(scheduler_class(name))}")
    simulate_population.print_keys()
