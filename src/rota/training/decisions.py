"""Who decides how the network changes: a policy that is asked, or a list that leaves one thing to do.

A decision offers some changes. The likeliest of those that can be done now is done: one that the network
refuses, or whose seconds per step nobody has measured, is left out with a note.
"""

import logging
import math
from collections.abc import Sequence
from dataclasses import dataclass

from rota.core.change import NOTHING, Change
from rota.core.errors import ConfigError, InputError
from rota.core.sight import Adaptation
from rota.training.experiment import TrainConfig
from rota.training.net2net import blocks
from rota.training.setup import check_changes
from rota.training.sight import sight_of
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

    def __init__(self, config: TrainConfig, policy: Adaptation | None) -> None:
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
