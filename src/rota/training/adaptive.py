"""Opportunistic jobs: networks that grow while a cluster has idle slots, and shrink afterwards.

The job holds one slot until its time is over. Idle slots are lent to it: then its growth policy is asked.
When they are taken back, the network becomes what it was before.
"""

import math
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from rota.core.errors import ConfigError
from rota.core.network import BUDGET_S, GrowthPolicy
from rota.training.checkpoint import from_bytes, to_bytes
from rota.training.clock import ExternalClock, Length
from rota.training.config import TrainConfig
from rota.training.decisions import AllocationCourse, Decider, DecisionProgress
from rota.training.exchange import GangMember
from rota.training.setup import Setup


@dataclass(frozen=True, slots=True)
class AdaptiveKind:
    """Settings of an opportunistic job: how its network changes while it trains."""

    budget_s: float = BUDGET_S
    """Seconds of training; an agent decides by the time that is left."""
    epoch: Length = field(default_factory=lambda: Length(steps=50))
    """Length of an epoch in steps; a change may follow each epoch."""
    changes: tuple[str, ...] = ()
    """Changes to make, one before each epoch with idle slots: `deepen 1`, `nothing` …"""
    agent: str = ""
    """Folder of an agent that decides instead, or a class as module:Class or path/to/file.py:Class."""
    options: dict[str, object] | None = None
    """Options of such a class, as `options.NAME`."""
    actions: tuple[str, ...] = ()
    """Changes that the agent may choose from, with `nothing`; by default to deepen any block, or nothing."""
    decisions: int = 3
    """Number of decisions that the agent makes."""

    def __post_init__(self) -> None:
        if self.epoch.seconds is not None:
            raise ConfigError("epoch: give steps; members of a gang would not agree on seconds")

    def course(self, setup: Setup, seed: int) -> TrainConfig:
        """Return the configuration of the training of one such job, whose network has `setup`."""
        return TrainConfig(
            setup=setup,
            seed=seed,
            budget_s=self.budget_s,
            epoch=self.epoch,
            external_allocation=True,
            changes=self.changes,
            actions=self.actions,
            decisions=self.decisions,
        )


class AdaptiveJob:
    """One member of the gang that trains an opportunistic job; all members decide alike."""

    def __init__(self, config: TrainConfig, policy: GrowthPolicy | None, gang: GangMember | None) -> None:
        self._clock = ExternalClock()
        self._trainer = config.setup.trainer(self._clock, seed=config.seed, length=config.epoch)
        self._course = AllocationCourse(config, Decider(config, policy))
        self._trainer.gang = gang
        self._first = gang is None or gang.rank == 0
        self._notes: list[dict[str, Any]] = []
        self._metric = math.nan

    def check(self) -> None:
        """Check, before training starts, that every change that may be decided is possible."""
        self._course.decider.check(self._trainer)

    def load(self, content: bytes) -> None:
        extra = from_bytes(content, self._trainer, Path("the checkpoint of a job"))
        self._course.turns = DecisionProgress(**extra["turns"])
        self._metric = extra["metric"]

    def save(self) -> bytes:
        turns = {name: getattr(self._course.turns, name) for name in DecisionProgress.__slots__}
        return to_bytes(self._trainer, turns=turns, metric=self._metric)

    def fetch(self) -> None:
        """Do nothing: an iteration is one piece of work, as no other job shares the slots."""

    def compute(self) -> None:
        trainer = self._trainer
        if not trainer.progress.epoch_steps:
            self._decide()
        epoch = trainer.epoch(until_steps=trainer.progress.steps + 1, evaluate=self._first)
        if epoch.ended == "failed":
            raise RuntimeError(epoch.failure)
        if epoch.metrics:
            self._metric = epoch.metrics[trainer.task.metric]
            self._note("epoch", steps=epoch.steps, loss=epoch.loss, metric=self._metric)

    def exchange(self) -> None:
        """Do nothing: `compute` makes the whole step."""

    def update(self) -> None:
        """Do nothing: `compute` makes the whole step."""

    def tell(self, room: int, at_s: float) -> None:
        """Set the number of lent slots and the time; both hold until this assignment is over."""
        self._clock.set(at_s)
        self._meet()
        if self._course.set_room(self._trainer, room=room > 0):
            self._note("up" if room else "down", slots=room)

    @property
    def metric(self) -> float:
        """The metric at the end of the last whole epoch."""
        return self._metric

    def notes(self) -> list[dict[str, Any]]:
        notes, self._notes = self._notes, []
        return notes

    def _decide(self) -> None:
        """Decide on the next change, in all members from the same weights."""
        self._meet()
        before = len(self._course.turns.decisions)
        self._course.before_epoch(self._trainer)
        for decision in self._course.turns.decided[before:]:
            self._note("decided", **asdict(decision))

    def _meet(self) -> None:
        if self._trainer.gang is not None:
            self._trainer.gang.exchange.share(self._trainer.network)

    def _note(self, what: str, **facts: Any) -> None:
        self._notes.append({"what": what, "at_s": self._clock.now_s(), **facts})
