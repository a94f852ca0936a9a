"""`rota simulate`: simulate a workload, or a population, and compare the policies."""

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from rota.commands.common import DRAW_MODELS, STARTUP, given_file, say, workers
from rota.core.errors import ConfigError

QUICK_JOBS = 60
MOST = 10_000
"""Number of simulations that are run unless more are allowed."""
CLASS = "as file.py:Class"


class KeyFlag(NamedTuple):
    """A flag that sets a key of the configuration."""

    flag: str
    key: str
    metavar: str
    """Name of its value; a number if it is N or S."""
    help: str


OF_TRACES = (
    KeyFlag("--trace", "workload.trace", "FILE", "the trace to simulate"),
    KeyFlag(
        "--format", "workload.format", "NAME",
        "its format, or a function of yours, as file.py:function; guessed from the file if not given",
    ),
    KeyFlag("--jobs", "workload.jobs", "N", "keep only the first N jobs"),
    KeyFlag("--history", "workload.history", "FILE", "jobs that had ended before, in rota's CSV format"),
    KeyFlag("--nodes", "cluster.nodes", "N", "equal nodes (per switch)"),
    KeyFlag("--gpus-per-node", "cluster.gpus_per_node", "N", "GPUs in each of them"),
    KeyFlag("--startup-s", "workload.startup_s", "S", STARTUP),
    KeyFlag(
        "--durations", "durations.known", "WHAT",
        "what schedulers know of durations: exact (default), none, noisy or predicted",
    ),
    KeyFlag("--cost", "cost", "MODEL", "restart (default), or interval: the rule of the Muri simulator"),
)  # fmt: skip
OF_POPULATIONS = (
    KeyFlag("--population", "population.trials", "N", "simulate so many trials instead of a trace"),
    KeyFlag("--steps", "population.steps", "N", "steps that each trial gets"),
    KeyFlag("--interval", "population.interval", "N", "steps after which a trial reports"),
    KeyFlag("--target", "population.target", "N", "accuracy at which a trial is done, too"),
    KeyFlag("--step-cost-s", "population.step_s", "N", "seconds that a step takes on a slot of speed 1"),
    KeyFlag("--dispatch-cost-s", "costs.dispatch_s", "N", "seconds that a slot's next assignment takes"),
    KeyFlag(
        "--noise", "noise.sigma", "N",
        "how far times are off: each is multiplied by exp(N(-sigma²/2, sigma))",
    ),
    KeyFlag("--seeds", "seeds", "N", "repetitions, with the seeds 0, 1, …"),
    KeyFlag("--slots", "slots", "S,S,…", "speeds of the slots, or a score.json that has them"),
    KeyFlag("--allocations", "allocations", "A,B,…", "which to compare, also promote and joint; else rules"),
    KeyFlag("--trees", "population.trees", "PATH,…", "growth trees of one data set that trials walk along"),
    KeyFlag("--growth", "growth", "NAME", "how networks grow on trees: never, stump … or a class of yours"),
    KeyFlag("--deadline-s", "population.deadline_s", "N", "seconds after which the run ends"),
    KeyFlag(
        "--preset", "preset", "NAME",
        "also a system that has a name: spa or gpa; only that without --allocations",
    ),
    KeyFlag("--mode", "mode", "MODE", "how a preset allocates: ERA (default) or ETA"),
)  # fmt: skip


def add_parser(subparsers: Any) -> None:
    """Add `simulate`. Nothing heavy is imported for it."""
    parser = subparsers.add_parser(
        "simulate",
        help="simulate a workload under schedulers, or a population under allocations, and compare them",
        description="Simulate a workload under schedulers. Without CONFIG and --trace: the shipped workload. "
        "With --population, or a CONFIG that has one: simulate a population on unequal slots.",
    )
    add = parser.add_argument
    add("config", nargs="?", type=given_file, metavar="CONFIG", help="a TOML file, as in config/simulate")
    _add_flags(parser, OF_TRACES)
    add("--draw-models", action="store_true", help=DRAW_MODELS)
    which = f"which schedulers to compare; also a class of yours, {CLASS}; all if not given"
    add("--schedulers", metavar="A,B,…", help=which)
    add("--set", action="append", default=[], metavar="KEY=VALUE", help="set any key of the configuration")
    add("--help-config", action="store_true", help="list the keys of the configuration")
    add("--out", type=Path, metavar="DIR", help="keep the runs here; one that is there is reused")
    add("--replace", action="store_true", help="also where another command has left another run")
    add("--json", action="store_true", help="print JSON on standard output, and nothing else")
    add("--quick", action="store_true", help=f"only the first {QUICK_JOBS} jobs; short trials")
    add = parser.add_argument_group("grids").add_argument
    shared = "processes that share the simulations (1), or ray[:ADDRESS], the CPUs of a Ray cluster"
    add("--workers", type=workers, default=1, metavar="N", help=f"{shared}; results are the same")
    most = f"refuse to run more than N simulations ({MOST:,})"
    add("--max-simulations", type=_count, default=MOST, metavar="N", help=most)
    figure = "draw metrics against the parameters of the grid: a .png, .svg or .pdf"
    add("--figure", type=Path, metavar="FILE", help=figure)
    _add_flags(parser.add_argument_group("populations"), OF_POPULATIONS)


def _add_flags(group: Any, flags: tuple[KeyFlag, ...]) -> None:
    for flag, key, metavar, meaning in flags:
        kind = given_file if metavar == "FILE" else str
        group.add_argument(flag, dest=key, type=kind, metavar=metavar, help=meaning)


def _count(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is not 1 or more")
    return number


def run(args: argparse.Namespace) -> int:
    """Simulate; prints a table, or one JSON list."""
    if args.help_config:
        _print_keys()
        return 0
    from rota.config.load import read

    table = read(args.config) if args.config else {}
    if _is_of_population(args, table):
        from rota.commands.simulate_population import POPULATIONS

        return POPULATIONS.simulate(args, table)
    from rota.commands.simulate_jobs import TRACES

    return TRACES.simulate(args, table)


def _is_of_population(args: argparse.Namespace, table: Mapping[str, object]) -> bool:
    """Return whether a population is asked for; raises ConfigError if flags of both kinds are mixed."""
    wanted = (
        vars(args)["population.trials"] is not None
        or any(text.startswith(("population.", "population=")) for text in args.set)
        or "population" in table
    )
    of_traces = [flag.flag for flag in OF_TRACES if vars(args)[flag.key] is not None]
    of_traces += ["--schedulers"] if args.schedulers is not None else []
    of_populations = [flag.flag for flag in OF_POPULATIONS if vars(args)[flag.key] is not None]
    if of_populations and not wanted:
        raise ConfigError(
            f"{of_populations[0]}: is for populations; give --population N, too, or leave it out"
        )
    if wanted and of_traces:
        raise ConfigError(f"{of_traces[0]}: is for traces, and this is a population; leave it out")
    return wanted


def _print_keys() -> None:
    from rota.config.describe import help_text
    from rota.library.populations import option_classes
    from rota.policies.cluster.registry import SCHEDULERS, scheduler_class
    from rota.simulator.jobs_config import SimulateConfig
    from rota.simulator.population_config import PopulationsConfig

    say(help_text(SimulateConfig))
    for name in SCHEDULERS:
        say(f"\n[options.{name}]\n{help_text(scheduler_class(name))}")
    say(f"\nFor a population\n\n{help_text(PopulationsConfig)}")
    for name, chosen in option_classes().items():
        if text := help_text(chosen):
            say(f"\n[options.{name}]\n{text}")
