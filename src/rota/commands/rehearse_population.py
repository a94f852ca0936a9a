"""One allocation on a population: rehearsed with every seed, summarised, and kept in its folder."""

import hashlib
import math
import os
import sys
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import tomli_w

import rota
from rota.commands.population_policies import Contender
from rota.commands.typed import typed
from rota.config.dump import dump
from rota.core.errors import Stuck
from rota.policies.evolution.pbt import Pbt
from rota.replay.population.experiment import PopulationsConfig
from rota.replay.population.recorded import BATCH
from rota.replay.population.rehearse import Rehearsed, Scene, rehearse
from rota.results.population.folder import PopulationFolder
from rota.results.population.repetition import Repetition, measure
from rota.results.population.run import read_population, write_population
from rota.results.population.summary import SlotInfo, Summary

SOURCES = ("core", "policies", "replay", "results", "agents")
"""Parts of the package that a run follows from."""


@dataclass(frozen=True, slots=True)
class Contest:
    """One allocation at one point of a grid, ready to run."""

    point: str
    config: PopulationsConfig
    contender: Contender

    @property
    def allocation(self) -> str:
        return self.contender.name

    def run(self, out: Path | None, tick: Callable[[], object]) -> Summary:
        """What came of it; taken from its folder if it was made from the same inputs."""
        if out is None:
            return self._summary(self._rehearse(tick))
        folder, inputs = PopulationFolder(out / self.point / self.allocation), self._digest()
        if folder.complete(inputs):
            print(f"{folder.path}: reused, its inputs are the same", file=sys.stderr)
            return read_population(folder.path).summary
        if folder.begun:
            print(f"{folder.path}: made anew, it was incomplete or made from other inputs", file=sys.stderr)
        done = self._rehearse(tick)
        summary = self._summary(done)
        write_population(
            folder.path, summary, {seed: each.timeline for seed, each in enumerate(done)},
            config=self._resolved(folder.path), inputs=inputs, command=typed(),
        )  # fmt: skip
        return summary

    def _rehearse(self, tick: Callable[[], object]) -> list[Rehearsed]:
        """With each seed, after a short rehearsal so that compiling does not count."""
        self._warm_up()
        done = []
        for seed in range(self.config.seeds):
            landscape = self.config.population.landscape()
            try:
                done.append(rehearse(self.scene(seed), landscape, self.contender.policy, seed))
            except Stuck as error:
                where = f"{self.allocation} on {self.config.cluster_name()}, seed {seed}"
                raise Stuck(f"{where}: {error}; leave that allocation out, or look at the cluster") from None
            tick()
        return done

    def scene(self, seed: int) -> Scene:
        """What is rehearsed with a seed, with the batch sizes that evolution may lead to."""
        evolution = self.contender.policy.evolution
        explored = evolution.space.get(BATCH) if isinstance(evolution, Pbt) else None
        return self.config.scene(seed, explored.values if explored else ())

    def _warm_up(self) -> None:
        population = self.config.population
        short = replace(population, steps=min(population.steps, 2 * population.interval))
        scene = replace(self.config, population=short).scene(0)
        rehearse(scene, population.landscape(), self.contender.policy)

    def _summary(self, done: Sequence[Rehearsed]) -> Summary:
        config, fleet = self.config, self.config.fleet()
        slots = tuple(SlotInfo(fleet.nodes[slot.node], slot.device, slot.speed) for slot in fleet.slots)
        return Summary(
            allocation=self.allocation,
            evolution=config.evolution,
            population=config.population.said(),
            cluster=config.cluster_name(),
            target=config.population.target if math.isfinite(config.population.target) else None,
            slots=slots,
            repetitions=tuple(self._repetition(seed, each) for seed, each in enumerate(done)),
        )

    def _repetition(self, seed: int, done: Rehearsed) -> Repetition:
        scene = self.scene(seed)
        return measure(
            done.timeline, scene.hypers, scene.fleet, seed=seed, target=scene.terms.target,
            lower_bound_s=self.config.lower_bound_s(done.timeline, scene),
            decisions=done.decisions, wall_s=done.wall_s,
        )  # fmt: skip

    def _resolved(self, folder: Path) -> str:
        """The configuration of this run, complete: it can be given to `rota simulate` as it is."""
        config = self.config
        used = {config.cluster: config.clusters[config.cluster]} if config.cluster else {}
        paths = {"curves": config.population.curves, "profiles": config.population.profiles}
        found = {name: path and Path(os.path.relpath(path, folder)) for name, path in paths.items()}
        population = replace(config.population, curves=found["curves"], profiles=found["profiles"])
        whole = replace(config, population=population, clusters=used, allocations=(self.allocation,))
        options = {name: dict(table) for name, table in self.contender.options.items()}
        for table in options.values():
            table.update({"agent": os.path.relpath(table["agent"], folder)} if "agent" in table else {})
        return tomli_w.dumps({**tomllib.loads(dump(whole)), **({"options": options} if options else {})})

    def _digest(self) -> str:
        """What a run follows from: the configuration, what it names, and the code that simulates."""
        config = replace(self.config, allocations=(self.allocation,))
        digest = hashlib.sha256(repr((config, self.contender.policy)).encode())
        files = [file for part in SOURCES for file in _files(Path(rota.__file__).parent / part)]
        population = config.population
        named = (
            population.curves,
            population.profiles,
            getattr(self.contender.policy.allocation, "agent", None),
        )
        files += [file for folder in named if folder for file in _files(folder)]
        for file in files:
            digest.update(file.read_bytes())
        return digest.hexdigest()


def _files(folder: Path) -> list[Path]:
    return [path for path in sorted(folder.rglob("*")) if path.is_file() and "__pycache__" not in path.parts]
