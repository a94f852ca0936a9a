"""Populations simulated from Python: trials on slots, under an allocation and an evolution."""

import hashlib
import math
import os
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import tomli_w

from rota.config.bind import bind
from rota.config.dump import dump
from rota.config.load import merged
from rota.core.cluster import Cluster
from rota.core.errors import ConfigError, InputError, Stuck
from rota.core.shipped import located
from rota.library.code import files_behind
from rota.library.given import seeds_of, table_of, whole
from rota.library.population_policies import Contender, chosen_policy
from rota.library.population_run import PopulationRun
from rota.library.spaces import as_starts
from rota.policies.evolution.pbt import Pbt
from rota.replay.population.experiment import PopulationsConfig
from rota.replay.population.recorded import BATCH
from rota.replay.population.rehearse import Rehearsed, Scene, rehearse
from rota.results.population.folder import PopulationFolder
from rota.results.population.repetition import Repetition, measure
from rota.results.population.run import PopulationRun as Record
from rota.results.population.summary import SlotInfo, Summary

GIVEN = "given"
"""What a cluster is called that came as an object."""


def simulate_population(
    curves: str | os.PathLike[str] | None,
    cluster: Cluster | Sequence[float],
    *,
    allocation: Any = "finish",
    evolution: Any = "none",
    trials: int = 20,
    steps: int = 1000,
    interval: int = 50,
    target: float | None = None,
    start: Mapping[str, Any] | None = None,
    seeds: int | Iterable[int] = 1,
    settings: Mapping[str, Any] | None = None,
) -> PopulationRun:
    """Simulate the training of a population of trials on slots, with each of the seeds.

    `curves` is the folder of a recording of curves, which says what a step takes and how good trials become
    (`results/recordings/curves/…`; those that come with rota are found from anywhere). With None all trials
    take the same, nothing is measured, and only the makespan is asked about. `cluster` is a `rota.Cluster`,
    each GPU a slot, or the relative speeds of slots. `allocation` and `evolution` are names, classes in a
    file (`"mine.py:Mine"`), classes, or objects; see `rota.Allocation` and `rota.Evolution`.

    Each of the `trials` is trained for `steps` steps and reports every `interval` steps; one that reaches
    `target` is done, too. Trials begin with hyper-parameters that are drawn from `start`, a dictionary of
    `rota.Uniform`, `rota.LogUniform`, `rota.Choice` or lists; else from what was recorded. `seeds` are how
    many, or which. `settings` are further keys of a configuration, as in `{"costs": {"dispatch_s": 0.1}}`;
    `rota simulate --help-config` lists them.

    Raises `rota.RotaError` if something does not fit.

    >>> import rota
    >>> equal = rota.simulate_population(None, [1.0, 1.0], trials=4, steps=100, interval=100)
    >>> equal.metrics.makespan_s  # four trials of 100 s on two slots
    200.0
    """
    table = _table(curves, cluster, trials, steps, interval, target, start, evolution)
    config = bind(PopulationsConfig, merged(table, table_of("settings", settings)), "settings")
    chosen = chosen_policy(allocation, evolution, config.population, config.retirement)
    return simulated(config, chosen, seeds_of(seeds))


def simulated(
    config: PopulationsConfig,
    chosen: Contender,
    seeds: Sequence[int],
    tick: Callable[[], object] = lambda: None,
) -> PopulationRun:
    """Return what comes of a population with each of the seeds; `tick` is called after each."""
    warm_up(config, chosen)
    done: dict[int, Rehearsed] = {}
    for seed in seeds:
        done[seed] = simulate_seed(config, chosen, seed)
        tick()
    repetitions = [measured(config, chosen, seed, each) for seed, each in done.items()]
    summary = summarised(config, chosen, repetitions)
    folder = PopulationFolder(Path(chosen.name))
    timelines = {seed: each.timeline for seed, each in done.items()}
    record = Record(folder, summary, "rota.simulate_population", timelines)
    said = {**tomllib.loads(dump(config)), "allocations": [chosen.name], "evolution": chosen.evolution}
    text = f"# made from Python\n{tomli_w.dumps(said)}"
    return PopulationRun(record, text, _digest(config, chosen, seeds))


def simulate_seed(config: PopulationsConfig, chosen: Contender, seed: int) -> Rehearsed:
    """Return what comes of a population with one seed."""
    try:
        return rehearse(scene_of(config, chosen, seed), config.population.landscape(), chosen.policy, seed)
    except Stuck as error:
        where = f"{chosen.name} on {config.cluster_name()}, seed {seed}"
        raise Stuck(f"{where}: {error}; leave that allocation out, or look at the cluster") from None


def warm_up(config: PopulationsConfig, chosen: Contender) -> None:
    """Simulate a little, so that compiling does not count."""
    population = config.population
    short = replace(population, steps=min(population.steps, 2 * population.interval))
    scene = replace(config, population=short).scene(0)
    rehearse(scene, population.landscape(), chosen.policy)


def scene_of(config: PopulationsConfig, chosen: Contender, seed: int) -> Scene:
    """Return what is simulated with a seed, with the batch sizes that evolution may lead to."""
    evolution = chosen.policy.evolution
    explored = (evolution.space or {}).get(BATCH) if isinstance(evolution, Pbt) else None
    return config.scene(seed, explored.values if explored else ())


def summarised(config: PopulationsConfig, chosen: Contender, repetitions: Iterable[Repetition]) -> Summary:
    """Return what came of it with each seed, in numbers."""
    fleet = config.fleet()
    return Summary(
        allocation=chosen.name,
        evolution=chosen.evolution,
        population=config.population.said(),
        cluster=config.cluster_name(),
        target=config.population.target if math.isfinite(config.population.target) else None,
        slots=tuple(SlotInfo(fleet.nodes[slot.node], slot.device, slot.speed) for slot in fleet.slots),
        repetitions=tuple(repetitions),
    )


def measured(config: PopulationsConfig, chosen: Contender, seed: int, done: Rehearsed) -> Repetition:
    """Return what came of a population with one seed, in numbers."""
    scene = scene_of(config, chosen, seed)
    return measure(
        done.timeline, scene.hypers, scene.fleet, seed=seed, target=scene.terms.target,
        lower_bound_s=config.lower_bound_s(done.timeline, scene),
        decisions=done.decisions, wall_s=done.wall_s,
    )  # fmt: skip


def _table(
    curves: str | os.PathLike[str] | None,
    cluster: Cluster | Sequence[float],
    trials: int,
    steps: int,
    interval: int,
    target: float | None,
    start: Mapping[str, Any] | None,
    evolution: Any,
) -> dict[str, Any]:
    """What a configuration file would say."""
    trials, steps, interval = whole("trials", trials), whole("steps", steps), whole("interval", interval)
    population: dict[str, Any] = {"trials": trials, "steps": steps, "interval": min(interval, max(steps, 1))}
    population |= {} if curves is None else {"curves": str(located(Path(curves)))}
    population |= {} if target is None else {"target": target}
    population |= {"start": as_starts(start)} if start else {}
    if curves is None and evolution != "none":
        raise ConfigError("evolution: nothing says how good trials are without curves; give a recording")
    return {"population": population, **_slots(cluster)}


def _slots(cluster: Any) -> dict[str, Any]:
    if not isinstance(cluster, Cluster):
        if isinstance(cluster, str | bytes) or not isinstance(cluster, Iterable):
            raise InputError(f"the cluster is a {type(cluster).__name__}; give a rota.Cluster, or speeds")
        try:
            speeds = [float(speed) for speed in cluster]
        except (TypeError, ValueError):
            raise InputError("the cluster is a list of speeds; give a number for each slot") from None
        if not speeds:
            raise InputError("the cluster has no slots; give at least one speed")
        return {"slots": speeds}
    if cluster.changes or cluster.slots_per_gpu > 1:
        raise InputError("the cluster has nodes that come and go, or fractions of GPUs; say so in `settings`")
    slots = [
        {
            "count": node.slots,
            "speed": cluster.speed("default", node.kind),
            "node": f"node{number}",
            "switch": node.switch,
            "device": node.kind,
            "speeds": {m: s for m, s in cluster.speeds.get(node.kind, {}).items() if m != "default"},
        }
        for number, node in enumerate(cluster.nodes)
    ]
    return {"cluster": GIVEN, "clusters": {GIVEN: {"slots": slots}}}


def _digest(config: PopulationsConfig, chosen: Contender, seeds: Sequence[int]) -> str:
    found = hashlib.sha256(repr((config, chosen.settings(), list(seeds))).encode())
    for file in files_behind([chosen.policy.allocation, chosen.policy.evolution]):
        found.update(file.read_bytes())
    return found.hexdigest()
