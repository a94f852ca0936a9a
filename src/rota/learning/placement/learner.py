"""REINFORCE on random slots and populations, in a loop that can be stopped and resumed."""

import time
from collections.abc import Callable
from dataclasses import replace
from math import inf
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from rota.core.arrays import Singles
from rota.core.processes import WorkerPool, map_over
from rota.learning.agent import restore, state_of
from rota.learning.files import PlacementHistoryRow
from rota.learning.learner import ResumableLearner
from rota.learning.placement.config import PlacementAgentConfig
from rota.learning.placement.rollout import EpisodeGroup, EvaluationCase, Lesson, Scorer, learn_from, tried
from rota.policies.agents import Arrays

FALLS = 0.6
"""Share of the updates, at the end, in which the learning rate falls to 0."""
TRIED, EVERY = 96, 20
"""Number of held-out cases that the network is evaluated on, and of updates between two evaluations."""
WORSE = 1.03
"""Factor by which a held-out case may take longer than at the start without a penalty."""
ASIDE = (0, 1)
"""End of the seed of a held-out case; seeds of learning have another length."""


class PlacementLearner(ResumableLearner):
    """The learner of an agent that places trials."""

    def __init__(
        self, config: PlacementAgentConfig, folder: Path, fingerprint: str, *, over: bool = False
    ) -> None:
        """`over` says that the checkpoint of another agent may be overwritten."""
        super().__init__(folder)
        self.config, self._fingerprint, self._over = config, fingerprint, over
        self.network = Scorer(config.hidden, config.seed)
        self.optimizer = torch.optim.Adam(self.network.parameters())
        self.rows: list[PlacementHistoryRow] = []
        self.first: list[float] = []
        """Ratios of the held-out cases before learning."""
        self.kept, self.kept_score = self._parameters, inf
        """The parameters that were best on held-out cases, and their score."""

    def learn(self, pool: WorkerPool, on_update: Callable[[PlacementHistoryRow], None] | None = None) -> None:
        """Make all remaining updates, then take over the best parameters."""
        began_s, updates = time.perf_counter() - self.seconds, self.config.updates

        def make() -> PlacementHistoryRow:
            if not self.first:
                self._try_out(pool)
            row = self._update(pool, began_s)
            if row.update % EVERY == 0 or row.update == updates:
                self._try_out(pool)
            return row

        self.run(updates, lambda: len(self.rows), make, on_update)
        with torch.no_grad():
            for own, kept in zip(self.network.parameters(), self.kept, strict=True):
                own.copy_(torch.from_numpy(kept))

    @property
    def _parameters(self) -> tuple[Singles, ...]:
        return tuple(each.detach().numpy().copy() for each in self.network.parameters())

    def _try_out(self, pool: WorkerPool) -> None:
        """Keep the parameters if they are better on held-out cases than all before.

        The score is the mean time relative to that at the start, and a penalty for the worst case.
        """
        trial = EvaluationCase(self.config.cases, self.config.hidden, self._parameters, ())
        seeds = [(self.config.seed, number, *ASIDE) for number in range(TRIED)]
        ratios = map_over(pool, tried, [replace(trial, seed=seed) for seed in seeds])
        self.first = self.first or ratios
        longer = np.array(ratios) / np.array(self.first)
        score = float(longer.mean() + max(0.0, longer.max() - WORSE))
        if score < self.kept_score:
            self.kept, self.kept_score = trial.parameters, score

    def _update(self, pool: WorkerPool, began_s: float) -> PlacementHistoryRow:
        config, number = self.config, len(self.rows)
        to_go = 1.0 - number / config.updates
        asked = EpisodeGroup(
            config.cases, config.hidden, self._parameters, (), config.episodes_per_case, config.drawn,
            config.entropy * to_go,
        )  # fmt: skip
        seeds = [(config.seed, number, case) for case in range(config.cases_per_update)]
        lessons = map_over(pool, learn_from, [replace(asked, seed=seed) for seed in seeds])
        lr = config.lr * min(1.0, to_go / FALLS)
        self._step(lessons, lr)
        seconds = round(time.perf_counter() - began_s, 2)
        decisions = sum(lesson.decisions for lesson in lessons)
        ratio = float(np.mean([lesson.ratio for lesson in lessons]))
        entropy = sum(lesson.entropy for lesson in lessons) / max(1, sum(lesson.drawn for lesson in lessons))
        row = PlacementHistoryRow(number + 1, seconds, decisions, ratio, entropy, lr)
        self.rows.append(row)
        return row

    def _step(self, lessons: list[Lesson], lr: float) -> None:
        """Make an optimizer step along the mean gradient of all drawn decisions."""
        drawn = max(1, sum(lesson.drawn for lesson in lessons))
        gradients = zip(*(lesson.gradient for lesson in lessons), strict=True)
        for parameter, each in zip(self.network.parameters(), gradients, strict=True):
            parameter.grad = torch.from_numpy(np.sum(each, axis=0) / np.float32(drawn))
        for group in self.optimizer.param_groups:
            group["lr"] = lr
        torch.nn.utils.clip_grad_norm_(self.network.parameters(), 1.0)
        self.optimizer.step()

    def _state(self) -> dict[str, NDArray[Any]]:
        kept = {f"kept/{number}": values for number, values in enumerate(self.kept)}
        return {
            **state_of(self.network, self.optimizer),
            **kept,
            "first": np.array(self.first),
            "kept_score": np.array(self.kept_score),
            "rows": np.array(self.rows),
            "kept": np.array(self._fingerprint),
        }

    def _restore(self, found: Arrays) -> None:
        if self.is_another(str(found["kept"]), self._fingerprint, over=self._over):
            return
        restore(self.network, self.optimizer, found)
        self.first, self.kept_score = found["first"].tolist(), float(found["kept_score"])
        self.kept = tuple(found[f"kept/{number}"] for number in range(len(self.kept)))
        self.rows = [
            PlacementHistoryRow(int(row[0]), row[1], int(row[2]), *row[3:]) for row in found["rows"].tolist()
        ]
        self.seconds = self.rows[-1].seconds if self.rows else 0.0
