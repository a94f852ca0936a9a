"""`rota run`: train a population, or the jobs of a trace, under policies that can be simulated."""

import argparse
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rota.commands.common import given_file, renamed_flag, say
from rota.core.errors import ConfigError
from rota.core.files import printable

if TYPE_CHECKING:
    from rota.commands.run_jobs import JobsRun
    from rota.execution.controller import PopulationOutcome
    from rota.execution.folder import RealFolder
    from rota.library.real_grid import RealGrid
    from rota.library.real_run import RealRun, RunSpec

STOPPED = 130
"""The exit code of what Ctrl-C ended."""


def add_parser(subparsers: Any) -> None:
    """Add `run`. Nothing heavy is imported for it."""
    parser = subparsers.add_parser(
        "run",
        help="train a population, or the jobs of a trace",
        description="Train the population that a configuration describes, or, if it has a [workload], the "
        "jobs of a trace. Ctrl-C stops it once what is being trained is done, a second Ctrl-C at once; "
        "--resume goes on, whatever had ended it.",
    )
    add = parser.add_argument
    add("config", type=given_file, nargs="?", metavar="CONFIG", help="a TOML file, as in config/run")
    add("--set", action="append", default=[], metavar="KEY=VALUE", help="set any key of the configuration")
    add("--out", type=Path, metavar="DIR", help="where the run is kept: a new folder")
    add("--address", metavar="HOST:PORT", help="of a Ray cluster that runs, or auto; as ray.address")
    add("--resume", type=Path, metavar="DIR", help="go on with the run in a folder")
    add(
        "--retrain-best",
        type=Path,
        metavar="DIR",
        help="train the best trial of a run again, alone, along its schedule",
    )
    add("--replay", type=Path, help=argparse.SUPPRESS)
    add(
        "--salvage",
        action="store_true",
        help="with --resume: go on with what is left of a damaged journal, train again what no checkpoint is "
        "left of",
    )
    add(
        "--export",
        type=Path,
        metavar="FILE",
        help="once it is done, write what the best trial saved to a new file; with --resume, too",
    )
    add("--repeat", type=int, metavar="N", help="run it so often, with different seeds, and sum that up")
    add("--preset", metavar="NAME", help="allocate as a system that has a name: spa or gpa")
    add("--mode", metavar="MODE", help="how a preset allocates: ERA (default) or ETA")
    add(
        "--quick",
        action="store_true",
        help="try it in seconds: two trials, two steps, tiny batches; generated images if the data set is "
        "not here",
    )
    add("--json", action="store_true", help="print what came of it as JSON")
    add("--every", type=float, default=1.0, metavar="S", help="say how it goes every so many seconds (1)")
    add("--help-config", action="store_true", help="list the keys of the configuration")


def run(args: argparse.Namespace) -> int:
    """Train; prints the result."""
    if args.help_config:
        return _print_keys()
    if args.salvage and not args.resume:
        raise ConfigError("--salvage: goes on with a damaged run; give its folder with --resume")
    if args.export:
        from rota.commands.best_trial import check_export

        check_export(args.export)
    renamed_flag(args, "--replay", "--retrain-best")
    if args.retrain_best:
        from rota.commands.best_trial import retrain_best
        from rota.config.load import read
        from rota.execution.folder import RealFolder

        if (file := RealFolder(args.retrain_best).config).exists():
            _kind_of(args, read(file))
        return retrain_best(args, _address(args))

    grid = _grid_of(args)
    return _run_one(args, _run_of(args)) if grid is None else _run_grid(args, grid)


def _run_one(args: argparse.Namespace, found: "RealRun | JobsRun", *, quiet: bool = False) -> int:
    from rota.library.real_run import RealRun

    carry_out: Any = _run_population if isinstance(found, RealRun) else _run_jobs
    code: int = carry_out(args, found, quiet)
    return _stopped(args.resume or args.out) if code == STOPPED else code


def _run_grid(args: argparse.Namespace, grid: "RealGrid") -> int:
    """Run the points one after the other; those that are complete are not run again."""
    from rota.commands.common import typed
    from rota.commands.run_progress import grid_text

    codes = [0]
    for number, point in enumerate(grid.points, start=1):
        if grid.is_complete(point):
            continue
        say(f"rota: point {number} of {len(grid.points)}: {point.name}", file=sys.stderr)
        run = grid.run(point, _kind_of(args, point.table), typed(), _address(args), anew=args.salvage)
        codes.append(_run_one(args, run, quiet=True))
        if codes[-1] == STOPPED:
            return STOPPED
    records = [grid.record(point) for point in grid.points]
    say(json.dumps({"points": records}) if args.json else f"{grid_text(records)}\n{grid.path}")
    return max(codes)


def _run_population(args: argparse.Namespace, real: "RealRun", quiet: bool) -> int:
    from rota.commands.run_progress import Lines, live, rich_table
    from rota.core.processes import stopping

    with stopping() as stop, live(sys.stderr, args.every, Lines, rich_table) as watch:
        outcomes = real.carry_out(lambda: stop.asked, lambda seed: watch())
    if not quiet:
        say(json.dumps(real.record(outcomes)) if args.json else _said(real, outcomes))
    if args.export and outcomes[-1].complete:
        from rota.commands.best_trial import export

        say(export(real.folder, args.export), file=sys.stderr)
    return _code(real, outcomes)


def _grid_of(args: argparse.Namespace) -> "RealGrid | None":
    """Return the runs at the points of a grid, new ones or those in a folder; None if it is one run."""
    from rota.commands.common import typed
    from rota.config.grid import expand
    from rota.library.real_grid import GridPointRun, RealGrid

    if args.resume:
        _check_resumed(args)
        if not RealGrid.is_one(args.resume):
            return None
        _refuse_export(args)
        grid = RealGrid.read(args.resume)
        if args.salvage:
            for point in grid.points:
                _salvage(grid.folder(point))
        return grid
    table, settings = _table_of(args)
    if "grid" not in table:
        return None
    _refuse_export(args)
    points = []
    for each in expand(table, args.config):
        _, order = _ordered(args, each.table, settings)
        order.config.engine.check()
        points.append(GridPointRun(each.name, each.parameters, order.text()))
    return RealGrid.begin(args.out, points, typed())


def _refuse_export(args: argparse.Namespace) -> None:
    if args.export:
        raise ConfigError("--export: is of one run; give the folder of a point: --resume DIR/POINT")


def _run_of(args: argparse.Namespace) -> "RealRun | JobsRun":
    """Return the run that was asked for: the one in a folder, or a new one."""
    from rota.commands.common import typed
    from rota.config.load import read
    from rota.execution.folder import RealFolder

    if args.resume:
        folder = RealFolder(args.resume)
        kind = _kind_of(args, read(folder.config) if folder.config.exists() else {})
        if args.salvage:
            _salvage(folder)
        resumed = kind.resume(args.resume, typed(), _address(args), anew=args.salvage)
        if not folder.begun():  # it may have been emptied
            say(f"rota: note: {args.resume}: there is no journal yet; the run begins now", file=sys.stderr)
        return resumed
    kind, order = _ordered(args, *_table_of(args))
    return kind.begin(order, args.out, typed())


def _check_resumed(args: argparse.Namespace) -> None:
    """Raise ConfigError if a flag asks for something else than what was begun."""
    asked = (args.config, args.out, args.set, args.repeat, args.preset, args.mode, args.quick)
    if any(asked):
        raise ConfigError("--resume: goes on with a run as it was asked for; give only the folder")


def _table_of(args: argparse.Namespace) -> tuple[dict[str, Any], list[str]]:
    """Return the table of a new run with the flags put over it, and the settings that they are."""
    from rota.commands.common import preset_name
    from rota.config.load import override, read

    if not args.config:
        raise ConfigError("what and where? Give a file and a new folder: config/run/local.toml --out DIR")
    settings = [*args.set]
    if preset := preset_name(args.preset, args.mode):
        settings.append(f"allocation={preset}")
    settings += [f"repeat={args.repeat}"] if args.repeat is not None else []
    settings += _address(args)
    table = override(read(args.config), settings)
    _kind_of(args, table)
    if not args.out:
        raise ConfigError(f"where? Give a new folder: {args.config} --out DIR")
    return table, settings


def _ordered(
    args: argparse.Namespace, table: dict[str, Any], settings: list[str]
) -> "tuple[type[RealRun | JobsRun], Any]":
    """Return of what kind the run is that a table describes, and what is asked for."""
    from rota.library.real_run import RunSpec

    kind = _kind_of(args, table)
    if args.quick:
        from rota.commands.quick_run import quick

        table, said = quick(table)
        if said:
            say(f"rota: note: {said}", file=sys.stderr)
    order = kind.read(table, args.config, settings)
    if isinstance(order, RunSpec):
        _check_changes(order)
    return kind, order


def _check_changes(order: "RunSpec") -> None:
    """Raise an error if the network of a run cannot change as it may."""
    from rota.config.bind import bind
    from rota.core.network import Change
    from rota.library.real_run import NETWORK

    if not order.config.changes or order.config.trial != NETWORK:
        return
    try:
        from rota.training.setup import Setup, check_changes
    except ModuleNotFoundError:  # where it is only controlled, and trained elsewhere
        return
    changes = list(map(Change.parse, order.config.changes))
    check_changes(bind(Setup, order.training, "training"), [changes])


def _kind_of(args: argparse.Namespace, table: Mapping[str, Any]) -> "type[RealRun | JobsRun]":
    """Return what a configuration is of, a population or jobs; raise ConfigError if flags do not fit it."""
    from rota.commands.run_jobs import JobsRun
    from rota.library.real_run import RealRun

    if "workload" not in table:
        return RealRun
    if args.retrain_best:
        raise ConfigError(
            f"--retrain-best: {args.retrain_best} is a run of jobs, and has no best trial; "
            "give a population's"
        )
    if args.export:
        raise ConfigError("--export: is for populations; a run of jobs has no best trial")
    if args.repeat is not None:
        raise ConfigError("--repeat: is for populations; a trace of jobs is run once")
    if args.preset or args.mode:
        raise ConfigError("--preset: is for populations; set the scheduler of jobs, --set scheduler=NAME")
    if args.quick:
        raise ConfigError("--quick: is for populations; give fewer jobs, --set workload.jobs=N")
    return JobsRun


def _run_jobs(args: argparse.Namespace, jobs: "JobsRun", quiet: bool) -> int:
    from rota.commands.run_progress import JobLines, jobs_summed_up, live, rich_jobs_table
    from rota.core.processes import stopping
    from rota.results.metrics import table

    with stopping() as stop, live(sys.stderr, args.every, JobLines, rich_jobs_table) as watch:
        outcome = jobs.carry_out(lambda: stop.asked, watch())
    if not quiet:
        say(json.dumps(jobs.record(outcome)) if args.json else jobs_summed_up(outcome.status))
    if not outcome.complete:
        return STOPPED
    if not quiet and not args.json:
        say(table([jobs.line(outcome)]), jobs.folder.path, sep="\n")
    return 1 if outcome.status.record()["finished"] == 0 else 0


def _salvage(folder: "RealFolder") -> None:
    """Cut off what is damaged."""
    from rota.execution.journal import salvage

    for journal in (folder.paths(seed).journal for seed in folder.begun()):
        if what := salvage(journal):
            say(f"rota: {what}; goes on with what comes before it", file=sys.stderr)


def _stopped(folder: Path) -> int:
    say(f"rota: stopped; go on with: rota run --resume {folder}", file=sys.stderr)
    return STOPPED


def _address(args: argparse.Namespace) -> list[str]:
    """Return the setting of the cluster's address: it may be another when a run goes on."""
    return [f"ray.address={json.dumps(args.address)}"] if args.address is not None else []


def _code(real: "RealRun", outcomes: "list[PopulationOutcome]") -> int:
    last = outcomes[-1]
    if not last.complete:
        return STOPPED
    fruitless = [each.status for each in outcomes if each.status.fruitless]
    for status in fruitless:
        seed = f"seed {status.frame.seed}: " if len(outcomes) > 1 else ""
        where = f" (more: rota status {real.folder.path})" if status.failures else ""
        say(f"rota: error: {seed}{printable(status.fruitless)}{where}", file=sys.stderr)
    return 1 if fruitless else 0


def _said(real: "RealRun", outcomes: "list[PopulationOutcome]") -> str:
    """Return the summary for people."""
    from rota.commands.run_progress import summed_up

    lines = [summed_up(outcome.status) for outcome in outcomes]
    return "\n".join([*lines, str(real.folder.path)])


def _print_keys() -> int:
    from rota.config.describe import help_text
    from rota.library.populations import option_classes
    from rota.library.real_run_config import JobsConfig, RunConfig

    say(help_text(RunConfig))
    for name, chosen in option_classes().items():
        if text := help_text(chosen):
            say(f"\n[options.{name}]\n{text}")
    say(f"\nWith a [workload], jobs are run:\n{help_text(JobsConfig)}")
    try:
        from rota.training.job import JobKind
        from rota.training.setup import Setup
    except ModuleNotFoundError as error:
        say(f"note: keys of what is trained are left out, they need {error.name}", file=sys.stderr)
        return 0
    say(f"\n[training], for rota.training.trial:network\n{help_text(Setup)}")
    say(f"\n[kinds.NAME], for rota.training.job:networks\n{help_text(JobKind)}")
    return 0
