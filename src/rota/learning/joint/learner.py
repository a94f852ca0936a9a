"""REINFORCE on growth trees, in a loop that can be stopped and resumed."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rota.core.arrays import Floats
from rota.core.processes import WorkerPool, map_over
from rota.learning.files import JointHistoryRow
from rota.learning.joint.config import JointAgentConfig
from rota.learning.joint.rollout import JointLesson, LearnedGroup, learn_from
from rota.learning.learner import ResumableLearner
from rota.policies.agents import Arrays
from rota.policies.joint.network import JointWeights, new_weights, unflattened

FALLS = 0.6
"""Share of the updates, at the end, in which the learning rate falls to 0."""
FIRST, SECOND, TINY = 0.9, 0.99, 1e-8
"""Constants of Adam."""
TASKS = 4
"""Number of tasks into which the cases of an update are divided."""


class JointLearner(ResumableLearner):
    """The learner of an agent that places trials and lets them grow."""

    def __init__(
        self,
        config: JointAgentConfig,
        folders: tuple[Path, ...],
        folder: Path,
        fingerprint: str,
        *,
        over: bool = False,
    ) -> None:
        """`over` says that the checkpoint of another agent may be overwritten."""
        super().__init__(folder)
        self.config, self._folders, self._fingerprint, self._over = config, folders, fingerprint, over
        self.flat = new_weights(config.hidden, config.seed).flat
        self._mean, self._square = np.zeros_like(self.flat), np.zeros_like(self.flat)
        self.rows: list[JointHistoryRow] = []

    @property
    def weights(self) -> JointWeights:
        """The present weights."""
        return unflattened(self.flat, self.config.hidden)

    def learn(self, pool: WorkerPool, on_update: Callable[[JointHistoryRow], None] | None = None) -> None:
        """Make all remaining updates."""
        began_s = time.perf_counter() - self.seconds
        self.run(self.config.updates, lambda: len(self.rows), lambda: self._update(pool, began_s), on_update)

    def _update(self, pool: WorkerPool, began_s: float) -> JointHistoryRow:
        config, number = self.config, len(self.rows)
        to_go, cases = 1.0 - number / config.updates, config.cases_per_update
        numbers = range(number * cases, (number + 1) * cases)
        tasks = [
            JointLesson(
                self._folders, self.flat, config.hidden, config.seed, tuple(numbers[task::TASKS]),
                config.episodes_per_case, config.drawn,
            )
            for task in range(min(TASKS, cases))
        ]  # fmt: skip
        found = map_over(pool, learn_from, tasks)
        lr = config.lr * min(1.0, to_go / FALLS)
        self._step(found, config.entropy * to_go, lr, number + 1)
        drawn = max(1, sum(each.drawn for each in found))
        row = JointHistoryRow(
            number + 1,
            round(time.perf_counter() - began_s, 2),
            sum(each.decisions for each in found),
            sum(each.accuracy for each in found) / cases,
            sum(each.spread for each in found) / cases,
            sum(each.entropy for each in found) / drawn,
            lr,
        )
        self.rows.append(row)
        return row

    def _step(self, found: list[LearnedGroup], entropy: float, lr: float, update: int) -> None:
        """Make a step of Adam up the mean gradient of the cases."""
        slope: Floats = np.zeros_like(self.flat)
        for each in found:
            slope += each.gradient + entropy * each.of_entropy
        slope /= self.config.cases_per_update
        self._mean = FIRST * self._mean + (1.0 - FIRST) * slope
        self._square = SECOND * self._square + (1.0 - SECOND) * slope**2
        mean = self._mean / (1.0 - FIRST**update)
        self.flat = self.flat + lr * mean / (np.sqrt(self._square / (1.0 - SECOND**update)) + TINY)

    def _state(self) -> dict[str, NDArray[Any]]:
        return {
            "flat": self.flat,
            "mean": self._mean,
            "square": self._square,
            "rows": np.array(self.rows),
            "kept": np.array(self._fingerprint),
        }

    def _restore(self, found: Arrays) -> None:
        if self.is_another(str(found["kept"]), self._fingerprint, over=self._over):
            return
        self.flat, self._mean, self._square = found["flat"], found["mean"], found["square"]
        self.rows = [
            JointHistoryRow(int(row[0]), row[1], int(row[2]), *row[3:]) for row in found["rows"].tolist()
        ]
        self.seconds = self.rows[-1].seconds if self.rows else 0.0
