"""One allocation on a population: simulated with every seed, summarised, and kept in its folder."""

import hashlib
import os
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import tomli_w

import rota
from rota.commands.simulations import GridTask, note_made_anew
from rota.config.load import dump
from rota.core.registry import placed_name
from rota.library.inputs import files_behind
from rota.library.populations import Variant, measured, simulate_seed, summarised, warm_up
from rota.results.population.folder import PopulationFolder, Repetition
from rota.results.population.run import PopulationRecord, read_population, write_population
from rota.results.population.summary import PopulationSummary
from rota.simulator.population import SimulatedPopulation
from rota.simulator.population_config import PopulationsConfig

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

    @property
    def allocation(self) -> str:
        return self.variant.name

    @property
    def policies(self) -> tuple[Any, ...]:
        return (self.variant.policy.allocation, self.variant.policy.evolution)

    @property
    def seeds(self) -> range:
        return range(self.config.seeds)

    def found(self) -> PopulationSummary | None:
        if self.folder is None or not PopulationFolder(self.folder).complete(self.inputs):
            return None
        return read_population(self.folder).summary

    def finish(self, made: Sequence[SeedResult]) -> PopulationSummary:
        summary = summarised(self.config, self.variant, [each.repetition for each in made])
        if self.folder is not None:
            if PopulationFolder(self.folder).begun:
                note_made_anew(self.folder)
            write_population(
                self.folder, summary, {seed: each.done.timeline for seed, each in enumerate(made)},
                config=self._resolved(self.folder), inputs=self.inputs, command=self.command,
                parameters=self.parameters,
            )  # fmt: skip
        return summary

    def run(self, summary: PopulationSummary) -> PopulationRecord:
        """Return the run as figures of a grid see it."""
        folder = PopulationFolder(self.folder or Path(self.point) / self.allocation)
        return PopulationRecord(folder, summary, self.command, parameters=self.parameters)

    def simulated(self, seed: int) -> SeedResult:
        self.warm_up()
        done = simulate_seed(self.config, self.variant, seed)
        return SeedResult(done, measured(self.config, self.variant, seed, done))

    def warm_up(self) -> None:
        if (self.point, self.allocation) in _warm:
            return
        _warm.add((self.point, self.allocation))
        warm_up(self.config, self.variant)

    def _resolved(self, folder: Path) -> str:
        """Return the configuration of this run, complete: it can be given to `rota simulate` as it is."""
        config = self.config
        used = {config.cluster: config.clusters[config.cluster]} if config.cluster else {}
        paths = {"curves": config.population.curves, "profiles": config.population.profiles}
        found = {name: path and Path(os.path.relpath(path, folder)) for name, path in paths.items()}
        population = replace(config.population, curves=found["curves"], profiles=found["profiles"])
        named = [placed_name(name, Path.cwd()) for name in (self.variant.spec, config.evolution)]
        whole = replace(
            config, population=population, clusters=used, allocations=(named[0],), evolution=named[1]
        )
        options = {name: dict(table) for name, table in self.variant.options.items()}
        for table in options.values():
            table.update({"agent": os.path.relpath(table["agent"], folder)} if "agent" in table else {})
        return tomli_w.dumps({**tomllib.loads(dump(whole)), **({"options": options} if options else {})})

    @cached_property
    def inputs(self) -> str:
        """The digest of the configuration, what it names, and the code that simulates."""
        config = replace(self.config, allocations=(self.variant.spec,))
        digest = hashlib.sha256(repr((config, self.variant.settings())).encode())
        files = [file for part in SOURCES for file in _files(Path(rota.__file__).parent / part)]
        population = config.population
        named = (
            population.curves,
            population.profiles,
            getattr(self.variant.policy.allocation, "agent", None),
        )
        files += [file for folder in named if folder for file in _files(folder)]
        files += files_behind(self.policies)
        for file in files:
            digest.update(file.read_bytes())
        return digest.hexdigest()


_warm: set[tuple[str, str]] = set()
"""What was simulated in this process: point and allocation."""


def _files(folder: Path) -> list[Path]:
    return [path for path in sorted(folder.rglob("*")) if path.is_file() and "__pycache__" not in path.parts]
