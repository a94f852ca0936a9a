"""`rota simulate` of a population: trials on unequal slots, under allocations that are compared."""

import argparse
import hashlib
import json
import os
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import tomli_w

import rota
from rota.commands.common import preset_name, typed
from rota.commands.simulate import OF_POPULATIONS
from rota.commands.simulate_flow import GridTask, Subject, announce, expanded, seen_from
from rota.config.grid import fix
from rota.config.load import dump
from rota.core.errors import ConfigError
from rota.core.population.scores import cluster_of, read_scores
from rota.core.registry import placed_name
from rota.library.inputs import files_behind
from rota.library.populations import (
    NAMES,
    Variant,
    measured,
    simulate_seed,
    summarised,
    variants,
    warm_up,
)
from rota.results.folder import PopulationFolder
from rota.results.parameters import Labels
from rota.results.population.repetition import Repetition
from rota.results.population.run import PopulationRecord, read_population, write_population
from rota.results.population.summary import PopulationSummary, at_points, comparison
from rota.simulator.population import SimulatedPopulation
from rota.simulator.population_config import PopulationsConfig

if TYPE_CHECKING:
    from rota.figures.grid_runs import ParameterGrid

QUICK_STEPS, QUICK_SEEDS = 4, 1
"""Intervals that a trial gets, and repetitions, with `--quick`."""
PATHS = (
    "population.curves", "population.trees", "population.profiles", "options.learned.agent",
    "options.joint.agent", "options.agent.agent",
)  # fmt: skip
"""Keys that name folders."""
JSON_KEYS = ("makespan_s", "lower_bound_s", "ratio", "idle", "clones", "decisions_per_s")
MEASURED = ("best_accuracy", "final_accuracy", "to_target_s")
"""Keys of the JSON that are there where accuracies are measured."""
AT_DEADLINE = ("best_three", "test_accuracy", "gpu_s", "growth", "growths")
"""Keys that are there at a deadline, or where networks grow."""
SOURCES = ("core", "policies", "simulator", "results", "agents")
"""Parts of the package that a run follows from."""


class SeedResult(NamedTuple):
    """The result of a population with one seed: its timeline, and its metrics."""

    done: SimulatedPopulation
    repetition: Repetition


@dataclass(frozen=True)
class PopulationTask(GridTask):
    """One allocation at one point of a grid, ready to run."""

    config: PopulationsConfig
    variant: Variant
    results = PopulationFolder

    @property
    def name(self) -> str:
        return self.variant.name

    @property
    def policies(self) -> tuple[Any, ...]:
        return self.variant.policies

    @property
    def seeds(self) -> range:
        return range(self.config.seeds)

    def read(self, folder: Path) -> PopulationSummary:
        return read_population(folder).summary

    def finish(self, made: Sequence[SeedResult]) -> PopulationSummary:
        summary = summarised(self.config, self.variant, [each.repetition for each in made])
        if self.folder is not None:
            self.note_if_made_anew()
            write_population(
                self.folder, summary, {seed: each.done.timeline for seed, each in enumerate(made)},
                config=self._resolved(self.folder), inputs=self.inputs, command=self.command,
                parameters=self.point.parameters,
            )  # fmt: skip
        return summary

    def record(self, summary: PopulationSummary) -> PopulationRecord:
        """Return the run as figures of a grid see it."""
        folder = PopulationFolder(self.folder or Path(self.point.name) / self.name)
        return PopulationRecord(folder, summary, self.command, parameters=self.point.parameters)

    def simulated(self, seed: int) -> SeedResult:
        self.warm_up()
        done = simulate_seed(self.config, self.variant, seed)
        return SeedResult(done, measured(self.config, self.variant, seed, done))

    def warm_up(self) -> None:
        if (self.point.name, self.name) not in _warm:
            _warm.add((self.point.name, self.name))
            warm_up(self.config, self.variant)

    def _resolved(self, folder: Path) -> str:
        """Return the configuration of this run, complete: it can be given to `rota simulate` as it is."""
        config, given = self.config, self.config.population
        used = {config.cluster: config.clusters[config.cluster]} if config.cluster else {}
        curves, profiles = seen_from(folder, given.curves), seen_from(folder, given.profiles)
        population = replace(given, curves=curves, profiles=profiles)
        named = [
            placed_name(name, Path.cwd()) for name in (self.variant.spec, config.evolution, config.growth)
        ]
        whole = replace(
            config, population=population, clusters=used, allocations=(named[0],), evolution=named[1],
            growth=named[2],
        )  # fmt: skip
        options = {name: dict(table) for name, table in self.variant.options.items()}
        for table in options.values():
            table.update({"agent": os.path.relpath(table["agent"], folder)} if "agent" in table else {})
        table = tomllib.loads(dump(whole))
        table["population"]["trees"] = [os.path.relpath(path, folder) for path in given.trees]
        return tomli_w.dumps({**table, **({"options": options} if options else {})})

    @cached_property
    def inputs(self) -> str:
        """The digest of the configuration, what it names, and the code that simulates."""
        config, population = replace(self.config, allocations=(self.variant.spec,)), self.config.population
        digest = hashlib.sha256(repr((config, self.variant.settings())).encode())
        agent = getattr(self.variant.policy.allocation, "agent", None)
        folders = [Path(rota.__file__).parent / part for part in SOURCES]
        grower = getattr(self.variant.policy.growth, "agent", None)
        given = (population.curves, population.profiles, agent, grower, *population.trees)
        folders += [folder for folder in given if folder]
        files = [file for folder in folders for file in _files(folder)]
        for file in (*files, *files_behind(self.policies)):
            digest.update(file.read_bytes())
        return digest.hexdigest()


_warm: set[tuple[str, str]] = set()
"""What was simulated in this process: point and allocation."""


def _files(folder: Path) -> list[Path]:
    return [path for path in sorted(folder.rglob("*")) if path.is_file() and "__pycache__" not in path.parts]


def _tasks(args: argparse.Namespace, table: dict[str, Any]) -> list[PopulationTask]:
    """Put the flags over the configuration, and check all of it before anything runs."""
    if "workload" in table:
        raise ConfigError(f"{args.config}: is about a workload; leave it out, or --population")
    if args.slots is not None:  # they replace the clusters of the file
        table = {key: value for key, value in fix(table, ("cluster",)).items() if key != "cluster"}
    tasks, points = [], 0
    for point, config, options in expanded(
        args, PopulationsConfig, table, list(_assignments(args)), args.config, PATHS, NAMES
    ):
        points += 1
        config = _shortened(config) if args.quick else config
        config.scene(0)  # what cannot be read is said before anything runs
        for each in variants(config, options, str(args.config or "command line")):
            tasks.append(PopulationTask(point, args.out, typed(), config, each))
    announce(sum(len(task.seeds) for task in tasks), points, args.max_simulations)
    return tasks


def _assignments(args: argparse.Namespace) -> Iterator[str]:
    """Return the flags as assignments to keys."""
    for _, key, metavar, _ in OF_POPULATIONS:
        if metavar == "N" and vars(args)[key] is not None:
            yield f"{key}={vars(args)[key]}"
    if args.slots is not None:
        yield f"slots={_speeds(args.slots)}"
    if (trees := vars(args)["population.trees"]) is not None:
        yield f"population.trees={json.dumps(trees.split(','))}"
    if args.growth is not None:
        yield f"growth={json.dumps(args.growth)}"
    names = _names(args)
    if names is not None:
        yield f"allocations={json.dumps(names)}"


def _names(args: argparse.Namespace) -> list[str] | None:
    """Return the names of the allocations that are asked for; None if none are named."""
    names = [word.strip() for word in (args.allocations or "").split(",") if word.strip()]
    if preset := preset_name(args.preset, args.mode):
        return [*names, preset]
    return None if args.allocations is None else names


def _speeds(text: str) -> str:
    """Return speeds as TOML, `[1.3, 1.0]` for `1.3,1`; of a file of scores, those of its slots."""
    if text.endswith(".json"):
        return json.dumps([slot.speed for slot in cluster_of(read_scores(Path(text))).cluster.all_slots])
    try:
        return json.dumps([float(word) for word in text.split(",")])
    except ValueError:
        raise ConfigError(
            f"--slots {text}: not a list of speeds; give numbers, like 1.3,1,0.33, or a score.json"
        ) from None


def _shortened(config: PopulationsConfig) -> PopulationsConfig:
    population = config.population
    steps = min(population.steps, QUICK_STEPS * population.interval)
    seeds = min(config.seeds, QUICK_SEEDS)
    if population.trees:  # whose paths are not cut
        return replace(config, seeds=seeds)
    return replace(config, population=replace(population, steps=steps), seeds=seeds)


def _rows(tasks: Sequence[PopulationTask], done: Sequence[PopulationSummary]) -> list[dict[str, Any]]:
    """Return the columns of the table and more, with the bounds of the table."""
    rows = []
    for task, summary in zip(tasks, at_points([task.point.name for task in tasks], done), strict=True):
        values = {key: getattr(summary, key) for key in JSON_KEYS}
        known = {key: value for key in MEASURED if (value := getattr(summary, key)) is not None}
        timing = {"timing": summary.timing} if summary.timing else {}
        if summary.has_deadline or summary.growth != "never":
            known |= {key: getattr(summary, key) for key in AT_DEADLINE}
        rows.append({**task.at(), "allocation": summary.allocation, **values, **known, **timing})
    return rows


def _text(tasks: Sequence[PopulationTask], done: Sequence[PopulationSummary]) -> str:
    labels = Labels(task.point.parameters for task in tasks)
    points = [labels.text(task.point.parameters) for task in tasks]
    return comparison(list(zip(points, done, strict=True)))


def _grid(tasks: Sequence[PopulationTask], done: Sequence[PopulationSummary]) -> "ParameterGrid":
    from rota.figures.grid_runs import population_grid

    return population_grid([task.record(summary) for task, summary in zip(tasks, done, strict=True)])


POPULATIONS = Subject(" allocations", _tasks, _rows, _text, _grid)
