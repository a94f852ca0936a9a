"""`rota run`: train a population, or the jobs of a trace, for real, under policies that can be rehearsed."""

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rota.core.errors import ConfigError

if TYPE_CHECKING:
    from rota.commands.real_run import RealRun
    from rota.commands.run_jobs import JobsRun
    from rota.execution.controller import Outcome

STOPPED = 130
"""The exit code of what Ctrl-C ended."""


def add_parser(subparsers: Any) -> None:
    """Add `run`. Nothing heavy is imported for it."""
    parser = subparsers.add_parser(
        "run",
        help="train a population, or the jobs of a trace, for real",
        description="Train the population that a configuration describes, or, if it has a [workload], the "
        "jobs of a trace. Ctrl-C stops it once what is being trained is done, a second Ctrl-C at once; "
        "--resume goes on, whatever had ended it.",
    )
    add = parser.add_argument
    add("config", type=Path, nargs="?", metavar="CONFIG", help="a TOML file, as in config/run")
    add("--set", action="append", default=[], metavar="KEY=VALUE", help="set any key of the configuration")
    add("--out", type=Path, metavar="DIR", help="where the run is kept: a new folder")
    add("--address", metavar="HOST:PORT", help="of a Ray cluster that runs, or auto; as ray.address")
    add("--resume", type=Path, metavar="DIR", help="go on with the run in a folder")
    add(
        "--replay",
        type=Path,
        metavar="DIR",
        help="train the best trial of a run again, alone, along its schedule",
    )
    add("--repeat", type=int, metavar="N", help="run it so often, with different seeds, and sum that up")
    add("--json", action="store_true", help="print what came of it as JSON")
    add("--every", type=float, default=1.0, metavar="S", help="say how it goes every so many seconds (1)")
    add("--help-config", action="store_true", help="list the keys of the configuration")


def run(args: argparse.Namespace) -> int:
    """Train; prints what came of it."""
    from rota.commands.live import live
    from rota.commands.real_run import record
    from rota.training.stopping import stopping

    if args.help_config:
        return _print_keys()
    if args.replay:
        from rota.commands.replay_run import replay

        _check_population(args.replay)
        return replay(args, _address(args))
    if (jobs := _jobs_run(args)) is not None:
        return _run_jobs(args, jobs)
    real = _real_run(args)
    with stopping() as stop, live(sys.stderr, args.every) as watch:
        outcomes = real.carry_out(lambda: stop.asked, watch)
    if args.json:
        print(json.dumps(record(outcomes)))
    else:
        print(_said(real, outcomes))
    return _code(real, outcomes)


def _jobs_run(args: argparse.Namespace) -> "JobsRun | None":
    """If it is about jobs."""
    from rota.commands.run_jobs_config import is_about_jobs
    from rota.config.load import override, read
    from rota.execution.folder import RealFolder

    file = RealFolder(args.resume).config if args.resume else args.config
    if file is None or not file.exists() or not is_about_jobs(override(read(file), args.set)):
        return None
    from rota.commands.run_jobs import begin_jobs, resume_jobs

    if args.resume:
        _check_resume(args)
        return resume_jobs(args.resume, _address(args))
    if not args.out:
        raise ConfigError(f"where? Give a new folder: {args.config} --out DIR")
    return begin_jobs(args, [*args.set, *_address(args)])


def _check_population(folder: Path) -> None:
    from rota.commands.run_jobs_config import is_about_jobs
    from rota.config.load import read
    from rota.execution.folder import RealFolder

    file = RealFolder(folder).config
    if file.exists() and is_about_jobs(read(file)):
        raise ConfigError(f"--replay: {folder} is a run of jobs, and has no best trial; give a population's")


def _run_jobs(args: argparse.Namespace, jobs: "JobsRun") -> int:
    from rota.commands.live_jobs import jobs_summed_up, live_jobs
    from rota.results.table import table
    from rota.training.stopping import stopping

    with stopping() as stop, live_jobs(sys.stderr, args.every) as watch:
        outcome = jobs.carry_out(lambda: stop.asked, watch)
    if args.json:
        print(json.dumps(jobs.record(outcome)))
    else:
        print(jobs_summed_up(outcome.board))
    if not outcome.complete:
        return _stopped(jobs.folder.path)
    if not args.json:
        print(table([jobs.line(outcome)]), jobs.folder.path, sep="\n")
    return 1 if outcome.board.record()["finished"] == 0 else 0


def _check_resume(args: argparse.Namespace) -> None:
    if args.config or args.out or args.set or args.repeat:
        raise ConfigError("--resume: goes on with a run as it was asked for; give only the folder")


def _stopped(folder: Path) -> int:
    print(f"rota: stopped; go on with: rota run --resume {folder}", file=sys.stderr)
    return STOPPED


def _real_run(args: argparse.Namespace) -> "RealRun":
    from rota.commands.real_run import begin, resume
    from rota.commands.run_config import ordered
    from rota.config.load import override, read

    if args.resume:
        _check_resume(args)
        return resume(args.resume, _address(args))
    if not args.config or not args.out:
        raise ConfigError("what and where? Give a file and a new folder: config/run/local.toml --out DIR")
    repeat = [f"repeat={args.repeat}"] if args.repeat is not None else []
    settings = [*args.set, *repeat, *_address(args)]
    return begin(ordered(override(read(args.config), settings), args.config, settings), args.out)


def _address(args: argparse.Namespace) -> list[str]:
    """Where the cluster is: it may be elsewhere when a run goes on."""
    return [f"ray.address={json.dumps(args.address)}"] if args.address is not None else []


def _code(real: "RealRun", outcomes: "list[Outcome]") -> int:
    last = outcomes[-1]
    if not last.complete:
        return _stopped(real.folder.path)
    return 1 if all(trial.status == "failed" for trial in last.picture.trials) else 0


def _said(real: "RealRun", outcomes: "list[Outcome]") -> str:
    """For people."""
    from rota.commands.live import summed_up

    lines = [summed_up(outcome.picture) for outcome in outcomes]
    return "\n".join([*lines, str(real.folder.path)])


def _print_keys() -> int:
    from rota.commands.population_policies import option_classes
    from rota.commands.run_config import RunConfig
    from rota.commands.run_jobs_config import JobsConfig
    from rota.config.describe import help_text

    print(help_text(RunConfig))
    for name, chosen in option_classes().items():
        if text := help_text(chosen):
            print(f"\n[options.{name}]\n{text}")
    print(f"\nWith a [workload], jobs are run:\n{help_text(JobsConfig)}")
    try:
        from rota.training.job import Kind
        from rota.training.setup import Setup
    except ModuleNotFoundError as error:
        print(f"note: keys of what is trained are left out, they need {error.name}", file=sys.stderr)
        return 0
    print(f"\n[training], for rota.training.trial:network\n{help_text(Setup)}")
    print(f"\n[kinds.NAME], for rota.training.job:networks\n{help_text(Kind)}")
    return 0
