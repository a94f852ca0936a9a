"""`rota simulate` of a population: trials on unequal slots, under allocations that are compared."""

import argparse
import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rota.commands import simulations
from rota.commands.common import say, typed
from rota.core.errors import ConfigError, unknown

if TYPE_CHECKING:
    from rota.commands.population_task import PopulationTask
    from rota.results.population.summary import PopulationSummary
    from rota.simulator.population_config import PopulationsConfig

QUICK_STEPS, QUICK_SEEDS = 4, 1
"""Of `--quick`: intervals that a trial gets, and repetitions."""

FLAGS: tuple[tuple[str, str, str, str], ...] = (
    # flag, key of the configuration, metavar, help
    ("--population", "population.trials", "N", "simulate so many trials instead of a trace"),
    ("--steps", "population.steps", "N", "steps that each trial gets"),
    ("--interval", "population.interval", "N", "steps after which a trial reports"),
    ("--target", "population.target", "N", "accuracy at which a trial is done, too"),
    ("--step-cost-s", "population.step_s", "N", "seconds that a step takes on a slot of speed 1"),
    ("--dispatch-cost-s", "costs.dispatch_s", "N", "seconds that it takes to hand a slot its next list"),
    (
        "--noise",
        "weather.noise",
        "N",
        "how far times are off: each is multiplied by exp(N(-noise²/2, noise))",
    ),
    ("--seeds", "seeds", "N", "repetitions, with the seeds 0, 1, …"),
    ("--slots", "slots", "S,S,…", "speeds of the slots, or a score.json that has them"),
    ("--allocations", "allocations", "A,B,…", "which allocations to compare; all if not given"),
    (
        "--preset",
        "preset",
        "NAME",
        "also a system that has a name: spa or gpa; only that without --allocations",
    ),
    ("--mode", "mode", "MODE", "how a preset allocates: ERA (default) or ETA"),
)
PRESETS, MODES = ("spa", "gpa"), ("ERA", "ETA")
PATHS = ("population.curves", "population.profiles", "options.learned.agent")
"""Keys that name folders."""
JSON_KEYS = ("makespan_s", "lower_bound_s", "ratio", "idle", "clones", "decisions_per_s")
MEASURED = ("best_accuracy", "final_accuracy", "to_target_s")
"""Of JSON, where there is anything to measure."""


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Those of a population. Nothing heavy is imported for them."""
    group = parser.add_argument_group("populations")
    for flag, key, metavar, meaning in FLAGS:
        group.add_argument(flag, dest=key, metavar=metavar, help=meaning)


def asked(args: argparse.Namespace, others: Mapping[str, str]) -> bool:
    """Whether a population is to be simulated. `others` are the flags of traces, by key: they do not mix."""
    given = [flag for flag, key, _, _ in FLAGS if vars(args)[key] is not None]
    wanted = (
        vars(args)["population.trials"] is not None
        or any(text.startswith(("population.", "population=")) for text in args.set)
        or bool(args.config and "population" in _read(args.config))
    )
    if given and not wanted:
        raise ConfigError(f"{given[0]}: is for populations; give --population N, too, or leave it out")
    wrong = [flag for key, flag in others.items() if vars(args)[key] is not None]
    if wanted and wrong:
        raise ConfigError(f"{wrong[0]}: is for traces, and this is a population; leave it out")
    return wanted


def run(args: argparse.Namespace) -> int:
    """Compare allocations; prints one line for each."""
    from rota.results.parameters import Labels
    from rota.results.population.summary import comparison

    contests = _contests(args)
    for contest in contests if args.out and not args.replace else []:
        contest.check_free()
    done = _carried_out(contests, args)
    if args.json:
        say(json.dumps(_json_rows(contests, done)))
    else:
        labels = Labels(contest.parameters for contest in contests)
        points = [labels.text(contest.parameters) for contest in contests]
        say(comparison(list(zip(points, done, strict=True))))
    if args.figure:
        from rota.figures.grid_runs import population_grid

        runs = [contest.run(summary) for contest, summary in zip(contests, done, strict=True)]
        simulations.draw(population_grid(runs), args.figure, typed())
    return 0


def _carried_out(contests: "list[PopulationTask]", args: argparse.Namespace) -> "list[PopulationSummary]":
    """What came of each: taken from its folder if it was made from the same inputs, else simulated."""
    from rota.commands.common import compiling
    from rota.commands.population_task import SeedResult, repeat

    done = {number: found for number, contest in enumerate(contests) if (found := contest.found())}
    simulations.tell_reused([folder for number in done if (folder := contests[number].folder)], args.out)
    left = [(number, contest) for number, contest in enumerate(contests) if number not in done]
    with compiling(len(left), " allocations") as tick:
        for _, contest in left:
            contest.warm_up()
            tick()
    plan = [(number, seed) for number, contest in left for seed in range(contest.config.seeds)]
    policies = [contest.contender.policy for _, contest in left]
    classes = {type(part) for policy in policies for part in (policy.allocation, policy.evolution)}
    calls = [(contests[number], seed) for number, seed in plan]
    seeds: dict[int, dict[int, SeedResult]] = {number: {} for number, _ in left}
    for place, repeated in simulations.side_by_side(repeat, calls, args.workers, classes):
        number, seed = plan[place]
        seeds[number][seed] = repeated
        if len(seeds[number]) == contests[number].config.seeds:
            done[number] = contests[number].finish([each for _, each in sorted(seeds.pop(number).items())])
    return [done[number] for number in range(len(contests))]


def print_keys() -> None:
    """For `--help-config`."""
    from rota.config.describe import help_text
    from rota.library.populations import option_classes
    from rota.simulator.population_config import PopulationsConfig

    say(f"\nFor a population\n\n{help_text(PopulationsConfig)}")
    for name, chosen in option_classes().items():
        if text := help_text(chosen):
            say(f"\n[options.{name}]\n{text}")


def _read(file: Path) -> dict[str, object]:
    from rota.config.load import read

    return read(file)


def _contests(args: argparse.Namespace) -> "list[PopulationTask]":
    """Read the configuration, put the flags over it, and check all of it before anything runs."""
    from rota.commands.population_task import PopulationTask
    from rota.config.bind import bind
    from rota.config.grid import count, expand
    from rota.config.load import override, placed
    from rota.library.populations import NAMES, contenders
    from rota.simulator.population_config import PopulationsConfig

    table = _read(args.config) if args.config else {}
    if "workload" in table:
        raise ConfigError(f"{args.config}: is about a workload; leave it out, or --population")
    assignments = [*_assignments(args), *args.set]
    table = override(_without_machines(table, args), assignments)
    where = str(args.config or "command line")
    simulations.check_figure(args, table, where)
    simulations.check_points(count(table, where), args.max_simulations)
    contests, points = [], expand(table, where)
    for point in points:
        folder = args.config.parent if args.config else Path()
        raw = placed(point.table, PATHS, folder, assignments, names=NAMES)
        options: Any = raw.pop("options", {})
        config = bind(PopulationsConfig, raw, where)
        config = _shortened(config) if args.quick else config
        config.scene(0)  # what cannot be read is said before anything runs
        for each in contenders(config, options, where):
            out = args.out / point.name / each.name if args.out else None
            contests.append(PopulationTask(point.name, point.parameters, config, each, out, typed()))
    number = sum(contest.config.seeds for contest in contests)
    simulations.announce(number, len(points), args.max_simulations)
    return contests


def _without_machines(table: dict[str, object], args: argparse.Namespace) -> dict[str, object]:
    """Slots given as a flag take the place of the clusters of the file."""
    from rota.config.grid import fix

    if args.slots is None:
        return table
    return {key: value for key, value in fix(table, ("cluster",)).items() if key != "cluster"}


def _assignments(args: argparse.Namespace) -> Iterator[str]:
    """The flags as assignments to keys."""
    for flag, key, metavar, _ in FLAGS:
        text = vars(args)[key]
        if text is not None and metavar == "N":
            yield f"{key}={text}"
        elif text is not None and flag == "--slots":
            yield f"{key}={_speeds(text)}"
    names = _names(args)
    if names is not None:
        yield f"allocations={json.dumps(names)}"


def _names(args: argparse.Namespace) -> list[str] | None:
    """Of the allocations that are asked for; None if nothing is said about them."""
    if args.mode and not args.preset:
        raise ConfigError(f"--mode {args.mode}: says how a preset allocates; give --preset spa or gpa, too")
    names = [word.strip() for word in (args.allocations or "").split(",") if word.strip()]
    if args.preset and args.preset.lower() not in PRESETS:
        raise ConfigError(f"--preset: {unknown('preset', args.preset, PRESETS)}")
    if args.mode and args.mode.upper() not in MODES:
        raise ConfigError(f"--mode: {unknown('mode', args.mode, MODES)}")
    if args.preset:
        return [*names, f"{args.preset}-{args.mode or 'ERA'}".lower()]
    return None if args.allocations is None else names


def _speeds(text: str) -> str:
    """`1.3,1` → `[1.3, 1.0]`; of a file of scores, those of its slots."""
    if text.endswith(".json"):
        from rota.core.population.scores import fleet_of, read_scores

        return json.dumps([slot.speed for slot in fleet_of(read_scores(Path(text))).fleet.slots])
    try:
        return json.dumps([float(word) for word in text.split(",")])
    except ValueError:
        raise ConfigError(
            f"--slots {text}: not a list of speeds; give numbers, like 1.3,1,0.33, or a score.json"
        ) from None


def _shortened(config: "PopulationsConfig") -> "PopulationsConfig":
    population = config.population
    steps = min(population.steps, QUICK_STEPS * population.interval)
    seeds = min(config.seeds, QUICK_SEEDS)
    return replace(config, population=replace(population, steps=steps), seeds=seeds)


def _json_rows(contests: "list[PopulationTask]", done: "list[PopulationSummary]") -> list[dict[str, Any]]:
    """The columns of the table and more; bounds are those of the table, too."""
    from rota.results.population.summary import at_points

    points = [contest.point for contest in contests]
    rows = []
    for contest, summary in zip(contests, at_points(points, done), strict=True):
        where = {"point": contest.point, **contest.parameters} if contest.point else {}
        values = {key: getattr(summary, key) for key in JSON_KEYS}
        known = {key: value for key in MEASURED if (value := getattr(summary, key)) is not None}
        rows.append({**where, "allocation": summary.allocation, **values, **known})
    return rows
