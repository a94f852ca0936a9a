"""`rota simulate` of a population: trials on unequal slots, under allocations that are compared."""

import argparse
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rota.commands import simulations
from rota.commands.common import say, typed
from rota.core.errors import ConfigError, unknown

if TYPE_CHECKING:
    from rota.commands.population_task import PopulationTask
    from rota.figures.grid_runs import ParameterGrid
    from rota.results.population.summary import PopulationSummary
    from rota.simulator.population_config import PopulationsConfig

QUICK_STEPS, QUICK_SEEDS = 4, 1
"""Intervals that a trial gets, and repetitions, with `--quick`."""

FLAGS: tuple[tuple[str, str, str, str], ...] = (
    # flag, key of the configuration, metavar, help
    ("--population", "population.trials", "N", "simulate so many trials instead of a trace"),
    ("--steps", "population.steps", "N", "steps that each trial gets"),
    ("--interval", "population.interval", "N", "steps after which a trial reports"),
    ("--target", "population.target", "N", "accuracy at which a trial is done, too"),
    ("--step-cost-s", "population.step_s", "N", "seconds that a step takes on a slot of speed 1"),
    ("--dispatch-cost-s", "costs.dispatch_s", "N", "seconds that a slot's next assignment takes"),
    (
        "--noise",
        "noise.sigma",
        "N",
        "how far times are off: each is multiplied by exp(N(-sigma²/2, sigma))",
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
"""Keys of the JSON that are there where accuracies are measured."""


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags of a population. Nothing heavy is imported for them."""
    group = parser.add_argument_group("populations")
    for flag, key, metavar, meaning in FLAGS:
        group.add_argument(flag, dest=key, metavar=metavar, help=meaning)


def asked(args: argparse.Namespace, table: Mapping[str, object], others: Mapping[str, str]) -> bool:
    """Return whether a population is to be simulated; `table` is the configuration.

    `others` are the flags of traces, by key: they do not mix.
    """
    given = [flag for flag, key, _, _ in FLAGS if vars(args)[key] is not None]
    wanted = (
        vars(args)["population.trials"] is not None
        or any(text.startswith(("population.", "population=")) for text in args.set)
        or "population" in table
    )
    if given and not wanted:
        raise ConfigError(f"{given[0]}: is for populations; give --population N, too, or leave it out")
    wrong = [flag for key, flag in others.items() if vars(args)[key] is not None]
    if wanted and wrong:
        raise ConfigError(f"{wrong[0]}: is for traces, and this is a population; leave it out")
    return wanted


def print_keys() -> None:
    """Print the keys of a population, for `--help-config`."""
    from rota.config.describe import help_text
    from rota.library.populations import option_classes
    from rota.simulator.population_config import PopulationsConfig

    say(f"\nFor a population\n\n{help_text(PopulationsConfig)}")
    for name, chosen in option_classes().items():
        if text := help_text(chosen):
            say(f"\n[options.{name}]\n{text}")


def _tasks(args: argparse.Namespace, table: dict[str, Any]) -> "list[PopulationTask]":
    """Put the flags over the configuration, and check all of it before anything runs."""
    from rota.commands.population_task import PopulationTask
    from rota.config.bind import bind
    from rota.library.populations import NAMES, contenders
    from rota.simulator.population_config import PopulationsConfig

    if "workload" in table:
        raise ConfigError(f"{args.config}: is about a workload; leave it out, or --population")
    assignments = [*_assignments(args), *args.set]
    folder, where = args.config.parent if args.config else Path(), simulations.named(args)
    tasks, points = [], set()
    given = _without_machines(table, args)
    for point, raw, options in simulations.expanded(args, given, assignments, folder, PATHS, NAMES):
        points.add(point.name)
        config = bind(PopulationsConfig, raw, where)
        config = _shortened(config) if args.quick else config
        config.scene(0)  # what cannot be read is said before anything runs
        for each in contenders(config, options, where):
            out = args.out / point.name / each.name if args.out else None
            tasks.append(PopulationTask(point.name, point.parameters, out, typed(), config, each))
    simulations.announce(sum(len(task.seeds) for task in tasks), len(points), args.max_simulations)
    return tasks


def _without_machines(table: dict[str, object], args: argparse.Namespace) -> dict[str, object]:
    """Return a table in which slots given as a flag replace the clusters of the file."""
    from rota.config.grid import fix

    if args.slots is None:
        return table
    return {key: value for key, value in fix(table, ("cluster",)).items() if key != "cluster"}


def _assignments(args: argparse.Namespace) -> Iterator[str]:
    """Return the flags as assignments to keys."""
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
    """Return the names of the allocations that are asked for; None if none are named."""
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
    """Return speeds as TOML, `[1.3, 1.0]` for `1.3,1`; of a file of scores, those of its slots."""
    if text.endswith(".json"):
        from rota.core.population.scores import cluster_of, read_scores

        return json.dumps([slot.speed for slot in cluster_of(read_scores(Path(text))).cluster.slots])
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


def _rows(tasks: "Sequence[PopulationTask]", done: "Sequence[PopulationSummary]") -> list[dict[str, Any]]:
    """Return the columns of the table and more, with the bounds of the table."""
    from rota.results.population.summary import at_points

    rows = []
    for task, summary in zip(tasks, at_points([task.point for task in tasks], done), strict=True):
        values = {key: getattr(summary, key) for key in JSON_KEYS}
        known = {key: value for key in MEASURED if (value := getattr(summary, key)) is not None}
        rows.append({**task.at(), "allocation": summary.allocation, **values, **known})
    return rows


def _text(tasks: "Sequence[PopulationTask]", done: "Sequence[PopulationSummary]") -> str:
    from rota.results.parameters import Labels
    from rota.results.population.summary import comparison

    labels = Labels(task.parameters for task in tasks)
    points = [labels.text(task.parameters) for task in tasks]
    return comparison(list(zip(points, done, strict=True)))


def _grid(tasks: "Sequence[PopulationTask]", done: "Sequence[PopulationSummary]") -> "ParameterGrid":
    from rota.figures.grid_runs import population_grid

    return population_grid([task.run(summary) for task, summary in zip(tasks, done, strict=True)])


POPULATIONS = simulations.Subject(" allocations", _tasks, _rows, _text, _grid)
