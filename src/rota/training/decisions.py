"""Decisions of growth policies during training, and the changes before an epoch."""

import logging
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from rota.core.errors import ConfigError, InputError
from rota.core.network import NOTHING, SHRINK, Change, GrowthPolicy
from rota.training.config import TrainConfig
from rota.training.describe import observation_of
from rota.training.net2net import blocks
from rota.training.setup import check_changes
from rota.training.trainer import Trainer

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Decision:
    """A decision and its outcome, as plain values that checkpoints hold."""

    at_s: float
    left_s: float
    """Seconds until the budget is over."""
    steps: int
    """Steps trained before the decision."""
    chosen: str
    probabilities: dict[str, float]
    """Change → probability that the policy gave it."""
    refused: tuple[str, ...] = ()
    """Likelier changes that were not possible."""


class Decider:
    """Chooses a change before each epoch while the allocation is up."""

    def __init__(self, config: TrainConfig, policy: GrowthPolicy | None) -> None:
        if policy is not None:
            config.check_decidable()
        self.config = config
        self.policy = policy

    def check(self, trainer: Trainer) -> None:
        """Check, before training starts, that the listed changes are possible and that the policy answers."""
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
        """Change the network and return the decision; None if there are no more decisions to make."""
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
        """Return the changes to choose from after `count` decisions; none after the last."""
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
        observation = observation_of(
            trainer.network, left_s=left_s, budget_s=self.config.until_s, actions=offered, made=made
        )
        chances = list(self.policy.probabilities(observation))
        if len(chances) != len(offered) or not math.isclose(sum(chances), 1.0, abs_tol=1e-3):
            raise InputError(
                f"the growth policy gave {chances} as probabilities of {len(offered)} actions; they must add "
                "up to 1: learn that agent again"
            )
        return chances


def _do_likeliest(
    trainer: Trainer, offered: list[Change], chances: list[float]
) -> tuple[Change, tuple[str, ...]]:
    """Make the likeliest change that is possible; return it, and the likelier ones that were not."""
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
    """Progress through the allocation and the decisions, as plain values that checkpoints hold."""

    allocation: int = 0
    """Number of changes of the allocation so far."""
    room: bool = False
    growths: int = 0
    """Number of growths when the allocation last went up."""
    decisions: list[dict[str, Any]] = field(default_factory=list)
    """All decisions so far."""
    rows: list[dict[str, Any]] = field(default_factory=list)
    """All epochs so far."""

    @property
    def decided(self) -> list[Decision]:
        """The decisions that were made, in order."""
        return [Decision(**each) for each in self.decisions]


class AllocationCourse:
    """The allocation over a run, and the changes it leads to."""

    def __init__(self, config: TrainConfig, decider: Decider) -> None:
        self.config = config
        self.decider = decider
        self.turns = DecisionProgress()

    def interrupted(self, now_s: float) -> bool:
        """Return whether the allocation has changed by now."""
        coming = self.config.allocation[self.turns.allocation :]
        return bool(coming) and now_s >= coming[0].at_s

    def set_room(self, trainer: Trainer, *, room: bool) -> bool:
        """Set whether slots are lent, which ends the epoch; return whether that is new."""
        if room == self.turns.room:
            return False
        if trainer.progress.epoch_steps:
            trainer.epoch(interrupted=lambda now_s: True, evaluate=False)
        self._apply(trainer, up=room)
        return True

    def before_epoch(self, trainer: Trainer) -> None:
        """Apply due changes of the allocation, then decide; not while an epoch is open."""
        turns = self.turns
        if trainer.progress.epoch_steps:
            return
        while self.interrupted(trainer.clock.now_s()):
            self._apply(trainer, up=self.config.allocation[turns.allocation].to == "up")
            turns.allocation += 1
        decision = self.decider.decide(trainer, turns.decided) if turns.room else None
        if decision is not None:
            turns.decisions.append(asdict(decision))

    def _apply(self, trainer: Trainer, *, up: bool) -> None:
        """Note that slots are lent, or shrink the network to what it was before they were."""
        turns = self.turns
        if up and not turns.room:
            turns.growths = len(trainer.smaller)
        while not up and len(trainer.smaller) > turns.growths:
            trainer.change(SHRINK)
        turns.room = up
