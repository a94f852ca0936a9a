"""Recorder of growth trees: every path of intervals and changes, each common beginning trained once.

A tree is trained depth first in one process, from copies of the training in memory, so that nothing is
rebuilt. Finished nodes are written every few seconds; a recorder that was stopped trains again only the path
to the first node that is missing.
"""

import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from copy import deepcopy
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from itertools import zip_longest
from pathlib import Path
from typing import Literal

import torch

from rota.core.errors import ConfigError, InputError, unknown
from rota.core.limits import at_least
from rota.core.network import Change
from rota.core.processes import run_dag
from rota.recordings.folder import complete, provenance
from rota.recordings.growth import (
    GrowthChoices,
    GrowthNode,
    GrowthTree,
    RecordedStructure,
    read_growth_tree,
    write_growth_tree,
)
from rota.recordings.library import recording_folders
from rota.recordings.tree import NOTHING, Prefix
from rota.training.clock import Length, StoppedClock
from rota.training.data.images import check_seed
from rota.training.describe import with_blocks
from rota.training.device import description, device, synchronise
from rota.training.hyper import Hyperparameters, grid_settings
from rota.training.net2net import NotGrowable
from rota.training.recorder.partial import Partial, RecordingProgress, as_asked, check_name, refuse_other
from rota.training.recorder.step_times import measure
from rota.training.setup import LIBRARIES, Setup, check_actions
from rota.training.trainer import Trainer

WRITTEN_EVERY_S = 5.0
"""Seconds between two times at which the finished nodes of a tree are written."""


@dataclass(frozen=True, slots=True)
class GrowthConfig:
    """Growth trees of one model on one data set: one for each setting of its hyper-parameters and seed."""

    setup: Setup
    steps: int
    """Steps in an interval; the learning rate decays after each."""
    decisions: int = 6
    """Boundaries between intervals in a path."""
    most_changes: int = 3
    """Number of boundaries of a path at which the network may change."""
    order: tuple[str, ...] = ("deepen 0", "deepen 1", "deepen 2")
    """The changes in the order in which they are made; if empty, each may be any of `actions`."""
    actions: tuple[str, ...] = ()
    """Changes to choose from, and `nothing`; by default those in `order`."""
    grid: dict[str, tuple[float, ...]] = field(default_factory=dict)
    """Hyper-parameter → its values; every combination is a setting."""
    seeds: tuple[int, ...] = (0,)
    """Seeds of each setting."""
    more_seeds: dict[str, tuple[int, ...]] = field(default_factory=dict)
    """Setting, such as `lr=0.01` → further seeds."""
    timed: Literal["steps", "intervals"] | None = None
    """Whether seconds are steps × step time of the structure, or those that each interval took.

    By default intervals are timed on a GPU. On a CPU step times, measured beforehand, do not depend on how
    busy the machine is later.
    """
    name: str = ""
    """Name of the folder of the trees; by default model, data and size."""

    def __post_init__(self) -> None:
        setup = self.setup
        if not self.name:
            parts = (setup.model, setup.learns_from, str(setup.size or ""))
            object.__setattr__(self, "name", "-".join(filter(None, parts)))
        if not self.actions:
            object.__setattr__(self, "actions", (*dict.fromkeys(self.order), NOTHING))
        check_name(self.name)
        check_actions(self.actions)
        at_least(1, steps=self.steps)
        try:
            self.choices  # noqa: B018  # as checked by its class
        except InputError as error:
            raise ConfigError(str(error)) from None
        for setting in self.more_seeds:
            if setting not in self.settings():
                raise ConfigError(f"more_seeds: {unknown('setting', setting, self.settings())}")
        if not self.seeds:
            raise ConfigError("seeds: give one or more")
        for each in (*self.seeds, *(seed for seeds in self.more_seeds.values() for seed in seeds)):
            check_seed(each)

    @property
    def choices(self) -> GrowthChoices:
        """The choices at the boundaries."""
        return GrowthChoices(self.decisions, self.actions, self.most_changes, self.order)

    @property
    def times_intervals(self) -> bool:
        """Whether each interval is timed."""
        if self.timed is None:
            return device(self.setup.device).type != "cpu"
        return self.timed == "intervals"

    def settings(self) -> dict[str, Hyperparameters]:
        """Return name → hyper-parameters."""
        return grid_settings(self.setup.hyper, self.grid)


Piece = dict[Prefix, GrowthNode]


@dataclass(frozen=True, slots=True)
class PlannedTree:
    """A growth tree to record."""

    out: Path
    config: GrowthConfig
    setting: str
    seed: int

    @property
    def folder(self) -> Path:
        """The folder of the recording."""
        return self.out / "growth" / self.config.name / self.label

    @property
    def label(self) -> str:
        """The setting and the seed: `lr=0.01-seed0`."""
        return f"{self.setting}-seed{self.seed}"

    @property
    def partial(self) -> Partial:
        """The unfinished trees of the same network."""
        return Partial(self.out, f"growth-{self.config.name}")

    @property
    def setup(self) -> Setup:
        """The setup with the hyper-parameters of this tree."""
        return replace(self.config.setup, hyper=self.config.settings()[self.setting])

    def asked(self) -> dict[str, object]:
        """Return the settings that the tree depends on, as they are read back from its file."""
        config = self.config
        kept = {"setup": asdict(self.setup), "steps": config.steps, "timed": config.times_intervals}
        asked: dict[str, object] = as_asked({**kept, "seed": self.seed, "choices": asdict(config.choices)})
        return asked

    def there(self) -> bool:
        """Return whether this tree is recorded; one of the same name with other settings is an error."""
        if not complete(self.folder):
            return False
        tree = read_growth_tree(self.folder)
        if tree.details.get("asked") != self.asked():
            raise refuse_other(self.folder)
        return not tree.missing()

    def nodes(self) -> Piece:
        """Return the finished nodes of an unfinished recording; the structure of each is 0."""
        found = self.partial.get(self.label)
        if found is None:
            return {}
        try:
            asked, nodes = found["asked"], found["nodes"]
            kept = {
                tuple(prefix): GrowthNode(int(steps), 0, *map(_number, values))
                for prefix, steps, *values in nodes
            }
        except (KeyError, TypeError, ValueError) as error:
            file = self.partial.folder / f"{self.label}.json"
            raise InputError(f"{file}: cannot be read ({error}); delete it to record it again") from None
        if asked != self.asked():
            raise refuse_other(self.partial.folder / f"{self.label}.json")
        return kept

    def keep(self, nodes: Piece) -> None:
        """Write the finished nodes."""
        rows = [[prefix, node.steps, *(_plain(each) for each in node[2:])] for prefix, node in nodes.items()]
        self.partial.put(self.label, {"asked": self.asked(), "nodes": rows})


def _number(value: float | None) -> float:
    return math.nan if value is None else float(value)


def _plain(value: float) -> float | None:
    return None if math.isnan(value) else value


class TreeTraining:
    """The training of one tree, depth first; `nodes` has the finished ones."""

    def __init__(self, planned: PlannedTree, done: Callable[[Prefix], None] = lambda _: None) -> None:
        self._planned, self._done = planned, done
        self._choices = planned.config.choices
        self._changes = [Change.parse(action) for action in self._choices.actions]
        self.nodes = planned.nodes()
        self._open = {
            beginning
            for prefix in self._choices.prefixes()
            if prefix not in self.nodes
            for beginning in (prefix[:length] for length in range(len(prefix) + 1))
        }
        """The nodes that are missing, and those on the way to one."""
        self._kept_s = time.monotonic()

    def run(self) -> None:
        """Train what is missing, and write it."""
        if not self._open:
            return
        config = self._planned.config
        trainer = self._planned.setup.at_once.trainer(
            StoppedClock(), seed=self._planned.seed, length=Length(steps=config.steps)
        )
        self._visit((), trainer)
        self._planned.keep(self.nodes)

    def _visit(self, prefix: Prefix, trainer: Trainer) -> None:
        """Train a node and those below it; the trainer is used up."""
        if self._train(prefix, trainer):
            below = [(*prefix, action) for action in self._choices.allowed(prefix)]
            missing = [child for child in below if child in self._open]
            random = _random_state()
            for child in missing:
                _set_random_state(random)
                self._visit(child, trainer if child == missing[-1] else copied(trainer))

    def _train(self, prefix: Prefix, trainer: Trainer) -> bool:
        """Train the interval of a node; return False if that failed, as all below it do, too."""
        where = device(self._planned.config.setup.device)
        synchronise(where)
        began_s = time.perf_counter()
        if prefix:
            trainer.change(self._changes[prefix[-1]])
        epoch = trainer.epoch(evaluate=False)
        synchronise(where)
        seconds = time.perf_counter() - began_s if self._planned.config.times_intervals else math.nan
        if epoch.ended != "whole":
            self._fail(prefix, trainer.progress.steps)
            return False
        if prefix not in self.nodes:
            found = [trainer.task.evaluate(trainer.network, split) for split in ("validation", "test")]
            accuracy, test_accuracy = (each[trainer.task.metric] for each in found)
            self._add(prefix, GrowthNode(epoch.steps, 0, epoch.loss, accuracy, test_accuracy, seconds))
        return True

    def _fail(self, prefix: Prefix, steps: int) -> None:
        for below in self._choices.prefixes():
            if below[: len(prefix)] == prefix and below not in self.nodes:
                self._add(below, GrowthNode(steps, 0, math.nan, math.nan))

    def _add(self, prefix: Prefix, node: GrowthNode) -> None:
        self.nodes[prefix] = node
        self._done(prefix)
        if time.monotonic() - self._kept_s > WRITTEN_EVERY_S:
            self._planned.keep(self.nodes)
            self._kept_s = time.monotonic()


def copied(trainer: Trainer) -> Trainer:
    """Return a copy that trains on as the trainer itself would; they share the task."""
    return deepcopy(trainer, {id(trainer.task): trainer.task})


def _random_state() -> tuple[torch.Tensor, list[torch.Tensor]]:
    cuda = torch.cuda.get_rng_state_all() if torch.cuda.is_available() else []
    return torch.get_rng_state(), cuda


def _set_random_state(state: tuple[torch.Tensor, list[torch.Tensor]]) -> None:
    torch.set_rng_state(state[0])
    if state[1]:
        torch.cuda.set_rng_state_all(state[1])


def _train_tree(planned: PlannedTree) -> None:
    TreeTraining(planned).run()


@dataclass(frozen=True, slots=True)
class StructuresOfTree:
    """The networks that occur in the trees of one configuration, with their step times."""

    recorded: tuple[RecordedStructure, ...]
    of: dict[Prefix, int]
    """Changes in the order in which they are made, as actions → position in `recorded`."""

    def at(self, choices: GrowthChoices, prefix: Prefix) -> int:
        """Return the structure of a node."""
        return self.of[choices.changes(prefix)]

    def seconds(self, config: GrowthConfig, prefixes: Iterable[Prefix]) -> float:
        """Return the seconds that nodes take to train."""
        places = (self.at(config.choices, prefix) for prefix in prefixes)
        return config.steps * math.fsum(self.recorded[place].step_s for place in places)


@dataclass(frozen=True, slots=True)
class GrowthRecorder:
    """A recorder of growth trees into `out/growth`; unfinished ones are in `out/partial`.

    Trees of several networks are recorded in turns, so that there are about as many of each at any time.
    """

    out: Path
    configs: tuple[GrowthConfig, ...]
    workers: int
    command: str

    def record(self, progress: RecordingProgress) -> Iterator[Path]:
        """Record what is missing; yield the folder of each tree when it is complete."""
        with ExitStack() as locks:
            for config in self.configs:
                locks.enter_context(Partial(self.out, f"growth-{config.name}").alone())
            open_ = [[tree for tree in self.planned(config) if not tree.there()] for config in self.configs]
            known = {trees[0].config.name: self._structures(trees[0], progress) for trees in open_ if trees}
            for trees in open_:
                for tree in trees:
                    missing = set(tree.config.choices.prefixes()) - set(tree.nodes())
                    progress.expect(known[tree.config.name].seconds(tree.config, missing))
            in_turns = [tree for turn in zip_longest(*open_) for tree in turn if tree is not None]
            for tree in self._train(in_turns, known, progress):
                self._write(tree, known[tree.config.name])
                yield tree.folder
            for config in self.configs:
                self._tidy_up(config)

    def time_again(self, progress: RecordingProgress) -> Iterator[Path]:
        """Measure the step times of recorded trees again; yield the folder of each that has new ones."""
        for config in self.configs:
            with Partial(self.out, f"growth-{config.name}").alone():
                there = [planned for planned in self.planned(config) if planned.there()]
                if there:
                    progress.say(f"{config.name}: seconds per step")
                    step_s = _measured(grown_in(there[0]).values(), config)
                for planned in there:
                    tree = read_growth_tree(planned.folder)
                    structures = tuple(
                        replace(each, step_s=step_s[each.structure.fingerprint]) for each in tree.structures
                    )
                    write_growth_tree(planned.folder, replace(tree, structures=structures))
                    yield planned.folder

    def planned(self, config: GrowthConfig) -> list[PlannedTree]:
        """Return the trees of a configuration; each setting comes with its first seed, then with others."""
        settings = config.settings()
        pairs = [(setting, seed) for seed in config.seeds for setting in settings]
        pairs += [(setting, seed) for setting, seeds in config.more_seeds.items() for seed in seeds]
        return [PlannedTree(self.out, config, *pair) for pair in dict.fromkeys(pairs)]

    def _train(
        self, trees: Sequence[PlannedTree], known: dict[str, StructuresOfTree], progress: RecordingProgress
    ) -> Iterator[PlannedTree]:
        def count(tree: PlannedTree, *prefixes: Prefix) -> None:
            progress.advance(known[tree.config.name].seconds(tree.config, prefixes))

        if self.workers == 1:
            for tree in trees:
                progress.say(f"{tree.config.name} {tree.label}")
                TreeTraining(tree, partial(count, tree)).run()
                yield tree
        elif trees:
            before = {tree.folder: set(tree.nodes()) for tree in trees}
            progress.say("growth trees")
            for tree in run_dag(_train_tree, trees, lambda _: (), min(self.workers, len(trees))):
                count(tree, *set(tree.config.choices.prefixes()) - before[tree.folder])
                yield tree

    def _write(self, planned: PlannedTree, known: StructuresOfTree) -> None:
        config, choices = planned.config, planned.config.choices
        where = description(device(config.setup.device), config.setup.threads)
        nodes = {
            prefix: node._replace(structure=known.at(choices, prefix))
            for prefix, node in planned.nodes().items()
        }
        tree = GrowthTree(
            model=config.setup.model,
            data=config.setup.learns_from,
            seed=planned.seed,
            hyper={name: float(value) for name, value in asdict(planned.setup.hyper).items()},
            choices=choices,
            nodes=nodes,
            structures=known.recorded,
            provenance=provenance(device=where, seed=planned.seed, command=self.command, libraries=LIBRARIES),
            details={"asked": planned.asked()},
        )
        write_growth_tree(planned.folder, tree)
        planned.partial.drop(planned.label)

    def _tidy_up(self, config: GrowthConfig) -> None:
        """Remove what is left of unfinished recordings, unless another configuration began some."""
        unfinished = Partial(self.out, f"growth-{config.name}")
        if not any(unfinished.folder.glob("*-seed*.json")):
            unfinished.remove()

    # ── structures ──────────────────────────────────────────────────────────────────────────────────────────

    def _structures(self, planned: PlannedTree, progress: RecordingProgress) -> StructuresOfTree:
        """Return the structures with their step times: those of earlier trees, or measured now."""
        progress.say(f"{planned.config.name}: seconds per step")
        trainers = grown_in(planned)
        prints = {changes: trainer.structure.fingerprint for changes, trainer in trainers.items()}
        distinct = {prints[changes]: trainer for changes, trainer in reversed(trainers.items())}
        order = list(dict.fromkeys(prints.values()))
        step_s = self._known(planned, order) or planned.partial.get("seconds-per-step")
        if step_s is None or set(step_s) != set(order):
            step_s = _measured(distinct.values(), planned.config)
            planned.partial.put("seconds-per-step", step_s)
        recorded = tuple(
            RecordedStructure(*with_blocks(distinct[each].network), step_s[each]) for each in order
        )
        return StructuresOfTree(recorded, {changes: order.index(found) for changes, found in prints.items()})

    def _known(self, planned: PlannedTree, order: Sequence[str]) -> dict[str, float] | None:
        """Return the step times in an earlier tree of the same network and batch size."""
        for folder in recording_folders(planned.folder.parent):
            if complete(folder):
                tree = read_growth_tree(folder)
                found = {each.structure.fingerprint: each.step_s for each in tree.structures}
                if found.keys() >= set(order) and tree.hyper["batch_size"] == planned.setup.hyper.batch_size:
                    return {each: found[each] for each in order}
        return None


def _measured(trainers: Iterable[Trainer], config: GrowthConfig) -> dict[str, float]:
    """Return fingerprint of a structure → seconds per step."""
    distinct = {trainer.structure.fingerprint: trainer for trainer in trainers}
    where, alone = device(config.setup.device), config.setup.threads == 1
    clock = time.process_time if where.type == "cpu" and alone else time.perf_counter
    found = measure(list(distinct.values()), where, clock)
    return {fingerprint: seconds for (fingerprint, _), seconds in found.items()}


def grown_in(planned: PlannedTree) -> dict[Prefix, Trainer]:
    """Return changes, as actions → a trainer of the network after them; raise if one is not possible."""
    choices, config = planned.config.choices, planned.config
    usual = replace(config.setup.at_once, hyper=Hyperparameters(batch_size=planned.setup.hyper.batch_size))
    found: dict[Prefix, Trainer] = {(): usual.trainer(StoppedClock(), seed=planned.seed)}
    if found[()].task.state_dict():
        raise ConfigError(f"{config.name}: {config.setup.model} plays games, which cannot be branched")
    for prefix in choices.prefixes():
        changes = choices.changes(prefix)
        if changes not in found:
            found[changes] = copied(found[changes[:-1]])
            action = choices.actions[changes[-1]]
            try:
                found[changes].change(Change.parse(action))
            except NotGrowable as error:
                where = f"{action} after {said_changes(choices, changes[:-1])}"
                raise InputError(
                    f"{config.name}: {config.setup.model} cannot grow there: {where}: {error}"
                ) from None
    return found


def said_changes(choices: GrowthChoices, changes: Prefix) -> str:
    """Return changes in words: `deepen 0, deepen 1`, or `no change`."""
    return ", ".join(choices.actions[action] for action in changes) or "no change"
