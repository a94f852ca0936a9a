"""Evolution strategies for agents that schedule, in a loop that can be stopped and resumed.

In an update, opposite pairs of small changes to the weights are tried on the same worlds, whole episodes
each; the weights then move along the changes, by how much better one of each pair was than the other.
"""

import time
from collections.abc import Callable, Sequence
from math import inf
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rota.core.arrays import Floats
from rota.core.errors import InputError
from rota.learning.files import ScheduleHistoryRow
from rota.learning.learner import CHECKPOINT, ResumableLearner
from rota.learning.scheduling.training import ScheduleAgentConfig, TrainingWorld, WorldSets
from rota.policies.agents import Arrays
from rota.policies.cluster.learned import CorrectionWeights, read_weights

DECAY_MEAN, DECAY_SQUARE = 0.9, 0.99  # of the moving averages of the gradient and its square
LAST_LR = 0.1  # share of the learning rate at the end


class ScheduleLearner(ResumableLearner):
    """The learner of an agent that schedules jobs."""

    def __init__(
        self,
        config: ScheduleAgentConfig,
        seed: int,
        worlds: WorldSets,
        folder: Path,
        fingerprint: str,
        *,
        over: bool = False,
    ) -> None:
        """`over` says that the checkpoint of another agent may be overwritten."""
        super().__init__(folder)
        self.config, self.seed, self.worlds = config, seed, worlds
        self._fingerprint, self._over = fingerprint, over
        begin = (
            CorrectionWeights.new(config.hidden, seed)
            if config.start is None
            else read_weights(config.start)[0]
        )
        self.flat = begin.flat
        self.kept, self.kept_value = self.flat.copy(), inf
        """The weights that were best on the worlds for validation, and how good they were."""
        self._mean, self._square = np.zeros((2, len(self.flat)))
        self.rows: list[ScheduleHistoryRow] = []

    @property
    def weights(self) -> CorrectionWeights:
        """The weights that are kept."""
        return CorrectionWeights.of(self.kept)

    def learn(self, on_update: Callable[[ScheduleHistoryRow], None] | None = None) -> None:
        """Make all remaining updates."""
        began_s = time.perf_counter() - self.seconds
        self.run(self.config.updates, lambda: len(self.rows), lambda: self._update(began_s), on_update)

    def _update(self, began_s: float) -> ScheduleHistoryRow:
        config, number = self.config, len(self.rows)
        random = np.random.default_rng((self.seed, number))
        training = self.worlds.training
        count = min(config.worlds_per_update, len(training))
        chosen = [training[i] for i in random.permutation(len(training))[:count]]
        changes = random.normal(size=(config.pairs, len(self.flat)))
        better = np.zeros(config.pairs)
        value = 0.0
        for pair, change in enumerate(changes):
            above, below = (
                self._value(chosen, self.flat + sign * config.sigma * change) for sign in (1.0, -1.0)
            )
            better[pair] = above - below
            value += (above + below) / (2.0 * config.pairs)
        self._step((better / (2.0 * config.sigma)) @ changes / config.pairs, number)
        held_out = self._validate(number + 1)
        seconds = round(time.perf_counter() - began_s, 2)
        row = ScheduleHistoryRow(
            number + 1, seconds, 2 * config.pairs * count, value, held_out, self._lr(number)
        )
        self.rows.append(row)
        return row

    def _lr(self, number: int) -> float:
        return self.config.lr * (1.0 - (1.0 - LAST_LR) * number / self.config.updates)

    def _step(self, gradient: Floats, number: int) -> None:
        """Make a step of Adam against a gradient."""
        self._mean = DECAY_MEAN * self._mean + (1.0 - DECAY_MEAN) * gradient
        self._square = DECAY_SQUARE * self._square + (1.0 - DECAY_SQUARE) * gradient**2
        mean = self._mean / (1.0 - DECAY_MEAN ** (number + 1))
        square = self._square / (1.0 - DECAY_SQUARE ** (number + 1))
        self.flat = self.flat - self._lr(number) * mean / (np.sqrt(square) + 1e-8)

    def _value(self, worlds: Sequence[TrainingWorld], flat: Floats) -> float:
        """Return the objective relative to the rule's, the mean over worlds; below 0 is better."""
        weights, objective = CorrectionWeights.of(flat), self.config.objective
        return float(np.mean([world.value(weights, objective) - world.rule(objective) for world in worlds]))

    def _validate(self, done: int) -> float:
        """Keep the weights if they are the best so far; return how good the kept ones are."""
        if not self.rows:
            self.kept, self.kept_value = self.flat * 0.0, 0.0  # the rule itself
            if self.config.start is not None:
                self._keep(read_weights(self.config.start)[0].flat)
        if done % self.config.validate_every == 0 or done == self.config.updates:
            self._keep(self.flat)
        return self.kept_value

    def _keep(self, flat: Floats) -> None:
        """Keep weights if they are the best so far."""
        value = self._value(self.worlds.validation, flat)
        if value < self.kept_value:
            self.kept, self.kept_value = flat.copy(), value

    def _state(self) -> dict[str, NDArray[Any]]:
        return {
            "flat": self.flat, "kept": self.kept, "kept_value": np.array(self.kept_value),
            "mean": self._mean, "square": self._square, "rows": np.array(self.rows),
            "fingerprint": np.array(self._fingerprint),
        }  # fmt: skip

    def _restore(self, found: Arrays) -> None:
        if str(found["fingerprint"]) != self._fingerprint:
            if self._over:
                return
            raise InputError(
                f"{self.folder / CHECKPOINT}: another agent is being learned here; give another folder with "
                "--out, or --again to learn this in its place"
            )
        self.flat, self.kept, self.kept_value = found["flat"], found["kept"], float(found["kept_value"])
        self._mean, self._square = found["mean"], found["square"]
        self.rows = [ScheduleHistoryRow(int(r[0]), r[1], int(r[2]), *r[3:]) for r in found["rows"].tolist()]
        self.seconds = self.rows[-1].seconds if self.rows else 0.0
