"""One piece of a tree: train from one decision to the next, or to the end of the budget.

A piece is a pure function of its settings, the seed and the checkpoint of the piece before it. What it
finds is a small file beside its checkpoint; both appear only when they are whole, so a piece is either done
or not begun.
"""

import json
import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rota.core.atomic import written
from rota.core.errors import InputError
from rota.training.checkpoint import load, save
from rota.training.clock import Pace, ProfiledClock
from rota.training.epoch import Epoch, Length
from rota.training.recorder.tree_config import TreesConfig
from rota.training.trainer import Trainer

Prefix = tuple[int, ...]
Found = list[tuple[int, float, int, float, float, float]]
"""Points: epoch, time, steps, loss, accuracy, test accuracy."""


@dataclass(frozen=True, slots=True)
class Branch:
    """A piece of a tree: the training that follows the last of `actions`.

    Without actions it belongs to the trunk: from where the scenario before it begins (`after`) to where
    this one does.
    """

    config: TreesConfig
    seed: int
    scenario: str
    actions: Prefix
    folder: Path

    @property
    def after(self) -> str | None:
        """The scenario that begins next before this one."""
        starts = self.config.scenarios
        earlier = [name for name in starts if starts[name] < starts[self.scenario]]
        return max(earlier, key=starts.__getitem__, default=None)

    @property
    def file(self) -> Path:
        """Without suffix.

        The trunk is shared by scenarios, so its name does not depend on which are asked for. A scenario may
        be moved, so the names of its pieces say when it begins.
        """
        start = f"{self.config.start_s(self.scenario):.12g}s"
        if not self.actions:
            return self.folder / f"trunk-{self.began_s:.12g}-{start}"
        return self.folder / f"{self.scenario}@{start}" / "-".join(map(str, self.actions))

    @property
    def began_s(self) -> float:
        """Of a piece of the trunk."""
        return self.config.start_s(self.after) if self.after else 0.0

    @property
    def found(self) -> Path:
        return self.file.with_suffix(self.file.suffix + ".json")

    @property
    def checkpoint(self) -> Path:
        return self.file.with_suffix(self.file.suffix + ".pt")

    @property
    def done(self) -> bool:
        """Whether it is there, with what the pieces after it start from."""
        return self.found.is_file() and (self.is_last or self.checkpoint.is_file())

    @property
    def is_last(self) -> bool:
        return len(self.actions) == self.config.decisions

    @property
    def parent(self) -> "Branch | None":
        """The piece whose end this one starts from; none for the first piece of the trunk."""
        if self.actions:
            return replace(self, actions=self.actions[:-1])
        return None if self.after is None else replace(self, scenario=self.after)

    @property
    def seconds(self) -> float:
        """How long it is, on the profiled clock."""
        config = self.config
        start_s = config.start_s(self.scenario)
        if not self.actions:
            return start_s - self.began_s
        decided_s = start_s + (len(self.actions) - 1) * config.epoch_s
        return config.budget_s - decided_s if self.is_last else config.epoch_s

    def read(self) -> Found:
        """What was found."""
        try:
            points = json.loads(self.found.read_text("utf-8"))
            return [(int(p[0]), p[1], int(p[2]), p[3], p[4], p[5]) for p in points]
        except (OSError, ValueError, TypeError, IndexError) as error:
            raise InputError(
                f"{self.found}: cannot be read ({error}); delete it to record it again"
            ) from None


def pieces_of(folder: Path, scenario: str = "*") -> list[Path]:
    """The folders with pieces of a scenario, or of any, wherever it began."""
    return list(folder.glob(f"{scenario}@*"))


def grow(branch: Branch, paces: dict[Pace, float]) -> None:
    """Train a piece and write what was found; its parent must be there."""
    config = branch.config
    trainer = config.setup.at_once.trainer(
        ProfiledClock(paces), seed=branch.seed, length=Length(seconds=config.epoch_s)
    )
    if branch.parent is not None:
        load(branch.parent.checkpoint, trainer)
    points = _trunk(branch, trainer) if not branch.actions else _after_decision(branch, trainer)
    if not branch.is_last:
        save(branch.checkpoint, trainer)
    with written(branch.found) as stream:
        stream.write(json.dumps(points).encode())


def _trunk(branch: Branch, trainer: Trainer) -> Found:
    """Up to the start of the scenario. The last epoch stays open: for later scenarios it goes on."""
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
    """The accuracy on the test images; none if the last epoch failed."""
    if epoch.ended == "failed":
        return math.nan
    found = trainer.task.evaluate(trainer.network, "test")
    return found[trainer.task.metric]


def _point(trainer: Trainer, epoch: Epoch) -> tuple[int, float, int, float, float, float]:
    """What an epoch led to; of one that failed, no accuracy."""
    accuracy = math.nan
    if epoch.ended != "failed":
        metrics: dict[str, Any] = epoch.metrics or trainer.task.evaluate(trainer.network)
        accuracy = metrics[trainer.task.metric]
    return epoch.number, epoch.at_s, epoch.steps, epoch.loss, accuracy, math.nan
