"""Decisions of growth policies during training, and what happens before an epoch."""

import logging
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from rota.core.errors import ConfigError, InputError
from rota.core.network import NOTHING, SHRINK, Change, GrowthPolicy
from rota.training.config import TrainConfig
from rota.training.describe import sight_of
from rota.training.net2net import blocks
from rota.training.setup import check_changes
from rota.training.trainer import Trainer

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Decision:
    """What was done at a decision; plain values, saved with the checkpoint."""

    at_s: float
    left_s: float
    """Until the budget is over."""
    steps: int
    """So many had been trained."""
    chosen: str
    probabilities: dict[str, float]
    """How likely each change was to be the right one."""
    refused: tuple[str, ...] = ()
    """What was likelier, but could not be done."""


class Decider:
    """Decides before each epoch while there is room."""

    def __init__(self, config: TrainConfig, policy: GrowthPolicy | None) -> None:
        if policy is not None:
            config.check_decidable()
        self.config = config
        self.policy = policy

    def check(self, trainer: Trainer) -> None:
        """Make sure, before anything is trained, that what is listed can be done and the policy answers."""
        config = self.config
        if config.changes:
            taken_back = any(each.to == "down" for each in config.allocation)  # then it may become less
            clock = None if taken_back else trainer.clock
            check_changes(config.setup, [map(Change.parse, config.changes)], clock)
        if self.policy is not None:
            listed = [change for change in map(Change.parse, config.actions) if change.grows]
            check_changes(config.setup, ((change,) for change in listed))
            self._probabilities(trainer, self._actions(trainer), [], config.until_s)

    def decide(self, trainer: Trainer, before: Sequence[Decision]) -> Decision | None:
        """Change the network; `None` if no more is to be decided."""
        offered = self._offered(trainer, len(before))
        if not offered:
            return None
        at_s = trainer.clock.now_s()
        left_s = max(0.0, self.config.until_s - at_s)
        chances = self._probabilities(trainer, offered, before, left_s)
        chosen, refused = _do_likeliest(trainer, offered, chances)
        known = {str(change): chance for change, chance in zip(offered, chances, strict=True)}
        return Decision(at_s, left_s, trainer.progress.steps, str(chosen), known, refused)

    def _offered(self, trainer: Trainer, count: int) -> list[Change]:
        """What may be done after so many decisions; nothing at all if they were the last."""
        if self.policy is None:
            return [Change.parse(text) for text in self.config.changes[count : count + 1]]
        return self._actions(trainer) if count < self.config.decisions else []

    def _actions(self, trainer: Trainer) -> list[Change]:
        if self.config.actions:
            return [Change.parse(text) for text in self.config.actions]
        count = len(blocks(trainer.network))  # the same however often it has grown
        if not count:
            raise ConfigError(f"{self.config.setup.model}: no block of it can grow; give another model")
        return [*(Change("deepen", block) for block in range(count)), NOTHING]

    def _probabilities(
        self, trainer: Trainer, offered: list[Change], before: Sequence[Decision], left_s: float
    ) -> list[float]:
        if self.policy is None:
            return [1.0]
        made = [offered.index(Change.parse(each.chosen)) for each in before]
        sight = sight_of(
            trainer.network, left_s=left_s, budget_s=self.config.until_s, actions=offered, made=made
        )
        chances = list(self.policy.probabilities(sight))
        if len(chances) != len(offered) or not math.isclose(sum(chances), 1.0, abs_tol=1e-3):
            raise InputError(
                f"whoever decides gave {chances} as probabilities of {len(offered)} actions, which must add "
                "up to 1; learn that agent again"
            )
        return chances


def _do_likeliest(
    trainer: Trainer, offered: list[Change], chances: list[float]
) -> tuple[Change, tuple[str, ...]]:
    """What was done, and what was likelier but could not be."""
    pairs = list(zip(chances, offered, strict=True))
    likely = sorted((pair for pair in pairs if pair[0] > 0.0), key=lambda pair: -pair[0])
    unlikely = sorted((pair for pair in pairs if not pair[0] > 0.0), key=lambda pair: pair[1] != NOTHING)
    ranked = [change for _, change in (*likely, *unlikely)]  # rather nothing than what has no chance
    refused: list[str] = []
    for change in ranked[:-1]:
        try:
            trainer.change(change)
        except InputError as error:  # which leaves the network as it was
            log.warning("step %d: %s cannot be done: %s", trainer.progress.steps, change, error)
            refused.append(str(change))
        else:
            return change, tuple(refused)
    trainer.change(ranked[-1])
    return ranked[-1], tuple(refused)


@dataclass(slots=True)
class DecisionProgress:
    """How far a run is through its allocation and its decisions; plain values, saved with the checkpoint."""

    allocation: int = 0
    """Changes of the allocation that have been seen."""
    room: bool = False
    growths: int = 0
    """That the network had when there was room the last time."""
    decisions: list[dict[str, Any]] = field(default_factory=list)
    """All so far."""
    rows: list[dict[str, Any]] = field(default_factory=list)
    """The epochs so far."""

    @property
    def decided(self) -> list[Decision]:
        return [Decision(**each) for each in self.decisions]


class AllocationCourse:
    """The allocation over a run, and what is made of it."""

    def __init__(self, config: TrainConfig, decider: Decider) -> None:
        self.config = config
        self.decider = decider
        self.turns = DecisionProgress()

    def interrupted(self, now_s: float) -> bool:
        """Whether the allocation has changed."""
        coming = self.config.allocation[self.turns.allocation :]
        return bool(coming) and now_s >= coming[0].at_s

    def tell(self, trainer: Trainer, *, room: bool) -> bool:
        """The cluster has room, or has none any more; whether that is new. It ends the epoch."""
        if room == self.turns.room:
            return False
        if trainer.progress.epoch_steps:
            trainer.epoch(interrupted=lambda now_s: True, evaluate=False)
        self._move(trainer, up=room)
        return True

    def before_epoch(self, trainer: Trainer) -> None:
        """See whether the allocation has changed, and change the network; not while an epoch is under way."""
        turns = self.turns
        if trainer.progress.epoch_steps:
            return
        while self.interrupted(trainer.clock.now_s()):
            self._move(trainer, up=self.config.allocation[turns.allocation].to == "up")
            turns.allocation += 1
        decision = self.decider.decide(trainer, turns.decided) if turns.room else None
        if decision is not None:
            turns.decisions.append(asdict(decision))

    def _move(self, trainer: Trainer, *, up: bool) -> None:
        """Room is given, or what has grown in it is taken back."""
        turns = self.turns
        if up and not turns.room:
            turns.growths = len(trainer.smaller)
        while not up and len(trainer.smaller) > turns.growths:
            trainer.change(SHRINK)
        turns.room = up
