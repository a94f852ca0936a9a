"""What happens before an epoch: the allocation goes up or down, and the network changes."""

from dataclasses import asdict, dataclass, field
from typing import Any

from rota.core.change import SHRINK
from rota.training.decisions import Decider, Decision
from rota.training.experiment import TrainConfig
from rota.training.trainer import Trainer


@dataclass(slots=True)
class Turns:
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


class Course:
    """The allocation over a run, and what is made of it."""

    def __init__(self, config: TrainConfig, decider: Decider) -> None:
        self.config = config
        self.decider = decider
        self.turns = Turns()

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
