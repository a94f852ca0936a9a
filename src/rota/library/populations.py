"""Populations simulated from Python, and the policies that names stand for."""

import hashlib
import inspect
import math
import os
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, is_dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

import tomli_w

from rota.config.bind import bind, made
from rota.config.load import dump, merged
from rota.core.cluster import Cluster
from rota.core.errors import ConfigError, InputError, Stuck, unknown
from rota.core.files import located
from rota.core.population.engine import PopulationEngine
from rota.core.registry import Registry, check_class, is_outside, name_of
from rota.library.inputs import files_behind, seeds_of, settings, table_of, whole
from rota.library.population_run import PopulationRun
from rota.library.spaces import as_starts
from rota.policies.allocation import registry as allocations
from rota.policies.allocation.registry import allocation_class, named
from rota.policies.config import PRESETS, PolicyChoice, TrialsConfig
from rota.policies.evolution import registry as evolutions
from rota.policies.evolution.pbt import Pbt
from rota.policies.evolution.registry import EVOLUTIONS, evolution_class
from rota.policies.growth import registry as growths
from rota.policies.growth.registry import GROWTHS, growth_class
from rota.policies.population import PopulationPolicy, RetireSlowest
from rota.results.folder import PopulationFolder
from rota.results.population.repetition import Repetition, measure
from rota.results.population.run import PopulationRecord as Record
from rota.results.population.summary import PopulationSummary, SlotInfo
from rota.simulator.landscapes import BATCH
from rota.simulator.population import PopulationScenario, SimulatedPopulation, simulate_trials
from rota.simulator.population_config import PopulationsConfig

KNOWN = (*allocations.REGISTRY.known, *PRESETS, *EVOLUTIONS, *GROWTHS)
"""Names of policies that have options."""
NAMES = ("allocation", "allocations", "evolution", "growth")
"""Keys of a configuration that name classes, perhaps in files."""


@dataclass(frozen=True, slots=True)
class Preset:
    """SPA or GPA with ERA or ETA, as users of the originals know them: with their shares and retirement."""

    original: bool = False
    """By the rules of the originals, with their defects."""


@dataclass(frozen=True, slots=True)
class AgentOptions:
    """The adaptation agent, which decides about one trial at a time."""

    agent: Path
    """Folder of an agent that rota learn wrote."""


class Variant(NamedTuple):
    """A policy of populations that is compared with others."""

    name: str
    policy: PopulationPolicy
    options: dict[str, dict[str, Any]]
    """Name → options in full, of its allocation and its evolution."""
    evolution: str
    """What its evolution is called."""
    spec: str = ""
    """How a configuration names the allocation."""
    growth: str = "never"
    """What its growth policy is called."""

    @property
    def policies(self) -> tuple[Any, ...]:
        """The policies that have options."""
        found = (self.policy.allocation, self.policy.evolution, self.policy.growth)
        return tuple(each for each in found if each is not None)

    def settings(self) -> str:
        """Return what its policies are, with their options, as text that is the same for equal ones."""
        parts = self.policies
        return f"{[settings(part) for part in parts]} {self.policy.retirement}"


class _Chosen(NamedTuple):
    """An allocation or an evolution, and its name."""

    name: str
    policy: Any


def option_classes() -> dict[str, Any]:
    """Return the class whose fields are the options, by name of the policy."""
    classes = {name: allocation_class(name) for name in allocations.REGISTRY.known}
    classes |= dict.fromkeys(PRESETS, Preset)
    classes |= {name: growth_class(name) for name in GROWTHS if name != "agent"} | {"agent": AgentOptions}
    return classes | {name: evolution_class(name) for name in EVOLUTIONS}


def variants(
    config: PolicyChoice, options: Any, where: str, objects: Mapping[str, Any] | None = None
) -> Iterator[Variant]:
    """Give each allocation with its options; evolution and retirement are the same for all.

    `objects` are those of names that stand for objects that are there already.
    """
    if not isinstance(options, Mapping):
        raise ConfigError(f"{where}: options is not a table")
    there = objects or {}
    evolution = _evolution(config.evolution, options, where, there)
    evolution = evolution._replace(policy=_fitted(evolution, config.population, where))
    growth = _growth(getattr(config, "growth", "never"), options, where)
    chosen = [_allocation(name, options, where, there) for name in config.allocations]
    _check_names([evolution.name, growth.name, *(each.name for each in chosen)], options, where)
    for spec, (name, given) in zip(config.allocations, chosen, strict=True):
        policy = policy_of(name, given, evolution.policy, config.retirement, options, where)
        tables = {name: _options_table(given), evolution.name: _options_table(evolution.policy)}
        tables[growth.name] = _options_table(growth.policy)
        if name in PRESETS:
            tables[mode_of(name)] = _options_table(policy.allocation)
        used = {each: table for each, table in tables.items() if table}
        yield Variant(name, grown(policy, growth), used, evolution.name, spec, growth.name)


def chosen_policy(
    allocation: Any,
    evolution: Any,
    trials: TrialsConfig,
    retirement: RetireSlowest | None = None,
    growth: Any = "never",
) -> Variant:
    """Return the policy of an allocation, an evolution and growth, given as names, classes or objects."""
    change = _given(evolution, evolutions.REGISTRY, "evolution")
    change = change._replace(policy=_fitted(change, trials, "evolution"))
    place = _given(allocation, allocations.REGISTRY, "allocation")
    how = _given(growth, growths.REGISTRY, "growth")
    _check_names([change.name, place.name, how.name], {}, "allocation")
    policy = grown(policy_of(place.name, place.policy, change.policy, retirement), how)
    return Variant(place.name, policy, {}, change.name, growth=how.name)


def grown(policy: PopulationPolicy, growth: "_Chosen") -> PopulationPolicy:
    """Return a policy under which networks grow, unless they never do."""
    return policy if growth.name == "never" else replace(policy, growth=growth.policy)


def _growth(spec: str, options: Mapping[str, Any], where: str) -> "_Chosen":
    return _named(spec, growths.growth_class(spec), options, where)


def policy_of(
    name: str,
    given: Any,
    evolution: Any,
    retirement: RetireSlowest | None,
    options: Mapping[str, Any] | None = None,
    where: str = "",
) -> PopulationPolicy:
    """Return an allocation, or what a preset stands for, with an evolution.

    `retirement`, and in `options` those of what a preset allocates by, take the place of the preset's own.
    """
    if name not in PRESETS:
        return PopulationPolicy(given, evolution, retirement)
    system, mode = name.split("-")
    table = dict((options or {}).get(mode, {}))
    original = given.original or bool(table.get("original", False))
    allocation, retires = named(system, mode, original=original)
    if table.get("split", allocation.split) != allocation.split:
        raise ConfigError(
            f"{where}: options.{mode}.split is {table['split']!r}, but {name} divides trials as {system} "
            f"does; leave one of them out"
        )
    table |= {"split": allocation.split, "original": original}
    allocation = made(type(allocation), table, f"{where}: options.{mode}")
    if retirement is not None:
        retires = replace(retirement, original=retirement.original or original)
    return PopulationPolicy(allocation, evolution, retires)


def mode_of(preset: str) -> str:
    """Return the allocation that a preset stands for: `spa-era` → `era`."""
    return preset.split("-")[1]


def _evolution(spec: str, options: Mapping[str, Any], where: str, objects: Mapping[str, Any]) -> _Chosen:
    if spec in objects:
        return _given(objects[spec], evolutions.REGISTRY, where)
    return _named(spec, evolution_class(spec), options, where)


def _allocation(spec: str, options: Mapping[str, Any], where: str, objects: Mapping[str, Any]) -> _Chosen:
    if spec in objects:
        return _given(objects[spec], allocations.REGISTRY, where)
    return _named(spec, Preset if spec in PRESETS else allocation_class(spec), options, where)


def _named(spec: str, found: Any, options: Mapping[str, Any], where: str) -> _Chosen:
    """Return an object of the class behind a name, with its options."""
    name = outside_name(found, spec) if is_outside(spec) else spec
    return _Chosen(name, made(found, options.get(name, {}), f"{where}: options.{name}"))


def _given(given: Any, registry: Registry, where: str) -> _Chosen:
    """Return a policy that was given as a name, as a class or as an object."""
    if isinstance(given, str):
        return _named(given, Preset if given in PRESETS else registry.find(given), {}, where)
    found = given if inspect.isclass(given) else type(given)
    name = registry.own_name(found)
    if name is None:
        check_class(found, registry.seam, found.__name__)
        name = outside_name(found, found.__name__)
    return _Chosen(name, made(given, {}, where) if inspect.isclass(given) else given)


def outside_name(found: type, where: str) -> str:
    """Return the name of a class that is not rota's; raises ConfigError if one of rota's has it."""
    name = name_of(found)
    if name in KNOWN:
        raise ConfigError(
            f"{where}: is called {name!r}, as one of rota's; give the class another name, or a `name`"
        )
    return name


def _check_names(names: list[str], options: Mapping[str, Any], where: str) -> None:
    for name in names:
        if names.count(name) > 1:
            raise ConfigError(f"{where}: two policies are called {name}; give one of the classes a `name`")
    for name in options:
        if name not in (known := list(dict.fromkeys((*KNOWN, *names)))):
            raise ConfigError(f"{where}: options: {unknown('allocation, evolution or growth', name, known)}")


def _options_table(given: Any) -> dict[str, Any]:
    """Return all options that a file can say."""
    return tomllib.loads(dump(given)) if is_dataclass(given) else {}


def _fitted(evolution: _Chosen, trials: TrialsConfig, where: str) -> Any:
    """Return a policy with what it takes over from trials; raises ConfigError if its options do not fit."""
    policy = evolution.policy
    try:
        if hasattr(policy, "check"):
            policy.check(trials)
        return policy.fitted(trials) if hasattr(policy, "fitted") else policy
    except ConfigError as error:
        raise ConfigError(f"{where}: options.{evolution.name}: {error}") from None


GIVEN = "given"
"""Name of a cluster that came as an object."""


def simulate_population(
    curves: str | os.PathLike[str] | None,
    cluster: Cluster | Sequence[float],
    *,
    allocation: Any = "finish",
    evolution: Any = "none",
    growth: Any = "never",
    trees: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] = (),
    trials: int = 20,
    steps: int = 1000,
    interval: int = 50,
    target: float | None = None,
    deadline_s: float | None = None,
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

    Instead of curves, `trees` are growth trees of one data set, or folders of them
    (`results/recordings/growth/…`): then networks may grow while trials train, as `growth` says: a name
    (`"stump"`), a class or an object, see `rota.Growth`. The run ends at `deadline_s`, if that is given.

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
    found = _trees(trees)
    table = _table(curves, cluster, trials, steps, interval, target, start, evolution, found)
    table["population"] |= {} if deadline_s is None else {"deadline_s": deadline_s}
    further = table_of("settings", settings)
    if "growth" in further:
        raise ConfigError("settings: growth is an argument of its own; give growth=…")
    config = bind(PopulationsConfig, merged(table, further), "settings")
    if growth != "never" and not found:
        raise ConfigError("growth: networks grow on recorded growth trees only; give trees")
    chosen = chosen_policy(allocation, evolution, config.population, config.retirement, growth)
    return simulated(config, chosen, seeds_of(seeds))


def simulated(
    config: PopulationsConfig,
    chosen: Variant,
    seeds: Sequence[int],
    tick: Callable[[], object] = lambda: None,
) -> PopulationRun:
    """Return what comes of a population with each of the seeds; `tick` is called after each."""
    warm_up(config, chosen)
    done: dict[int, SimulatedPopulation] = {}
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


def simulate_seed(config: PopulationsConfig, chosen: Variant, seed: int) -> SimulatedPopulation:
    """Return what comes of a population with one seed."""
    try:
        return simulate_trials(
            scene_of(config, chosen, seed), config.population.landscape(), chosen.policy, seed
        )
    except Stuck as error:
        where = f"{chosen.name} on {config.cluster_name()}, seed {seed}"
        raise Stuck(f"{where}: {error}; leave that allocation out, or look at the cluster") from None


def warm_up(config: PopulationsConfig, chosen: Variant) -> None:
    """Simulate a little, so that compiling does not count."""
    population = config.population
    short = population
    if not population.trees:
        short = replace(population, steps=min(population.steps, 2 * population.interval))
    scene = replace(config, population=short).scene(0)
    simulate_trials(scene, population.landscape(), chosen.policy)


def scene_of(config: PopulationsConfig, chosen: Variant, seed: int) -> PopulationScenario:
    """Return what is simulated with a seed, with the batch sizes that evolution may lead to."""
    evolution = chosen.policy.evolution
    explored = (evolution.space or {}).get(BATCH) if isinstance(evolution, Pbt) else None
    return config.scene(seed, explored.values if explored else ())


def summarised(
    config: PopulationsConfig, chosen: Variant, repetitions: Iterable[Repetition]
) -> PopulationSummary:
    """Return what came of it with each seed, in numbers."""
    cluster = config.population_cluster()
    return PopulationSummary(
        allocation=chosen.name,
        evolution=chosen.evolution,
        growth=chosen.growth,
        population=config.population.said(),
        cluster=config.cluster_name(),
        target=config.population.target if math.isfinite(config.population.target) else None,
        slots=tuple(
            SlotInfo(cluster.names[slot.node], slot.device, slot.speed) for slot in cluster.all_slots
        ),
        repetitions=tuple(repetitions),
        timing=config.timing(),
    )


def measured(config: PopulationsConfig, chosen: Variant, seed: int, done: SimulatedPopulation) -> Repetition:
    """Return what came of a population with one seed, in numbers."""
    scene = scene_of(config, chosen, seed)
    return measure(
        done.timeline, scene.hypers, scene.cluster, seed=seed, target=scene.terms.target,
        lower_bound_s=config.lower_bound_s(done.timeline, scene),
        decisions=done.decisions, wall_s=done.wall_s, deadline_s=scene.deadline_s,
        test_accuracies=test_accuracies(done.state),
    )  # fmt: skip


def test_accuracies(state: PopulationEngine) -> Sequence[float]:
    """Return trial → its recorded test accuracy in the end; empty unless trials walk along trees."""
    trees = state.walked
    return [] if trees is None else trees.nodes.test_accuracy[trees.node_of].tolist()


def _table(
    curves: str | os.PathLike[str] | None,
    cluster: Cluster | Sequence[float],
    trials: int,
    steps: int,
    interval: int,
    target: float | None,
    start: Mapping[str, Any] | None,
    evolution: Any,
    trees: list[str],
) -> dict[str, Any]:
    """Return what a configuration file would say."""
    trials, steps, interval = whole("trials", trials), whole("steps", steps), whole("interval", interval)
    population: dict[str, Any] = {"trials": trials, "steps": steps, "interval": min(interval, max(steps, 1))}
    population |= {} if curves is None else {"curves": str(located(Path(curves)))}
    population |= {} if target is None else {"target": target}
    population |= {"start": as_starts(start)} if start else {}
    population |= {"trees": trees} if trees else {}
    if curves is None and not trees and evolution != "none":
        raise ConfigError("evolution: nothing says how good trials are without curves; give a recording")
    return {"population": population, **_slots(cluster)}


def _trees(given: Any) -> list[str]:
    several = [given] if isinstance(given, str | os.PathLike) else list(given)
    return [str(located(Path(each))) for each in several]


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
    if cluster.slots_per_gpu > 1:
        raise InputError("the cluster has fractions of GPUs; give the slots that trials are to have")
    names, nodes = cluster.names, cluster.nodes
    found = {
        "slots": [
            {
                "count": len(list(same)),
                "speed": slot.speed,
                "node": names[slot.node],
                "switch": nodes[slot.node].switch,
                "device": slot.device,
                "speeds": dict(slot.speeds),
            }
            for slot, same in groupby(cluster.all_slots)
        ],
        "changes": [
            {"at_s": change.at_s, "node": names[change.node], "what": "join" if change.joins else "leave"}
            for change in cluster.changes
        ],
        "slowdowns": [
            {"at_s": each.at_s, "node": names[each.node], "factor": each.factor} for each in cluster.slowdowns
        ],
    }
    return {"cluster": GIVEN, "clusters": {GIVEN: found}}


def _digest(config: PopulationsConfig, chosen: Variant, seeds: Sequence[int]) -> str:
    found = hashlib.sha256(repr((config, chosen.settings(), list(seeds))).encode())
    for file in files_behind(chosen.policies):
        found.update(file.read_bytes())
    return found.hexdigest()
