"""`rota simulate`: replay a workload under schedulers and compare them."""

import argparse
import hashlib
import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from threading import Timer
from typing import TYPE_CHECKING, Any

from rota.commands import simulate_population
from rota.commands.typed import typed
from rota.core.errors import ConfigError

if TYPE_CHECKING:
    from rota.core.cluster import Cluster
    from rota.core.loop import Policy
    from rota.replay.experiment import SimulateConfig
    from rota.results.metrics import Metrics
    from rota.workload.jobs import Workload

QUICK_JOBS = 60
SLOW_S = 1.5
JSON_KEYS = ("jobs", "avg_jct_s", "p99_jct_s", "makespan_s")

FLAGS: tuple[tuple[str, str, str, str], ...] = (
    # flag, key of the configuration, metavar, help
    ("--trace", "workload.trace", "FILE", "the trace to replay"),
    ("--format", "workload.format", "NAME", "its format; guessed from the file if not given"),
    ("--jobs", "workload.jobs", "N", "keep only the first N jobs"),
    ("--nodes", "cluster.nodes", "N", "equal nodes (per switch)"),
    ("--gpus-per-node", "cluster.gpus_per_node", "N", "GPUs in each of them"),
    ("--cost", "cost", "MODEL", "restart (default), or interval: the rule of the Muri simulator"),
)


def add_parser(subparsers: Any) -> None:
    """Add `simulate`. Nothing heavy is imported for it."""
    parser = subparsers.add_parser(
        "simulate",
        help="replay a workload under schedulers, or a population under allocations, and compare them",
        description="Replays a workload under schedulers. Without CONFIG and --trace: the shipped workload. "
        "With --population, or a CONFIG that has one: trains a population on unequal slots, on paper.",
    )
    parser.add_argument(
        "config", nargs="?", type=Path, metavar="CONFIG", help="a TOML file, as in config/simulate"
    )
    for flag, key, metavar, meaning in FLAGS:
        parser.add_argument(flag, dest=key, metavar=metavar, help=meaning)
    parser.add_argument("--schedulers", metavar="A,B,…", help="which schedulers to compare; all if not given")
    parser.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", help="set any key of the configuration"
    )
    parser.add_argument("--help-config", action="store_true", help="list the keys of the configuration")
    parser.add_argument(
        "--out", type=Path, metavar="DIR", help="keep the runs here; one that is there is reused"
    )
    parser.add_argument("--json", action="store_true", help="print JSON on standard output, and nothing else")
    parser.add_argument(
        "--quick", action="store_true", help=f"only the first {QUICK_JOBS} jobs; short trials"
    )
    simulate_population.add_flags(parser)


def run(args: argparse.Namespace) -> int:
    if args.help_config:
        _print_keys()
        return 0
    of_traces = {key: flag for flag, key, _, _ in FLAGS} | {"schedulers": "--schedulers"}
    if simulate_population.asked(args, of_traces):
        return simulate_population.run(args)
    from rota.results.table import Line, table

    rows: list[Outcome] = []
    for case in _cases(args):
        rows += _simulate(case, args)
    if args.json:
        print(json.dumps([_json_row(row) for row in rows]))
    else:
        names = [f"{row.case} {row.scheduler}".strip() for row in rows]
        lines = zip(names, rows, strict=True)
        print(table([Line(name, row.metrics, row.wall_s, row.first_s) for name, row in lines]))
    return 0


@dataclass(frozen=True, slots=True)
class Case:
    """One point of the grid, ready to run."""

    name: str
    config: "SimulateConfig"
    policies: dict[str, "Policy"]
    jobs: "Workload"
    cluster: "Cluster"


@dataclass(frozen=True, slots=True)
class Outcome:
    """One line of the table."""

    case: str
    scheduler: str
    metrics: "Metrics"
    wall_s: float
    first_s: float
    """When the first job was submitted."""


def _cases(args: argparse.Namespace) -> list[Case]:
    """Read the configuration, put the flags over it, and check all of it before anything runs."""
    from rota.commands.cluster_policies import PATHS, schedulers
    from rota.config.bind import bind
    from rota.config.grid import expand
    from rota.config.load import override
    from rota.config.paths import placed
    from rota.replay.experiment import SimulateConfig

    file = args.config or (None if vars(args)["workload.trace"] else _shipped())
    assignments = [*_assignments(args), *args.set]
    table = override(_base(file, args), assignments)
    where = str(args.config or "command line")
    cases: list[Case] = []
    for point in expand(table, where):
        raw = placed(point.table, PATHS, file.parent if file else Path(), assignments)
        options = raw.pop("options", {})
        config = bind(SimulateConfig, raw, where)
        policies = schedulers(config.schedulers, config.defaults_for, options, where)
        lists_machines = config.cluster.groups or config.cluster.file
        if lists_machines and _flags(args, "cluster.nodes", "cluster.gpus_per_node"):
            raise ConfigError(
                "--nodes, --gpus-per-node: the configuration lists its machines; leave them out"
            )
        jobs, cluster = _jobs(config, cases, args.quick), config.cluster.build()
        jobs.table(cluster)  # what does not fit is said before anything runs
        cases.append(Case(point.name, config, policies, jobs, cluster))
    for note in dict.fromkeys(note for case in cases for note in case.jobs.notes):
        print(f"note: {note}", file=sys.stderr)
    return cases


def _jobs(config: "SimulateConfig", cases: list[Case], quick: bool) -> "Workload":
    """The workload of a point; one that an earlier point has loaded is not loaded again."""
    for case in cases:
        if case.config.workload == config.workload:
            return case.jobs
    jobs = config.workload.load()
    if quick and len(jobs) > QUICK_JOBS:
        return jobs.head(QUICK_JOBS).noted(f"quick: the first {QUICK_JOBS} of {len(jobs):,} jobs")
    return jobs


def _base(file: Path | None, args: argparse.Namespace) -> dict[str, Any]:
    """What the file says; a trace given as a flag takes the place of the file's workload and its format."""
    from rota.config.load import read

    table: dict[str, Any] = dict(read(file)) if file else {}
    if vars(args)["workload.trace"] and isinstance(table.get("workload"), dict):
        gone = ("synthetic", "format")
        table["workload"] = {key: value for key, value in table["workload"].items() if key not in gone}
    return table


def _shipped() -> Path:
    path = Path(__file__).parents[3] / "config" / "simulate" / "shipped.toml"
    if not path.exists():
        raise ConfigError(
            "no CONFIG and no --trace, and the shipped configuration is not here; give one of them"
        )
    return path


def _assignments(args: argparse.Namespace) -> Iterator[str]:
    """The flags as assignments to keys; text is quoted so that it stays text."""
    given = vars(args)
    for _, key, metavar, _ in FLAGS:
        if given[key] is not None:
            yield f"{key}={given[key] if metavar == 'N' else json.dumps(given[key])}"
    if args.schedulers is not None:
        names = [name.strip() for name in args.schedulers.split(",") if name.strip()]
        yield f"schedulers={json.dumps(names)}"


def _flags(args: argparse.Namespace, *keys: str) -> bool:
    return any(vars(args)[key] is not None for key in keys)


def _simulate(case: Case, args: argparse.Namespace) -> Iterator[Outcome]:
    for name, policy in case.policies.items():
        yield _one(case, name, policy, args)


def _one(case: Case, name: str, policy: "Policy", args: argparse.Namespace) -> Outcome:
    """Run one scheduler, or take its run from the folder if it was made from the same inputs."""
    from rota.replay.simulate import simulate, warm_up
    from rota.results.folder import RunFolder
    from rota.results.metrics import measure
    from rota.results.run import read_run, write_run

    jobs, cluster, cost = case.jobs, case.cluster, case.config.cost_model
    first_s = float(jobs.submit_s[0])
    folder = args.out / case.name / name if args.out else None
    inputs = _digest(case, policy) if folder else ""
    if folder and RunFolder(folder).complete(inputs):
        found = read_run(folder)
        print(f"{folder}: reused, its inputs are the same", file=sys.stderr)
        return Outcome(case.name, name, found.metrics, found.wall_s, first_s)
    if folder and RunFolder(folder).begun:
        print(f"{folder}: made anew, it was incomplete or made from other inputs", file=sys.stderr)
    with _say_if_slow("compiling the simulator: once per version, about half a minute"):
        warm_up(policy, cost)
    with _progress(name, len(jobs)) as bar:
        done = simulate(jobs, cluster, policy, cost, bar.move_to)
    if folder is None:
        metrics = measure(done.timeline, jobs, cluster).metrics
        return Outcome(case.name, name, metrics, done.wall_s, first_s)
    metrics = write_run(
        folder, scheduler=name, workload=jobs, cluster=cluster, timeline=done.timeline,
        config_text=_resolved(case, name, policy, folder), inputs=inputs, wall_s=done.wall_s,
        command=typed(),
    )  # fmt: skip
    return Outcome(case.name, name, metrics, done.wall_s, first_s)


def _resolved(case: Case, name: str, policy: "Policy", folder: Path) -> str:
    """The configuration of one run, complete: it can be given to `rota simulate` as it is."""
    from rota.config.dump import dump

    def from_folder(path: Path | None) -> Path | None:
        return path and Path(os.path.relpath(path, folder))

    config, given = case.config, case.config.workload
    trace, profiles = from_folder(given.trace), from_folder(given.profiles)
    workload = replace(given, trace=trace, profiles=profiles, jobs=len(case.jobs))
    cluster = replace(config.cluster, file=from_folder(config.cluster.file))
    text = dump(replace(config, workload=workload, cluster=cluster, schedulers=(name,)))
    options = dump(policy)
    return f"{text}\n[options.{name}]\n{options}" if options else text


def _digest(case: Case, policy: "Policy") -> str:
    """What a run follows from: jobs, machines, policy, cost model, and the code that simulates."""
    import rota

    jobs = case.jobs
    facts = (jobs.ids, jobs.models, jobs.speeds, case.cluster, policy, case.config.cost_model)
    digest = hashlib.sha256(repr(facts).encode())
    digest.update(jobs.table(case.cluster).tobytes())
    sources = Path(rota.__file__).parent
    for part in ("core", "policies", "replay", "results"):
        for source in sorted((sources / part).rglob("*.py")):
            digest.update(source.read_bytes())
    return digest.hexdigest()


@contextmanager
def _say_if_slow(message: str) -> Iterator[None]:
    """Explain a wait, if it is one."""
    timer = Timer(SLOW_S, print, [message], {"file": sys.stderr})
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


class _progress:  # noqa: N801 (a context manager that reads like a function)
    """A bar on a terminal; nothing elsewhere."""

    def __init__(self, name: str, jobs: int) -> None:
        from tqdm import tqdm

        self._bar = tqdm(
            total=jobs, desc=name, unit="job", leave=False, disable=not sys.stderr.isatty(), file=sys.stderr
        )

    def move_to(self, done: int) -> None:
        self._bar.update(done - self._bar.n)

    def __enter__(self) -> "_progress":
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.close()


def _json_row(row: Outcome) -> dict[str, Any]:
    point = {"point": row.case} if row.case else {}
    figures = asdict(row.metrics)
    return {
        **point,
        "scheduler": row.scheduler,
        **{key: figures[key] for key in JSON_KEYS},
        "wall_s": row.wall_s,
    }


def _print_keys() -> None:
    from rota.config.describe import help_text
    from rota.policies.cluster.registry import SCHEDULERS, scheduler_class
    from rota.replay.experiment import SimulateConfig

    print(help_text(SimulateConfig))
    for name in SCHEDULERS:
        print(f"\n[options.{name}]\n{help_text(scheduler_class(name))}")
    simulate_population.print_keys()
