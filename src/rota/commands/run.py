"""`rota run`: train a population, or the jobs of a trace, under policies that can be simulated."""

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rota.commands.common import given_file, renamed_flag, say
from rota.core.errors import ConfigError
from rota.core.files import printable

if TYPE_CHECKING:
    from rota.commands.run_jobs import JobsRun
    from rota.execution.controller import PopulationOutcome
    from rota.library.real_run import RealRun

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
    add("--json", action="store_true", help="print what came of it as JSON")
    add("--every", type=float, default=1.0, metavar="S", help="say how it goes every so many seconds (1)")
    add("--help-config", action="store_true", help="list the keys of the configuration")


def run(args: argparse.Namespace) -> int:
    """Train; prints the result."""
    from rota.commands.live import live
    from rota.core.processes import stopping
    from rota.library.real_run import record

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

        _check_population(args.retrain_best)
        return retrain_best(args, _address(args))
    if (jobs := _jobs_run(args)) is not None:
        return _run_jobs(args, jobs)
    real = _real_run(args)
    with stopping() as stop, live(sys.stderr, args.every) as watch:
        outcomes = real.carry_out(lambda: stop.asked, watch)
    if args.json:
        say(json.dumps(record(outcomes)))
    else:
        say(_said(real, outcomes))
    if args.export and outcomes[-1].complete:
        _export(real, args.export)
    return _code(real, outcomes)


def _export(real: "RealRun", file: Path) -> None:
    from rota.commands.best_trial import export

    exported = export(real.folder, file)
    said = exported.said() if exported else f"rota: {file}: not written, for there is no best trial"
    say(said, file=sys.stderr)


def _jobs_run(args: argparse.Namespace) -> "JobsRun | None":
    """Return the run if it is of jobs, else None."""
    from rota.commands.run_jobs import is_about_jobs
    from rota.config.load import override, read
    from rota.execution.folder import RealFolder

    file = RealFolder(args.resume).config if args.resume else args.config
    if file is None or not file.exists():
        return None
    if not is_about_jobs(read(file) if args.resume else override(read(file), args.set)):
        return None
    if args.export:
        raise ConfigError("--export: is for populations; a run of jobs has no best trial")
    from rota.commands.run_jobs import begin_jobs, resume_jobs

    if args.resume:
        _check_resume(args)
        _salvage(args)
        resumed = resume_jobs(args.resume, _address(args), anew=args.salvage)
        _note_not_begun(args.resume)
        return resumed
    if not args.out:
        raise ConfigError(f"where? Give a new folder: {args.config} --out DIR")
    return begin_jobs(args, [*args.set, *_address(args)])


def _check_population(folder: Path) -> None:
    from rota.commands.run_jobs import is_about_jobs
    from rota.config.load import read
    from rota.execution.folder import RealFolder

    file = RealFolder(folder).config
    if file.exists() and is_about_jobs(read(file)):
        raise ConfigError(
            f"--retrain-best: {folder} is a run of jobs, and has no best trial; give a population's"
        )


def _run_jobs(args: argparse.Namespace, jobs: "JobsRun") -> int:
    from rota.commands.live import jobs_summed_up, live_jobs
    from rota.core.processes import stopping
    from rota.results.metrics import table

    with stopping() as stop, live_jobs(sys.stderr, args.every) as watch:
        outcome = jobs.carry_out(lambda: stop.asked, watch)
    if args.json:
        say(json.dumps(jobs.record(outcome)))
    else:
        say(jobs_summed_up(outcome.status))
    if not outcome.complete:
        return _stopped(jobs.folder.path)
    if not args.json:
        say(table([jobs.line(outcome)]), jobs.folder.path, sep="\n")
    return 1 if outcome.status.record()["finished"] == 0 else 0


def _check_resume(args: argparse.Namespace) -> None:
    if args.config or args.out or args.set or args.repeat:
        raise ConfigError("--resume: goes on with a run as it was asked for; give only the folder")


def _note_not_begun(folder: Path) -> None:
    """Say that a run has no first report yet: its folder may have been emptied."""
    from rota.execution.folder import RealFolder

    if not RealFolder(folder).begun():
        say(f"rota: note: {folder}: there is no journal yet; the run begins now", file=sys.stderr)


def _salvage(args: argparse.Namespace) -> None:
    """Cut off what is damaged, if that is asked for."""
    from rota.execution.folder import RealFolder
    from rota.execution.journal import salvage

    if args.salvage:
        folder = RealFolder(args.resume)
        for journal in (folder.paths(seed).journal for seed in folder.begun()):
            if what := salvage(journal):
                say(f"rota: {what}; goes on with what comes before it", file=sys.stderr)


def _stopped(folder: Path) -> int:
    say(f"rota: stopped; go on with: rota run --resume {folder}", file=sys.stderr)
    return STOPPED


def _real_run(args: argparse.Namespace) -> "RealRun":
    from rota.commands.common import typed
    from rota.config.load import override, read
    from rota.library.real_run import begin, ordered, resume

    if args.resume:
        _check_resume(args)
        _salvage(args)
        resumed = resume(args.resume, typed(), _address(args), anew=args.salvage)
        _note_not_begun(args.resume)
        return resumed
    if not args.config or not args.out:
        raise ConfigError("what and where? Give a file and a new folder: config/run/local.toml --out DIR")
    repeat = [f"repeat={args.repeat}"] if args.repeat is not None else []
    settings = [*args.set, *repeat, *_address(args)]
    return begin(ordered(override(read(args.config), settings), args.config, settings), args.out, typed())


def _address(args: argparse.Namespace) -> list[str]:
    """Return the setting of the cluster's address: it may be another when a run goes on."""
    return [f"ray.address={json.dumps(args.address)}"] if args.address is not None else []


def _code(real: "RealRun", outcomes: "list[PopulationOutcome]") -> int:
    last = outcomes[-1]
    if not last.complete:
        return _stopped(real.folder.path)
    fruitless = [each.status for each in outcomes if each.status.fruitless]
    for status in fruitless:
        seed = f"seed {status.frame.seed}: " if len(outcomes) > 1 else ""
        where = f" (more: rota status {real.folder.path})" if status.failures else ""
        say(f"rota: error: {seed}{printable(status.fruitless)}{where}", file=sys.stderr)
    return 1 if fruitless else 0


def _said(real: "RealRun", outcomes: "list[PopulationOutcome]") -> str:
    """Return the summary for people."""
    from rota.commands.live import summed_up

    lines = [summed_up(outcome.status) for outcome in outcomes]
    return "\n".join([*lines, str(real.folder.path)])


def _print_keys() -> int:
    from rota.commands.run_jobs import JobsConfig
    from rota.config.describe import help_text
    from rota.library.populations import option_classes
    from rota.library.real_run import RunConfig

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
