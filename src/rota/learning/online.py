"""Learn from real training without recordings: an episode is a network that is really trained.

Episodes are expensive and updates are cheap. So after each round (one episode of every scenario), the agent
learns from all episodes so far. The first episode of a scenario changes nothing: the baseline. Everything
follows from the seed and the results of training. So to resume is to repeat it all; trainings that are done
are looked up.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch

from rota.core.network import likeliest
from rota.learning.agent import Agent
from rota.learning.config import LiveConfig
from rota.learning.files import HistoryRow
from rota.learning.networks.registry import options_for
from rota.learning.problem import Problem, problem_of
from rota.learning.reinforce import EntropySchedule, Tables, UpdateStatistics, update
from rota.recordings.tree import Prefix
from rota.training.device import threads
from rota.training.recorder.live import LiveTree

UPDATES_PER_ROUND = 10
FEWEST = 2
"""Fewest sequences of a scenario that can be learned from."""


class LiveEpisode(NamedTuple):
    """A network that was trained, now or before."""

    scenario: str
    sequence: Prefix
    probability: float
    """Probability of the sequence under the agent."""
    accuracy: float


@dataclass
class Online:
    """An agent that learns while networks train."""

    config: LiveConfig
    trees: Sequence[LiveTree]

    def __post_init__(self) -> None:
        method, seed = self.config.method, self.config.seeds[0]
        actions = len(self.trees[0].recorder.config.actions)
        self.agent = Agent.new(method.network, options_for(method.network, actions), seed)
        self.optimizer = torch.optim.Adam(self.agent.network.parameters(), foreach=True)
        self.generator = torch.Generator().manual_seed(seed)
        self.rows: list[HistoryRow] = []
        self.reached: list[dict[Prefix, float]] = [{} for _ in self.trees]
        """Accuracy of each sequence so far, by scenario."""
        self.observations = [
            {observation.made: observation for observation in problem.observations}
            for problem in self.known()
        ]
        """Observation after each prefix, by scenario; they never change."""

    def episodes(self) -> Iterator[LiveEpisode]:
        """Train and learn in turn; at the end, train each scenario once with the most probable actions."""
        for number in range(self.config.episodes):
            for at in range(len(self.trees)):
                yield self._episode(at, self._nothing if number == 0 else self._drawn)
            with threads(1):
                self._learn(number)
        for at in range(len(self.trees)):
            yield self._episode(at, likeliest)

    def known(self) -> list[Problem]:
        """Return the trees as far as they were trained, as problems."""
        pairs = zip(self.trees, self.reached, strict=True)
        return [problem_of(tree.seen(reached), partial=True) for tree, reached in pairs]

    def _episode(self, at: int, choose: Callable[[Sequence[float]], int]) -> LiveEpisode:
        tree = self.trees[at]
        made: Prefix = ()
        probability = 1.0
        while len(made) < tree.recorder.config.decisions:
            chances = self.agent.probabilities(self.observations[at][made])
            made = (*made, choose(chances))
            probability *= chances[made[-1]]
        self.reached[at][made] = tree.reach(made)
        return LiveEpisode(tree.scenario, made, probability, self.reached[at][made])

    def _nothing(self, chances: Sequence[float]) -> int:
        return self.trees[0].recorder.config.actions.index("nothing")

    def _drawn(self, chances: Sequence[float]) -> int:
        return int(torch.multinomial(torch.tensor(chances), 1, generator=self.generator))

    def _learn(self, number: int) -> None:
        """Learn from all episodes so far; a scenario counts from its second sequence on."""
        problems = [each for each in self.known() if len(each.trained.sequences) >= FEWEST]
        if not problems:
            return
        method, whole = self.config.method, self.config.episodes * UPDATES_PER_ROUND
        tables = Tables.of(problems, self.agent.network, method)
        made: list[UpdateStatistics] = []
        for count in range(UPDATES_PER_ROUND):
            at = number * UPDATES_PER_ROUND + count
            schedule = EntropySchedule.at(method, at, whole, 1.0)
            made.append(update(self.agent.network, tables, self.optimizer, method, schedule, self.generator))
        mean = UpdateStatistics(*np.mean(made, axis=0).tolist())
        drawn = (number + 1) * len(self.trees)
        self.rows.append(HistoryRow(0, drawn, *mean, schedule.lr, schedule.temperature))
