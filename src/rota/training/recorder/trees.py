"""Recorder of trees: every sequence of changes, each common beginning trained once."""

import json
import math
import shutil
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from rota.core.errors import ConfigError, InputError, unknown
from rota.core.files import write_file
from rota.core.limits import above
from rota.core.network import Change
from rota.core.processes import run_dag
from rota.recordings.folder import complete, provenance
from rota.recordings.library import recording_folders
from rota.recordings.tree import EpochPoint, Prefix, Tree, read_tree, write_tree
from rota.training.checkpoint import load, save
from rota.training.clock import Epoch, Length, ProfiledClock, StepKey
from rota.training.data.images import check_seed
from rota.training.device import description, device
from rota.training.recorder.partial import Partial, RecordingProgress, as_asked, refuse_other
from rota.training.recorder.step_times import structure_step_times as measured
from rota.training.setup import LIBRARIES, Setup, check_actions, check_changes
from rota.training.trainer import Trainer

STARTS = {"early": 0.175, "early-middle": 0.35, "middle": 0.5, "middle-late": 0.675, "late": 0.85}
"""Scenario → start of the allocation as a share of the budget: 70, 140, 200, 270 and 340 s of 400 s."""


@dataclass(frozen=True, slots=True)
class TreesConfig:
    """Every sequence of changes, in each of some scenarios."""

    setup: Setup
    budget_s: float
    """Seconds of training, on the profiled clock."""
    epoch_s: float
    """Seconds of an epoch; a decision precedes each, and the learning rate decays after it."""
    actions: tuple[str, ...] = ("deepen 0", "deepen 1", "deepen 2", "nothing")
    decisions: int = 3
    scenarios: dict[str, float] = field(default_factory=lambda: dict(STARTS))
    """Name → time of the first decision as a share of the budget."""
    seed: int = 0
    more_seeds: dict[str, tuple[int, ...]] = field(default_factory=dict)
    """Scenario → further seeds to record it with, to estimate the noise."""
    evaluate_every: int = 5
    """Epochs between two evaluations after the last decision; the end is always evaluated."""

    def __post_init__(self) -> None:
        check_actions(self.actions)
        above(0, finite=True, budget_s=self.budget_s, epoch_s=self.epoch_s)
        above(0, decisions=self.decisions, evaluate_every=self.evaluate_every)
        for name, share in self.scenarios.items():
            self._check_scenario(name, share)
        for name in self.more_seeds:
            if name not in self.scenarios:
                raise ConfigError(f"more_seeds: {unknown('scenario', name, self.scenarios)}")
        for _, seed in self.asked():
            check_seed(seed)

    def _check_scenario(self, name: str, share: float) -> None:
        if not name.replace("-", "").isalnum():
            raise ConfigError(f"scenario {name!r}: a name has letters, digits and '-'")
        ends_s = share * self.budget_s + (self.decisions - 1) * self.epoch_s
        if not 0 < share < 1 or ends_s >= self.budget_s:
            raise ConfigError(
                f"scenario {name!r}: {self.decisions} decisions from {share:g} of the budget on, one in "
                f"{self.epoch_s:g} s, are not over before the budget of {self.budget_s:g} s is"
            )

    @property
    def changes(self) -> tuple[Change, ...]:
        """The changes that `actions` name."""
        return tuple(Change.parse(text) for text in self.actions)

    def start_s(self, scenario: str) -> float:
        """Return when the decisions of a scenario begin, in seconds since training began."""
        return self.scenarios[scenario] * self.budget_s

    def asked(self) -> list[tuple[str, int]]:
        """Return scenario and seed of each tree, the shortest recordings first."""
        pairs = [(name, self.seed) for name in self.scenarios]
        pairs += [(name, seed) for name, seeds in self.more_seeds.items() for seed in seeds]
        return sorted(dict.fromkeys(pairs), key=lambda pair: (pair[1] != self.seed, -self.scenarios[pair[0]]))


Found = list[tuple[int, float, int, float, float, float]]
"""Points: epoch, time, steps, loss, accuracy, test accuracy."""


@dataclass(frozen=True, slots=True)
class Branch:
    """A branch of a tree: the training that follows the last of `actions`.

    Without actions it belongs to the trunk, from the start of the scenario before it (`after`) to that of its
    own.
    """

    config: TreesConfig
    seed: int
    scenario: str
    actions: Prefix
    folder: Path

    @property
    def after(self) -> str | None:
        """The scenario that starts next before this one."""
        starts = self.config.scenarios
        earlier = [name for name in starts if starts[name] < starts[self.scenario]]
        return max(earlier, key=starts.__getitem__, default=None)

    @property
    def file(self) -> Path:
        """The branch's file without suffix.

        Scenarios share the trunk, so its name does not depend on which are asked for. A scenario may get
        another start, so the names of its branches include it.
        """
        start = f"{self.config.start_s(self.scenario):.12g}s"
        if not self.actions:
            return self.folder / f"trunk-{self.began_s:.12g}-{start}"
        return self.folder / f"{self.scenario}@{start}" / "-".join(map(str, self.actions))

    @property
    def began_s(self) -> float:
        """The start of a branch of the trunk, in seconds."""
        return self.config.start_s(self.after) if self.after else 0.0

    @property
    def found(self) -> Path:
        """The file of the facts about the branch."""
        return self.file.with_suffix(self.file.suffix + ".json")

    @property
    def checkpoint(self) -> Path:
        """The file of the checkpoint at the end of the branch."""
        return self.file.with_suffix(self.file.suffix + ".pt")

    @property
    def done(self) -> bool:
        """Whether the branch is there, with the checkpoint that later ones start from."""
        return self.found.is_file() and (self.is_last or self.checkpoint.is_file())

    @property
    def is_last(self) -> bool:
        """Whether no decision follows the branch."""
        return len(self.actions) == self.config.decisions

    @property
    def parent(self) -> "Branch | None":
        """The branch whose end this one starts from; None for the first of the trunk."""
        if self.actions:
            return replace(self, actions=self.actions[:-1])
        return None if self.after is None else replace(self, scenario=self.after)

    @property
    def seconds(self) -> float:
        """The length of the branch in seconds on the profiled clock."""
        config = self.config
        start_s = config.start_s(self.scenario)
        if not self.actions:
            return start_s - self.began_s
        decided_s = start_s + (len(self.actions) - 1) * config.epoch_s
        return config.budget_s - decided_s if self.is_last else config.epoch_s

    def read(self) -> Found:
        """Return the recorded points."""
        try:
            points = json.loads(self.found.read_text("utf-8"))
            return [(int(p[0]), p[1], int(p[2]), p[3], p[4], p[5]) for p in points]
        except (OSError, ValueError, TypeError, IndexError) as error:
            raise InputError(
                f"{self.found}: cannot be read ({error}); delete it to record it again"
            ) from None


def scenario_folders(folder: Path, scenario: str = "*") -> list[Path]:
    """Return the folders with branches of a scenario, or of any, whatever its start."""
    return list(folder.glob(f"{scenario}@*"))


def grow(branch: Branch, step_times: dict[StepKey, float]) -> None:
    """Train a branch and write its points; its parent must be there."""
    config = branch.config
    trainer = config.setup.at_once.trainer(
        ProfiledClock(step_times), seed=branch.seed, length=Length(seconds=config.epoch_s)
    )
    if branch.parent is not None:
        load(branch.parent.checkpoint, trainer)
    points = _trunk(branch, trainer) if not branch.actions else _after_decision(branch, trainer)
    if not branch.is_last:
        save(branch.checkpoint, trainer)
    write_file(branch.found, json.dumps(points))


def _trunk(branch: Branch, trainer: Trainer) -> Found:
    """Train to the start of the scenario; the last epoch stays open, as later scenarios continue it."""
    points: Found = []
    until_s = branch.config.start_s(branch.scenario)
    while True:
        epoch = trainer.epoch(until_s=until_s)
        points.append(_point(trainer, epoch))
        if epoch.ended != "whole":
            return points


def _after_decision(branch: Branch, trainer: Trainer) -> Found:
    config = branch.config
    if len(branch.actions) == 1:
        trainer.epoch(interrupted=lambda _: True)  # the scenario begins: the epoch is cut short
    trainer.change(config.changes[branch.actions[-1]])
    if not branch.is_last:
        return [_point(trainer, trainer.epoch(until_s=config.budget_s))]
    return _to_the_end(config, trainer)


def _to_the_end(config: TreesConfig, trainer: Trainer) -> Found:
    points: Found = []
    for count in range(1, 1_000_000):
        epoch = trainer.epoch(until_s=config.budget_s, evaluate=count % config.evaluate_every == 0)
        if epoch.ended != "whole":
            break
        if epoch.metrics:
            points.append(_point(trainer, epoch))
    points.append((*_point(trainer, epoch)[:5], _test(trainer, epoch)))
    return points


def _test(trainer: Trainer, epoch: Epoch) -> float:
    """Return the accuracy on the test images; NaN if the last epoch failed."""
    if epoch.ended == "failed":
        return math.nan
    found = trainer.task.evaluate(trainer.network, "test")
    return found[trainer.task.metric]


def _point(trainer: Trainer, epoch: Epoch) -> tuple[int, float, int, float, float, float]:
    """Return the point at the end of an epoch; its accuracy is NaN if it failed."""
    accuracy = math.nan
    if epoch.ended != "failed":
        metrics: dict[str, Any] = epoch.metrics or trainer.task.evaluate(trainer.network)
        accuracy = metrics[trainer.task.metric]
    return epoch.number, epoch.at_s, epoch.steps, epoch.loss, accuracy, math.nan


@dataclass(frozen=True, slots=True)
class TreesRecorder:
    """A recorder of trees into `out`; unfinished ones are in `out/partial`."""

    out: Path
    config: TreesConfig
    workers: int
    command: str

    @property
    def name(self) -> str:
        """The start of the names of the folders: model, data and size."""
        setup = self.config.setup
        return "-".join(filter(None, [setup.model, setup.data, str(setup.size or "")]))

    def folder(self, scenario: str, seed: int) -> Path:
        """Return the folder of the tree of a scenario from a seed."""
        return self.out / "trees" / f"{self.name}-{scenario}-seed{seed}"

    @property
    def common(self) -> Partial:
        """The unfinished trees of all seeds."""
        return Partial(self.out, self.name)

    def seed_folder(self, seed: int) -> Path:
        """Return the folder of unfinished trees of one seed."""
        return self.common.folder / f"seed{seed}"

    def record(self, progress: RecordingProgress) -> Iterator[Path]:
        """Record what is missing; yield the folder of each tree when it is complete."""
        with self.common.alone():
            asked = [pair for pair in self.config.asked() if not self._there(*pair)]
            if asked:
                yield from self._record(asked, progress)
            self._tidy_up()

    def _record(self, asked: list[tuple[str, int]], progress: RecordingProgress) -> Iterator[Path]:
        check_changes(self.config.setup, ((change,) for change in self.config.changes))
        self.common.claim(self.asked())
        progress.say(f"{self.name}: seconds per step")
        seconds = self.known_step_times()
        self._check_times(seconds)
        unfinished = {branch.file: branch for pair in asked for branch in self._open(*pair)}
        progress.expect(sum(branch.seconds for branch in unfinished.values()))
        for scenario, seed in asked:
            self._grow(scenario, seed, seconds, progress)
            yield self._write(scenario, seed, seconds)

    def _check_times(self, seconds: dict[StepKey, float]) -> None:
        slowest_s = max(seconds.values())
        if slowest_s > self.config.epoch_s:
            self.common.remove()
            raise InputError(
                f"{self.name}: epoch_s is {self.config.epoch_s:g}, but a step of the slowest structure takes "
                f"{slowest_s:.2g} s; give an epoch_s above that, and a budget_s to match"
            )

    def _there(self, scenario: str, seed: int) -> bool:
        """Return whether this tree is recorded; one of the same name with other settings is an error."""
        folder = self.folder(scenario, seed)
        if not complete(folder):
            return False
        tree = read_tree(folder)
        if tree.details.get("asked") != self.asked() or tree.start_s != self.config.start_s(scenario):
            raise refuse_other(folder)
        self._remove_branches(scenario, seed)
        return True

    def _remove_branches(self, scenario: str, seed: int) -> None:
        """Remove the branches of a recorded tree."""
        for folder in scenario_folders(self.seed_folder(seed), scenario):
            shutil.rmtree(folder)

    def _tidy_up(self) -> None:
        """Remove what no tree needs any more; branches of other, unfinished trees stay."""
        for seed in {seed for _, seed in self.config.asked()}:
            if not scenario_folders(self.seed_folder(seed)):
                shutil.rmtree(self.seed_folder(seed), ignore_errors=True)
        if not any(self.common.folder.glob("seed*")):
            self.common.remove()

    def asked(self) -> dict[str, object]:
        """Return the settings that a tree depends on, as they are read back from its file."""
        config = self.config
        kept = {
            "setup": asdict(config.setup),
            "budget_s": config.budget_s,
            "epoch_s": config.epoch_s,
            "actions": config.actions,
            "decisions": config.decisions,
            "evaluate_every": config.evaluate_every,
        }
        asked: dict[str, object] = as_asked(kept)
        return asked

    # ── the branches ────────────────────────────────────────────────────────────────────────────────────────

    def branches(self, scenario: str, seed: int) -> list[Branch]:
        """Return every branch of a tree, each after its parent."""
        branch = partial(Branch, self.config, seed, folder=self.seed_folder(seed))
        trunk: list[Branch] = []
        at: Branch | None = branch(scenario, ())
        while at is not None:
            trunk.append(at)
            at = at.parent
        prefixes: list[Prefix] = [()]
        grown = []
        for _ in range(self.config.decisions):
            prefixes = [(*prefix, a) for prefix in prefixes for a in range(len(self.config.actions))]
            grown += [branch(scenario, prefix) for prefix in prefixes]
        return [*reversed(trunk), *grown]

    def _open(self, scenario: str, seed: int) -> list[Branch]:
        return [branch for branch in self.branches(scenario, seed) if not branch.done]

    def _grow(
        self, scenario: str, seed: int, seconds: dict[StepKey, float], progress: RecordingProgress
    ) -> None:
        waiting = {branch.file: branch for branch in self._open(scenario, seed)}

        def can_begin(branch: Branch) -> bool:
            return branch.parent is None or branch.parent.file not in waiting

        def then(done: Branch) -> list[Branch]:
            del waiting[done.file]
            return [each for each in waiting.values() if each.parent and each.parent.file == done.file]

        ready = [branch for branch in waiting.values() if can_begin(branch)]
        progress.say(f"{self.name} {scenario} seed {seed}")
        if ready:
            for branch in run_dag(partial(_work, seconds), ready, then, min(self.workers, len(waiting))):
                progress.advance(branch.seconds)

    def _write(self, scenario: str, seed: int, seconds: dict[StepKey, float]) -> Path:
        config, folder = self.config, self.folder(scenario, seed)
        curves: dict[Prefix, tuple[EpochPoint, ...]] = {}
        for branch in self.branches(scenario, seed):
            points = tuple(EpochPoint(*point) for point in branch.read())
            curves[branch.actions] = curves.get(branch.actions, ()) + points
        where = description(device(config.setup.device), config.setup.threads)
        tree = Tree(
            model=config.setup.model,
            data=config.setup.learns_from,
            scenario=scenario,
            seed=seed,
            budget_s=config.budget_s,
            start_s=config.start_s(scenario),
            decisions=config.decisions,
            actions=config.actions,
            curves=curves,
            provenance=provenance(device=where, seed=seed, command=self.command, libraries=LIBRARIES),
            details={"asked": self.asked(), "seconds_per_step": _plain(seconds)},
        )
        write_tree(folder, tree)
        self._remove_branches(scenario, seed)
        return folder

    # ── seconds per step ────────────────────────────────────────────────────────────────────────────────────

    def known_step_times(self) -> dict[StepKey, float]:
        """Return the step times: those of earlier trees, of an unfinished one, or measured now."""
        known = self._recorded() or self.common.get("seconds-per-step")
        if known is None:
            known = _plain(measured(self.config.setup, self.config.changes, self.config.decisions))
            self.common.put("seconds-per-step", known)
        return {(fingerprint, self.config.setup.hyper.batch_size): s for fingerprint, s in known.items()}

    def _recorded(self) -> dict[str, float] | None:
        for folder in recording_folders(self.out / "trees"):
            if complete(folder) and folder.name.startswith(f"{self.name}-"):
                details = read_tree(folder).details
                if details.get("asked") == self.asked():
                    seconds: dict[str, float] = details["seconds_per_step"]
                    return seconds
        return None


def _work(seconds: dict[StepKey, float], branch: Branch) -> None:
    grow(branch, seconds)


def _plain(seconds: dict[StepKey, float]) -> dict[str, float]:
    return {fingerprint: seconds[fingerprint, size] for fingerprint, size in seconds}
